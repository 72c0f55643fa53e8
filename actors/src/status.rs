//! What every actor publishes about itself.
//!
//! Page, metrics, watchdog and tests read these copies; nobody asks an actor.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use krane_domain::ids::Moment;
use parking_lot::RwLock;
use serde::Serialize;
use tokio::time::Instant;

use crate::gate::Gate;

/// What an actor is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Activity {
    /// Never started, or starting now.
    Starting,
    /// Waiting for a message.
    Idle,
    /// Inside the handler of this message since `since`.
    Handling {
        /// The message's name.
        message: &'static str,
        /// When the handler began.
        since: Moment,
    },
    /// Down; its supervisor starts it again at `until`.
    Restarting {
        /// When the next start happens.
        until: Moment,
    },
    /// Down after spending its restart budget; comes back with fresh state at `until`.
    Parked {
        /// When the next start happens.
        until: Moment,
    },
    /// Stopped on purpose.
    Stopped,
}

/// Why an actor last went down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// When.
    pub at: Moment,
    /// `panic`, `error`, `killed`, `start` or `timeout`.
    pub kind: &'static str,
    /// The words. Panic text is redacted where it may hold input.
    pub text: Arc<str>,
}

/// One actor's published state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActorStatus {
    /// What it is doing.
    #[serde(flatten)]
    pub activity: Activity,
    /// Since when it is up or down.
    pub since: Moment,
    /// The message that last woke it.
    pub last_message: Option<&'static str>,
    /// Messages handled by all incarnations.
    pub handled: u64,
    /// Incarnations after the first.
    pub restarts: u64,
    /// Panics of all incarnations.
    pub panics: u64,
    /// The last failure, kept after recovery.
    pub last_failure: Option<Failure>,
}

/// The published state of one actor: cheap to write, free to read.
#[derive(Debug)]
pub struct StatusCell {
    status: ArcSwap<ActorStatus>,
    gate: Option<Gate>,
}

impl StatusCell {
    /// The state now.
    pub fn read(&self) -> Arc<ActorStatus> {
        self.status.load_full()
    }

    /// The gate of its mailbox; supervisors have none.
    pub fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    /// Publishes a change. Only the actor itself and its supervisor write, never at once.
    pub fn update(&self, change: impl FnOnce(&mut ActorStatus)) {
        let mut next = ActorStatus::clone(&self.status.load());
        change(&mut next);
        self.status.store(Arc::new(next));
    }
}

/// The published states of all actors of a tree, by path.
#[derive(Clone, Debug)]
pub struct StatusBoard {
    started: Instant,
    cells: Arc<RwLock<BTreeMap<Arc<str>, Arc<StatusCell>>>>,
}

impl Default for StatusBoard {
    fn default() -> Self {
        Self::new()
    }
}

impl StatusBoard {
    /// An empty board whose moments count from now.
    pub fn new() -> Self {
        Self { started: Instant::now(), cells: Arc::default() }
    }

    /// The present moment, on the clock all published moments use.
    pub fn now(&self) -> Moment {
        self.started.elapsed()
    }

    /// The cell of this path, made on first use. `gate` is that of the actor's mailbox.
    pub fn cell(&self, path: &Arc<str>, gate: Option<&Gate>) -> Arc<StatusCell> {
        if let Some(cell) = self.cells.read().get(path) {
            return Arc::clone(cell);
        }
        let fresh = Arc::new(StatusCell {
            status: ArcSwap::from_pointee(ActorStatus {
                activity: Activity::Starting,
                since: self.now(),
                last_message: None,
                handled: 0,
                restarts: 0,
                panics: 0,
                last_failure: None,
            }),
            gate: gate.cloned(),
        });
        Arc::clone(self.cells.write().entry(Arc::clone(path)).or_insert(fresh))
    }

    /// All actors, by path.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<StatusCell>)> {
        self.cells.read().iter().map(|(path, cell)| (Arc::clone(path), Arc::clone(cell))).collect()
    }

    /// The state at this path, if the tree has it.
    pub fn get(&self, path: &str) -> Option<Arc<ActorStatus>> {
        self.cells.read().get(path).map(|cell| cell.read())
    }
}
