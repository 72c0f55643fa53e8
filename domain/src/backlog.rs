//! What waits to be applied, and in which order.
//!
//! One entry per object holds its newest desired state. Lanes take work from here, one lane per
//! key. Of what the control plane wants the newest version goes first, deletes and shared objects
//! overtake; calls go by their arrival. A state that fails never holds up other objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::cursor::Cursor;
use crate::desired::{Change, State};
use crate::ids::{Moment, ObjectKey, SharedKey, WorkKey};
use crate::invalid::Invalid;
use crate::origin::Origin;
use crate::secrets::{DesiredWorkloads, Named};
use crate::trace::TraceContext;

mod calls;
mod entry;
mod phases;
mod queue;
mod reading;
mod share;
mod stages;
mod standing;
mod terms;
mod trouble;

pub use calls::Claim;
use entry::{Entry, Source};
pub use entry::{Phase, Settled};
use queue::{LineName, Queue};
pub use stages::Stages;
pub use standing::Standing;
pub use trouble::{InTrouble, Trouble, TroubleKind};

/// A key that waited this long has every other turn of its line, whatever its version.
pub const FAIRNESS: Duration = Duration::from_secs(30);
/// A key whose last lane had a call that took longer than this is slow (D49).
pub const SLOW_CALL: Duration = Duration::from_secs(5);
/// How far ahead of all others a version may be that comes out of a bad message.
const FARTHEST: u64 = 1 << 32;
/// Repairs in a row, each soon after the last, before another one has to wait.
const REPAIRS_BEFORE_BACKOFF: u32 = 5;
/// Repairs further apart than this are not "in a row".
const REPAIR_STREAK: Duration = Duration::from_secs(30);

/// What became of a received state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is the newest of its object and waits for a lane.
    Accepted,
    /// The same version is known already.
    Repeated,
    /// A newer state of the object is known; it will not be applied.
    Stale,
}

/// What became of an answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerReceipt {
    /// A stream state arrived after the question was asked: the answer may be older.
    Dropped,
    /// It is what is already wanted.
    Unchanged,
    /// It replaces what was wanted.
    Adopted,
}

/// Work for one lane.
#[derive(Clone, Debug)]
pub struct Task {
    /// What to work on.
    pub key: WorkKey,
    /// The state to bring about; absent for shared objects.
    pub state: Option<Arc<State>>,
    /// Whether this state was brought about before, so that a difference now is drift.
    pub was_settled: bool,
    /// Whether also what only looks older is written now. If not, it waits in a line of its own,
    /// behind all others (D44).
    pub writes_older: bool,
    /// How long the key was ready before this lane took it; nothing in the line of what only looks
    /// older.
    pub waited: Duration,
    /// How long ago the state was received, if this is the first lane to work on it.
    pub received_ago: Option<Duration>,
    /// The trace that began when the state was received.
    pub trace: Option<TraceContext>,
}

/// How a lane ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The cluster is as the state wants it.
    Done {
        /// Fingerprint of the live object it was compared with, if there is one.
        live: Option<u64>,
        /// Whether something was written or deleted for it.
        wrote: bool,
        /// What somebody had changed and was undone, as a number that is the same for the same
        /// change; nothing when nothing had to be repaired.
        repaired: Option<u64>,
    },
    /// Shared objects have to be in place first.
    Blocked(BTreeSet<SharedKey>),
    /// What is left to write only looks older, and waits for its turn (D44): the state is not
    /// brought about yet.
    Deferred {
        /// Whether something was written for it meanwhile.
        wrote: bool,
    },
    /// It did not work.
    Trouble(Trouble),
}

impl Outcome {
    /// There was nothing to compare and nothing to do.
    pub const NOTHING_TO_DO: Self = Self::Done {
        live: None,
        wrote: false,
        repaired: None,
    };
}

/// The desired states of one controller and the order they are worked on.
#[derive(Debug, Default)]
pub struct Backlog {
    entries: BTreeMap<WorkKey, Entry>,
    queue: Queue,
    timers: BTreeSet<(Moment, WorkKey)>,
    blocked: BTreeMap<SharedKey, BTreeSet<WorkKey>>,
    cursor: Cursor<ObjectKey>,
    bytes: usize,
    calls: u64,
    /// Keys that became ready, ever.
    adds: u64,
    workloads: DesiredWorkloads,
}

