//! What every actor publishes about itself.
//!
//! Page, metrics, watchdog and tests read these copies; nobody asks an actor.

use std::collections::BTreeMap;
use std::collections::btree_map::Iter;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use tokio::time::Instant;

use crate::Moment;
use crate::gate::Gate;
use crate::news::News;
use crate::status::occupancy::Tenancy;

mod occupancy;
mod timing;

pub(crate) use occupancy::Occupancy;
use timing::Stopwatch;
pub use timing::Timing;

/// What an actor is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Activity {
    /// Never started, or starting now.
    Starting,
    /// A supervisor that waits for what its children need before they can start.
    Preparing,
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

impl Activity {
    /// Whether the actor takes messages, or all children of the supervisor were started.
    pub fn is_up(&self) -> bool {
        match self {
            Self::Idle | Self::Handling { .. } => true,
            Self::Starting
            | Self::Preparing
            | Self::Restarting { .. }
            | Self::Parked { .. }
            | Self::Stopped => false,
        }
    }
}

/// Why an actor last went down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// When.
    pub at: Moment,
    /// One of [`Cause::kind`](crate::cause::Cause::kind).
    pub kind: &'static str,
    /// The words. Of a panic only the place: its text may quote input.
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
    /// Handlers of all incarnations that ran too long, so that the watchdog killed the actor.
    pub hangs: u64,
    /// The last failure, kept after recovery.
    pub last_failure: Option<Failure>,
}

/// What the tree says about an actor, for watchdog and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The group it belongs to.
    pub group: Option<&'static str>,
    /// How long one of its handlers may run; supervisors have no limit.
    pub handler_limit: Option<Duration>,
}

/// The published state of one actor: cheap to write, free to read.
#[derive(Debug)]
pub struct StatusCell {
    status: ArcSwap<ActorStatus>,
    writing: Mutex<()>,
    gate: OnceLock<Gate>,
    facts: OnceLock<Facts>,
    stopwatch: Stopwatch,
    tenancy: Tenancy,
    was_started: AtomicBool,
    #[cfg(any(test, debug_assertions))]
    pub(crate) fault: crate::fault::FaultSlot,
}

impl StatusCell {
    fn new(since: Moment) -> Self {
        Self {
            status: ArcSwap::from_pointee(ActorStatus {
                activity: Activity::Starting,
                since,
                last_message: None,
                handled: 0,
                restarts: 0,
                panics: 0,
                hangs: 0,
                last_failure: None,
            }),
            writing: Mutex::default(),
            gate: OnceLock::new(),
            facts: OnceLock::new(),
            stopwatch: Stopwatch::default(),
            tenancy: Tenancy::default(),
            was_started: AtomicBool::new(false),
            #[cfg(any(test, debug_assertions))]
            fault: crate::fault::FaultSlot::default(),
        }
    }

    /// The state now.
    pub fn read(&self) -> Arc<ActorStatus> {
        self.status.load_full()
    }

    /// What `look` makes of the state now, without keeping it.
    pub fn look<T>(&self, look: impl FnOnce(&ActorStatus) -> T) -> T {
        look(&self.status.load())
    }

    /// The gate of its mailbox; supervisors have none.
    pub fn gate(&self) -> Option<&Gate> {
        self.gate.get()
    }

    /// What the tree says about it.
    pub fn facts(&self) -> Option<&Facts> {
        self.facts.get()
    }

    /// How long its messages wait and take.
    pub fn timing(&self) -> Timing {
        self.stopwatch.read()
    }

    /// A message waited this long and was handled in this time.
    pub(crate) fn note_message(&self, wait: Duration, handle: Duration) {
        self.stopwatch.note(wait, handle);
    }

    /// Notes a start; whether there was one before.
    pub(crate) fn note_start(&self) -> bool {
        self.was_started.swap(true, Ordering::Relaxed)
    }

    /// Publishes a change. The actor itself writes, and its supervisor when it is down.
    pub fn update(&self, change: impl FnOnce(&mut ActorStatus)) {
        let _one_at_a_time = self.writing.lock();
        let mut next = ActorStatus::clone(&self.status.load());
        change(&mut next);
        self.status.store(Arc::new(next));
    }
}

/// The published states of all actors of a tree, by path.
#[derive(Clone, Debug)]
pub struct Board {
    started: Instant,
    cells: Arc<RwLock<BTreeMap<Arc<str>, Arc<StatusCell>>>>,
    listener: Listener,
}

/// Who is told of failures and returns.
#[derive(Clone)]
struct Listener(Arc<dyn Fn(News) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Default for Board {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<Self> for Board {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Board {
    /// An empty board whose moments count from now.
    pub fn new() -> Self {
        Self::telling(|_| {})
    }

    /// An empty board whose moments count from now. What becomes of actors is told to this listener, on the loops of their
    /// supervisors: it must not wait.
    pub fn telling(listener: impl Fn(News) + Send + Sync + 'static) -> Self {
        Self {
            started: Instant::now(),
            cells: Arc::default(),
            listener: Listener(Arc::new(listener)),
        }
    }

    pub(crate) fn tell(&self, news: News) {
        (self.listener.0)(news);
    }

    /// The present moment, on the clock all published moments use.
    pub fn now(&self) -> Moment {
        self.started.elapsed()
    }

    /// The cell of this path, if the tree has it.
    pub fn find(&self, path: &str) -> Option<Arc<StatusCell>> {
        self.cells.read().get(path).map(Arc::clone)
    }

    /// The cell of this path, made on first use. `gate` is that of the actor's mailbox.
    pub fn cell(&self, path: &Arc<str>, gate: Option<&Gate>) -> Arc<StatusCell> {
        let cell = self.find(path).unwrap_or_else(|| {
            let fresh = Arc::new(StatusCell::new(self.now()));
            Arc::clone(self.cells.write().entry(Arc::clone(path)).or_insert(fresh))
        });
        if let Some(gate) = gate {
            cell.gate.get_or_init(|| gate.clone());
        }
        cell
    }

    /// Makes the cell of an actor of the tree, before anything runs.
    pub fn declare(&self, path: &Arc<str>, facts: Facts) {
        self.cell(path, None).facts.get_or_init(|| facts);
    }

    /// All actors, by path.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<StatusCell>)> {
        self.cells
            .read()
            .iter()
            .map(|(path, cell)| (Arc::clone(path), Arc::clone(cell)))
            .collect()
    }

    /// What `look` makes of all actors, by path; without copying anything.
    pub fn look<T>(&self, look: impl FnOnce(Iter<'_, Arc<str>, Arc<StatusCell>>) -> T) -> T {
        look(self.cells.read().iter())
    }

    /// The state at this path, if the tree has it.
    pub fn get(&self, path: &str) -> Option<Arc<ActorStatus>> {
        self.find(path).map(|cell| cell.read())
    }

    /// Plans a fault for the actor at `path`, in place of one planned before. Whether the tree
    /// has such an actor.
    #[cfg(any(test, debug_assertions))]
    pub fn inject(&self, path: &str, plan: crate::fault::FaultPlan) -> bool {
        let cell = self.find(path);
        if let Some(cell) = &cell {
            cell.fault.plan(plan);
        }
        cell.is_some()
    }

    /// At how many messages a fault could have struck the actor at `path`: all that its
    /// incarnations met with. 0 when the tree has no such actor.
    #[cfg(any(test, debug_assertions))]
    pub fn messages(&self, path: &str) -> u32 {
        self.find(path).map_or(0, |cell| cell.fault.messages())
    }
}
