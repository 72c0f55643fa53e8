//! Metrics: a struct per concern, registered once.
//!
//! What actors publish anyway is read at the moment of a scrape; only times are counted as they
//! happen.

use std::time::Duration;

use krane_supervision::meter::Measure;
use krane_supervision::tree::Node;
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, HistogramVec, Registry};

use crate::status::StatusBoard;

mod board;
mod controller;
mod lease;
mod reconcile;
mod store;
#[cfg(test)]
mod tests;

pub use board::BoardCollector;
pub use controller::{ControllerFamilies, ControllerMetrics};
pub use lease::LeaseCollector;
pub use reconcile::{LaneTimer, ReconcileMetrics};
pub use store::StoreCollector;

/// From a hop between actors to the limit of a handler.
const SECONDS: &[f64] = &[0.000_1, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The metrics of all actors of one tree.
#[derive(Clone, Debug)]
pub struct ActorFamilies {
    board: StatusBoard,
    wait: HistogramVec,
    handle: HistogramVec,
}

impl ActorFamilies {
    /// Metrics for the actors of `tree`, which publish on `board`; registered with `registry`.
    pub fn register(
        tree: &Node,
        board: &StatusBoard,
        registry: &Registry,
    ) -> Result<Self, prometheus::Error> {
        tree.declare(board);
        let families = Self {
            board: board.clone(),
            wait: histogram(
                "krane_actor_message_wait_seconds",
                "Time messages wait in the mailbox.",
            )?,
            handle: histogram("krane_actor_handle_seconds", "Time handlers run.")?,
        };
        let collectors: [Box<dyn Collector>; 3] = [
            Box::new(BoardCollector::new(board.clone())?),
            Box::new(families.wait.clone()),
            Box::new(families.handle.clone()),
        ];
        for collector in collectors {
            registry.register(collector)?;
        }
        Ok(families)
    }

    /// Where the messages of the actor at this path of the tree are counted.
    pub fn actor(&self, path: &str) -> ActorMetrics {
        let cell = self.board.find(path);
        let controller = cell
            .and_then(|cell| cell.facts()?.group)
            .unwrap_or_default();
        let labels = [controller, label(path)];
        ActorMetrics {
            wait: self.wait.get_metric_with_label_values(&labels).ok(),
            handle: self.handle.get_metric_with_label_values(&labels).ok(),
        }
    }
}

fn histogram(name: &str, help: &str) -> Result<HistogramVec, prometheus::Error> {
    let options = HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
    HistogramVec::new(options, &["controller", "actor"])
}

/// An actor's name in metrics: its path without the root's name.
fn label(path: &str) -> &str {
    path.split_once('/').map_or(path, |(_, rest)| rest)
}

/// Where one actor's messages are counted; by default nowhere.
#[derive(Clone, Debug, Default)]
pub struct ActorMetrics {
    wait: Option<Histogram>,
    handle: Option<Histogram>,
}

impl Measure for ActorMetrics {
    fn waited(&self, time: Duration) {
        if let Some(wait) = &self.wait {
            wait.observe(time.as_secs_f64());
        }
    }

    fn handled(&self, time: Duration) {
        if let Some(handle) = &self.handle {
            handle.observe(time.as_secs_f64());
        }
    }
}