impl Backlog {
    /// Takes in a state of the stream.
    pub fn receive(&mut self, mut state: State, now: Moment) -> Receipt {
        if state.change.is_err() {
            state.version = self.credible(state.version);
        }
        let key = WorkKey::Workload(state.key.clone());
        let entry = self.entries.entry(key.clone()).or_default();
        entry.stream_at = Some(now);
        // So broken that not even its version can be read: no reason to drop what is wanted.
        let is_nothing = state.version == 0 && entry.source == Source::Scheduler;
        if state.version < entry.highest || is_nothing {
            if self.cursor.is_unapplied(&state.key) {
                self.cursor.received(&state.key, state.version);
            } else {
                self.cursor.passed(state.version);
            }
            return Receipt::Stale;
        }
        if state.version == entry.highest && entry.source.is_the_stream() {
            self.cursor.passed(state.version);
            return Receipt::Repeated;
        }
        self.cursor.received(&state.key, state.version);
        entry.highest = state.version;
        entry.source = Source::Stream;
        self.replace(&key, state, now);
        Receipt::Accepted
    }

    /// A message that names no object: the cursor passes it.
    pub fn pass(&mut self, version: u64) {
        self.cursor.passed(self.credible(version));
    }

    /// The version of a message that makes no sense makes none either when it is out of reach:
    /// it must not carry the cursor past everything to come. Such a one counts as 0.
    fn credible(&self, version: u64) -> u64 {
        let ahead = version.saturating_sub(self.cursor.highest());
        if ahead > FARTHEST { 0 } else { version }
    }

    /// Takes in an answer to a question asked at `asked_at`.
    pub fn answer(
        &mut self,
        key: &ObjectKey,
        change: Result<Change, Invalid>,
        asked_at: Moment,
        now: Moment,
    ) -> AnswerReceipt {
        let work = WorkKey::Workload(key.clone());
        let entry = self.entries.entry(work.clone()).or_default();
        let is_since = |at: Option<Moment>| at.is_some_and(|at| at >= asked_at);
        if is_since(entry.stream_at) || is_since(entry.called_at) {
            return AnswerReceipt::Dropped;
        }
        let is_deleted = matches!(change, Ok(Change::Delete));
        // That the control plane does not know it says nothing of what the scheduler wants (D32).
        if is_deleted && entry.source == Source::Scheduler {
            return AnswerReceipt::Dropped;
        }
        if entry
            .state
            .as_ref()
            .is_some_and(|known| known.change == change)
        {
            return AnswerReceipt::Unchanged;
        }
        let state = State {
            key: key.clone(),
            version: entry.highest,
            change,
            size: 0,
        };
        // The stream may name it again, with the version it had: then it is wanted again (D7).
        entry.source = if entry.source.is_the_stream() && !is_deleted {
            Source::StreamThenAnswer
        } else {
            Source::NotTheStream
        };
        self.replace(&work, state, now);
        AnswerReceipt::Adopted
    }

    /// The control plane was restored from an older copy: these states are what it wants now,
    /// though their versions are lower than those known. The cursor begins again at 0 (D8).
    pub fn adopt(&mut self, states: Vec<State>, now: Moment) {
        self.cursor.restart();
        for state in states {
            let key = WorkKey::Workload(state.key.clone());
            self.cursor.renumber(&state.key, state.version);
            let entry = self.entries.entry(key.clone()).or_default();
            entry.highest = state.version;
            entry.source = Source::Stream;
            entry.stream_at = Some(now);
            self.replace(&key, state, now);
        }
    }

    /// This is what is wanted of an entry from now on.
    fn replace(&mut self, key: &WorkKey, state: State, now: Moment) {
        if let Some(entry) = self.entries.get_mut(key) {
            let named = match &state.change {
                Ok(Change::Apply(desired)) => desired.workload_identity().map(Named::As),
                // That the control plane does not know an object says nothing of whose it was.
                Ok(Change::Delete) => entry.source.is_the_stream().then_some(Named::Deleted),
                Err(_) => Some(Named::Invalid),
            };
            if let Some(named) = named {
                self.workloads.name(&state.key, named);
            }
            self.bytes -= entry.waiting_bytes();
            entry.replace(Arc::new(state), now);
            self.bytes += entry.waiting_bytes();
            self.make_ready(key, now);
        }
    }

