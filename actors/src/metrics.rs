//! Metrics about actors: a struct per concern, registered once.

use std::time::Duration;

mod controller;

pub use controller::{ControllerFamilies, ControllerMetrics, StoreCollector};

/// Where one actor's messages are counted.
#[derive(Clone, Debug, Default)]
pub struct ActorMetrics {}

impl ActorMetrics {
    /// How long a message waited in the mailbox.
    pub fn waited(&self, _time: Duration) {}
    /// How long a handler ran.
    pub fn handled(&self, _time: Duration) {}
}
