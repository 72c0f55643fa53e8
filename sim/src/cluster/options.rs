//! How a simulated cluster is.

use std::time::Duration;

/// What a cluster is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Everything that happens by chance follows from it.
    pub seed: u64,
    /// Whether controllers, scheduler and nodes do their work.
    pub has_controllers: bool,
    /// How many nodes there are, over three zones.
    pub nodes: usize,
    /// How many past events are remembered: for watches that start late and for stale reads.
    pub history: usize,
    /// How long things take.
    pub pace: Pace,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            has_controllers: true,
            nodes: 3,
            history: 10_000,
            pace: Pace::default(),
        }
    }
}

/// How long things take; each time between half and one and a half of it.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Until a controller sees a change.
    pub controller: Duration,
    /// Until a pod has a node.
    pub schedule: Duration,
    /// Until a scheduled pod's containers run.
    pub start: Duration,
    /// Until a running pod is ready.
    pub ready: Duration,
    /// Until a deleted pod's containers have ended.
    pub stop: Duration,
    /// Until a crashed container runs again.
    pub restart: Duration,
    /// Until the pods of a lost node are not ready.
    pub doubt: Duration,
    /// From then on until they are deleted.
    pub evict: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            controller: Duration::from_millis(20),
            schedule: Duration::from_millis(50),
            start: Duration::from_millis(800),
            ready: Duration::from_secs(2),
            stop: Duration::from_secs(1),
            restart: Duration::from_secs(10),
            doubt: Duration::from_secs(40),
            evict: Duration::from_secs(300),
        }
    }
}