    /// Something about this key may have changed in the cluster: look again. Nothing happens for
    /// an object nothing is wanted of, and trouble keeps its retry time. Returns whether a lane
    /// will look.
    pub fn look(&mut self, key: &WorkKey, now: Moment) -> bool {
        self.look_for(key, Origin::ControlPlane, now)
    }

    /// The same, where it is known for whom a shared object has to be looked at.
    pub fn look_for(&mut self, key: &WorkKey, origin: Origin, now: Moment) -> bool {
        let is_shared = matches!(key, WorkKey::Shared(_));
        if is_shared {
            self.entries.entry(key.clone()).or_default();
        }
        let was_deferred = self.end_deferral(key);
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        if entry.state.is_none() && !is_shared {
            return false;
        }
        match &entry.phase {
            Phase::Ready { .. } if std::mem::take(&mut entry.is_renewal) => {
                let urgency = entry.urgency_unneeded();
                if let WorkKey::Shared(shared) = key {
                    self.hasten(shared, urgency);
                }
                true
            }
            Phase::Ready { .. } if was_deferred => {
                self.make_ready(key, now);
                true
            }
            Phase::Ready { .. } | Phase::Blocked(_) => true,
            Phase::InFlight => {
                entry.look_again = true;
                true
            }
            Phase::Waiting { .. } if !entry.wakes_on_change() => false,
            Phase::Idle | Phase::Waiting { .. } => {
                entry.origin = origin;
                match entry.repair_backoff(now, REPAIRS_BEFORE_BACKOFF, REPAIR_STREAK) {
                    Some(delay) => self.wait_until(key, now + delay),
                    None => self.make_ready(key, now),
                }
                true
            }
        }
    }

    /// The same for a shared object that can wait for a lane that nobody else needs, as long as no
    /// workload waits for it.
    pub fn renew(&mut self, shared: &SharedKey, now: Moment) {
        let key = WorkKey::Shared(shared.clone());
        let entry = self.entries.entry(key.clone()).or_default();
        if matches!(entry.phase, Phase::Ready { .. }) {
            return;
        }
        entry.is_renewal = true;
        self.look(&key, now);
        if let Some(entry) = self.entries.get_mut(&key)
            && !matches!(entry.phase, Phase::Ready { .. })
        {
            entry.is_renewal = false;
        }
    }

    /// The next work, if one of this many lanes is free for it.
    pub fn next_for(&mut self, lanes: usize, now: Moment) -> Option<Task> {
        let key = self.queue.next(lanes, now)?;
        self.leave_phase(&key);
        let is_needed = match &key {
            WorkKey::Shared(shared) => self.blocked.contains_key(shared),
            WorkKey::Workload(_) => false,
        };
        let entry = self.entries.get_mut(&key)?;
        let mut waited = Duration::ZERO;
        if let Phase::Ready { urgency, since } = entry.phase {
            (entry.origin, entry.line) = (urgency.origin(), urgency.line());
            // What is last in line on purpose tells nobody that there are too few lanes.
            if entry.line != LineName::Upgrades {
                waited = now.saturating_sub(since);
            }
        }
        let trace = entry.trace;
        let received_ago = entry.stages.as_mut().and_then(|stages| stages.start(now));
        entry.phase = Phase::InFlight;
        entry.look_again = false;
        entry.is_retried = false;
        entry.is_renewal = false;
        entry.is_replaced = false;
        entry.is_slow_lane = entry.is_slow;
        self.queue.begin(entry.line, entry.is_slow_lane);
        let (state, was_settled) = (entry.state.clone(), entry.settled.is_some());
        let writes_older = was_settled || entry.is_deferred || entry.is_change || is_needed;
        if let WorkKey::Workload(object) = &key {
            self.cursor.attempted(object, entry.highest);
        }
        Some(Task {
            key,
            state,
            was_settled,
            writes_older,
            waited,
            received_ago,
            trace,
        })
    }

