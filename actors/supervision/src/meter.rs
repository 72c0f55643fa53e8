//! Where one actor's messages are counted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Hears how long messages wait and take; by default nobody does.
#[derive(Clone, Default)]
pub struct Meter(Option<Arc<dyn Measure>>);

/// Keeps the times of one actor's messages.
pub trait Measure: Send + Sync + 'static {
    /// How long a message waited in the mailbox.
    fn waited(&self, time: Duration);

    /// How long a handler ran.
    fn handled(&self, time: Duration);
}

impl<T: Measure> From<T> for Meter {
    fn from(measure: T) -> Self {
        Self(Some(Arc::new(measure)))
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

impl Meter {
    pub(crate) fn waited(&self, time: Duration) {
        if let Some(measure) = &self.0 {
            measure.waited(time);
        }
    }

    pub(crate) fn handled(&self, time: Duration) {
        if let Some(measure) = &self.0 {
            measure.handled(time);
        }
    }
}