    /// How long the longest call to the API server took that the lane of this key made. Said before
    /// the lane ends.
    pub fn note_longest_call(&mut self, key: &WorkKey, took: Duration) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.phase == Phase::InFlight
        {
            entry.is_slow = took > SLOW_CALL;
        }
    }

    /// A lane ended. `jitter` in 0..1 spreads retries. How long it took since the first lane of
    /// this state, if it is the first that brought it about.
    pub fn finish(
        &mut self,
        key: &WorkKey,
        outcome: Outcome,
        now: Moment,
        jitter: f64,
    ) -> Option<Duration> {
        let entry = self.entries.get_mut(key)?;
        if entry.phase != Phase::InFlight {
            return None;
        }
        let mut applied_after = None;
        self.queue.end(entry.line, entry.is_slow_lane);
        self.bytes -= entry.waiting_bytes();
        entry.phase = Phase::Idle;
        let is_replaced = entry.is_replaced;
        let look_again = std::mem::take(&mut entry.look_again);
        let is_retried = std::mem::take(&mut entry.is_retried);
        match outcome {
            Outcome::Done {
                live,
                wrote,
                repaired,
            } => {
                entry.count_write(wrote, now);
                if !is_replaced {
                    entry.settle(live, now);
                    let stages = entry.stages.as_mut();
                    applied_after = stages.and_then(|stages| stages.apply(wrote, now));
                }
                entry.count_repair(repaired, now, REPAIR_STREAK);
                self.bytes += entry.waiting_bytes();
                if let WorkKey::Workload(object) = key {
                    self.cursor.applied(object);
                }
                if is_replaced || look_again {
                    self.make_ready(key, now);
                }
            }
            Outcome::Blocked(on) => {
                if let WorkKey::Workload(object) = key {
                    self.cursor.failed(object);
                }
                let is_free = is_replaced || on.is_empty();
                let retry_at = if is_free {
                    None
                } else {
                    entry.block(on.clone(), now, jitter)
                };
                let need = entry.urgency_of_need(key);
                self.bytes += entry.waiting_bytes();
                if is_free {
                    self.make_ready(key, now);
                } else if let Some(retry_at) = retry_at {
                    self.wait_until(key, retry_at);
                } else {
                    self.wait_for(key, on, need);
                }
            }
            Outcome::Deferred { wrote } => {
                entry.count_write(wrote, now);
                // Of another state, or of what changed meanwhile, nothing is known yet.
                if !is_replaced && !look_again {
                    entry.defer();
                }
                self.bytes += entry.waiting_bytes();
                if let WorkKey::Workload(object) = key {
                    self.cursor.failed(object);
                }
                self.make_ready(key, now);
            }
            Outcome::Trouble(trouble) => {
                if let WorkKey::Workload(object) = key {
                    self.cursor.failed(object);
                }
                let mut retry_at = (!is_replaced).then(|| entry.fail(trouble, now, jitter));
                if retry_at.is_some() && is_retried {
                    retry_at = entry.hurry(now);
                }
                self.bytes += entry.waiting_bytes();
                match retry_at {
                    None => self.make_ready(key, now),
                    Some(retry_at) => self.wait_until(key, retry_at),
                }
            }
        }
        applied_after
    }

    /// Forgets objects that have been gone since before `before`.
    pub fn forget_gone(&mut self, before: Moment) {
        let workloads = &mut self.workloads;
        self.entries.retain(|key, entry| {
            let is_gone = entry.is_gone_since(before);
            if let (true, WorkKey::Workload(key)) = (is_gone, key) {
                workloads.forget(key);
            }
            !is_gone
        });
    }

    /// Forgets shared objects that nobody needs and that nothing is to be done about.
    pub fn retain_shared(&mut self, is_needed: impl Fn(&SharedKey) -> bool) {
        self.entries.retain(|key, entry| match key {
            WorkKey::Shared(shared) => entry.phase != Phase::Idle || is_needed(shared),
            WorkKey::Workload(_) => true,
        });
    }
}

#[cfg(test)]
mod tests;
