//! What one controller knows, owned above the actors that may crash.
//!
//! Desired states, cursor, the view of the cluster and the reports on their way live here. Actors
//! carry keys; a restarted one looks here first. Everything is behind one lock that is held for
//! short, synchronous work only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krane_domain::backlog::{Backlog, Stages};
use krane_domain::brake::Brake;
use krane_domain::drift::FuseMemory;
use krane_domain::ids::{Controller, Moment, ObjectKey, SharedKey, WorkKey};
use krane_domain::kinds::{self, Member, Rules};
use krane_domain::members::Members;
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::outbox::Outbox;
use krane_domain::upgrades::Rolls;
use krane_domain::view::View;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::breaker::Breaker;
use crate::chance::Chance;
use crate::followers::Followers;

mod calls;
mod contact;
mod explain;
mod facts;
#[cfg(any(test, debug_assertions))]
mod inside;
mod lanes;
mod look;
mod metrics;
mod outage;
mod ownership;
mod questions;
mod receive;
mod reports;
mod requests;
mod sight;
mod snapshot;
mod streaming;
mod subjects;
mod terms;
#[cfg(test)]
mod tests;
mod watching;
mod work;

pub use calls::{CallAnswer, Calls};
pub use explain::{ObjectExplanation, WorkloadExplanation};
use facts::StreamReading;
pub use facts::{BrokenWatch, ResyncSummary, StreamMemory, WatchFailure};
#[cfg(any(test, debug_assertions))]
pub use inside::Inside;
pub use look::{Connection, Lag, Outlook};
pub(crate) use metrics::StoreReadings;
pub use outage::Silence;
pub(crate) use questions::UnknownObjects;
pub(crate) use reports::StatusProblem;
pub(crate) use requests::FollowRefusal;
pub use snapshot::{ControllerSnapshot, MOST_PODS, MOST_TROUBLES, WorkloadSnapshot};
pub(crate) use streaming::{StreamEnding, StreamOpening};
pub(crate) use watching::WatchStart;

/// Why a controller does not go on after an operation on its store panicked.
pub(crate) const BROKEN: &str =
    "what the controller knows may be half changed; the controller starts over";

/// The stream counts as quiet after this long without a message.
pub const QUIET: Duration = Duration::from_secs(10);
/// A replay of everything takes at most this long (D8).
pub(crate) const REPLAY_LIMIT: Duration = Duration::from_secs(300);

/// The shared memory of one controller.
#[derive(Debug)]
pub struct Store {
    controller: Controller,
    rules: Rules,
    max_backlog: usize,
    chance: Chance,
    inner: Mutex<Memory>,
    room: Notify,
    is_halted: AtomicBool,
    is_broken: AtomicBool,
    was_read: AtomicBool,
}

/// An operation under way. Ends early only by a panic.
struct Operation<'a> {
    is_broken: &'a AtomicBool,
    is_done: bool,
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.is_broken.store(true, Ordering::Relaxed);
        }
    }
}

/// What is behind the lock.
#[derive(Debug)]
pub struct Memory {
    /// Desired states and their order.
    backlog: Backlog,
    /// What wanted workloads contribute to shared objects.
    wanted: Members,
    /// The cluster.
    view: View,
    /// Whether the first complete lists are done.
    is_listed: bool,
    /// Where watches of already listed kinds go on; taken by the watch actor.
    listed: BTreeMap<Resource, String>,
    first_lists: BTreeMap<Resource, sight::FirstList>,
    /// Kinds the API server does not know at present.
    kinds_missing: BTreeSet<Resource>,
    /// Kinds whose watch does not work at present: of these the view is old.
    broken_watches: BTreeMap<Resource, BrokenWatch>,
    /// Reports on their way.
    outbox: Outbox,
    /// Workloads whose status may have changed.
    to_observe: BTreeSet<ObjectKey>,
    /// Deletions on `not_found`.
    brake: Brake,
    /// Guards reports and questions.
    breaker: Breaker,
    /// What our own applies did not achieve.
    fuses: BTreeMap<ObjectRef, FuseMemory>,
    /// Namespaces that somebody else made: used, not labelled.
    foreign_namespaces: BTreeSet<Arc<str>>,
    /// Policies without members, and since when.
    memberless: BTreeMap<SharedKey, Moment>,
    /// The desired-state stream.
    stream: StreamMemory,
    /// The last pass over all objects.
    last_resync: Option<ResyncSummary>,
    /// When a pod of a workload was last replaced.
    replaced_at: BTreeMap<ObjectKey, Moment>,
    /// Pods made from another template than the live one, by workload.
    outdated: BTreeMap<ObjectKey, usize>,
    /// Why pods cannot start, in the kubelet's words, by workload.
    config_errors: BTreeMap<ObjectKey, Arc<str>>,
    /// Workloads whose pod template waits for its turn (D44).
    rolls: Rolls,
    /// Calls of the scheduler that wait for their lane.
    calls: Calls,
    /// Who is told of everything that is looked at.
    followers: Followers,
    /// The term in which all of it was wanted; nothing before the first.
    term: Option<u64>,
    /// Bytes of waiting states beyond which the stream is not read.
    max_backlog: usize,
}

impl Memory {
    fn new(controller: Controller, max_backlog: usize) -> Self {
        Self {
            backlog: Backlog::default(),
            wanted: Members::default(),
            view: View::new(controller),
            is_listed: false,
            listed: BTreeMap::new(),
            first_lists: BTreeMap::new(),
            kinds_missing: BTreeSet::new(),
            broken_watches: BTreeMap::new(),
            outbox: Outbox::default(),
            to_observe: BTreeSet::new(),
            brake: Brake::default(),
            breaker: Breaker::default(),
            fuses: BTreeMap::new(),
            foreign_namespaces: BTreeSet::new(),
            memberless: BTreeMap::new(),
            stream: StreamMemory::default(),
            last_resync: None,
            replaced_at: BTreeMap::new(),
            outdated: BTreeMap::new(),
            config_errors: BTreeMap::new(),
            rolls: Rolls::default(),
            calls: Calls::default(),
            followers: Followers::default(),
            term: None,
            max_backlog,
        }
    }

    /// Whether waiting states are few enough for another one.
    fn has_room(&self) -> bool {
        self.backlog.bytes() <= self.max_backlog
    }

    /// Whether the stream has replayed everything: it was open and silent for 10 s once, or open
    /// for as long as a replay may take. A busy region is never silent. While krane itself does not
    /// read, for want of room, that is no silence.
    pub fn is_replayed(&mut self, now: Moment) -> bool {
        let has_room = self.has_room();
        let stream = &mut self.stream;
        if stream.reading == StreamReading::Paused {
            if !has_room {
                return stream.was_replayed;
            }
            stream.reading = StreamReading::Since(now);
        }
        if let Some(opened_at) = stream.opened_at {
            let opened_at = match stream.reading {
                StreamReading::Since(at) => opened_at.max(at),
                StreamReading::Steady | StreamReading::Paused => opened_at,
            };
            let silent_since = stream.last_item_at.max(Some(opened_at));
            stream.was_replayed |= silent_since.is_some_and(|since| since + QUIET <= now)
                || opened_at + REPLAY_LIMIT <= now;
        }
        stream.was_replayed
    }

    /// Keys of which something waits only because another renderer made it.
    pub fn to_upgrade(&self) -> usize {
        self.backlog.deferred() + self.rolls.waiting()
    }

    /// Lets the pods of one workload roll, when those of the one before are available. Returns
    /// whether a lane will look at it.
    pub fn let_one_roll(&mut self, now: Moment) -> bool {
        // What is not known yet may want another template anyway.
        if !self.is_replayed(now) {
            return false;
        }
        let (view, backlog) = (&self.view, &self.backlog);
        let controller = view.controller();
        let is_rolled_out = |key: &ObjectKey| {
            let live = view.workload(key);
            live.is_none_or(|live| kinds::is_rolled_out(controller, live))
        };
        let is_well = |key: &ObjectKey| {
            let work = WorkKey::Workload(key.clone());
            backlog.trouble_of(&work).is_none() && !backlog.is_blocked(&work)
        };
        let all = view.workloads().map(|live| live.reference.key());
        let Some(key) = self.rolls.next(is_well, is_rolled_out, all, now) else {
            return false;
        };
        let is_looked_at = self.backlog.look(&WorkKey::Workload(key.clone()), now);
        if !is_looked_at {
            self.rolls.give_back(&key);
        }
        is_looked_at
    }

    /// What all workloads, wanted and live, contribute to a shared object; each once.
    pub fn members_of(&self, shared: &SharedKey) -> Vec<Member> {
        let mut members = self.view.members_of(shared);
        members.extend(self.wanted.of(shared).cloned());
        members.sort();
        members.dedup();
        members
    }

    /// The password of the registry is another one: every pull secret is looked at, in lanes that
    /// nobody else needs.
    pub fn renew_pull_secrets(&mut self, now: Moment) {
        for shared in self.view.pull_secrets() {
            self.backlog.renew(&shared, now);
        }
    }

    /// Forgets what no object needs any more.
    pub fn forget_unneeded(&mut self) {
        let (view, wanted) = (&self.view, &self.wanted);
        let is_needed = |shared: &SharedKey| {
            wanted.of(shared).next().is_some()
                || !view.members_of(shared).is_empty()
                || view.get(&kinds::shared_reference(shared)).is_some()
        };
        self.backlog.retain_shared(is_needed);
        self.foreign_namespaces
            .retain(|name| is_needed(&SharedKey::Namespace(Arc::clone(name))));
        self.fuses.retain(|object, _| view.get(object).is_some());
        self.rolls.retain(|key| view.workload(key).is_some());
        self.outdated.retain(|key, _| view.workload(key).is_some());
        self.config_errors
            .retain(|key, _| view.workload(key).is_some());
        self.replaced_at
            .retain(|key, _| view.workload(key).is_some());
    }
}

impl Store {
    /// An empty store. Reading the stream pauses while more than `max_backlog` bytes of states
    /// wait to be applied.
    pub fn new(controller: Controller, rules: Rules, max_backlog: usize, chance: Chance) -> Self {
        Self {
            controller,
            rules,
            max_backlog,
            chance,
            inner: Mutex::new(Memory::new(controller, max_backlog)),
            room: Notify::new(),
            is_halted: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            was_read: AtomicBool::new(false),
        }
    }

    /// The process is on its way out: from now on no lane, no write and no report starts (D41).
    pub fn halt(&self) {
        self.is_halted.store(true, Ordering::Relaxed);
    }

    /// The first complete lists are done.
    pub fn listed(&self) {
        self.read();
        let mut memory = self.inner.lock();
        memory.is_listed = true;
        memory.first_lists.clear();
    }

    /// Every kind that may be listed was, whether or not that is enough for the controller to start.
    pub fn read(&self) {
        self.was_read.store(true, Ordering::Relaxed);
    }

    /// Whether every kind that may be listed was once in this process, whatever happened since (D38b).
    pub fn was_read(&self) -> bool {
        self.was_read.load(Ordering::Relaxed)
    }

    /// Whether no lane, no write and no report may start: the process ends, or the store is broken.
    pub fn is_halted(&self) -> bool {
        self.is_stopping() || self.is_broken()
    }

    /// Whether the process is on its way out.
    pub fn is_stopping(&self) -> bool {
        self.is_halted.load(Ordering::Relaxed)
    }

    /// Whether an operation panicked since the last [`reset`](Self::reset): it may have left half a change behind. No
    /// actor of the controller starts until the controller starts over.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Whose store it is.
    pub fn controller(&self) -> Controller {
        self.controller
    }

    /// The controller's source of jitter.
    pub fn chance(&self) -> &Chance {
        &self.chance
    }

    /// The settings that change what is decided.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Does short, synchronous work on what is known: one operation, one lock. One that panics leaves the store
    /// [broken](Self::is_broken).
    fn with<T>(&self, work: impl FnOnce(&mut Memory) -> T) -> T {
        let mut memory = self.inner.lock();
        // Declared after the lock, so that nobody sees half a change without the mark.
        let mut operation = Operation {
            is_broken: &self.is_broken,
            is_done: false,
        };
        let result = work(&mut memory);
        operation.is_done = true;
        drop(operation);
        let has_room = memory.backlog.bytes() <= self.max_backlog;
        drop(memory);
        if has_room {
            self.room.notify_waiters();
        }
        result
    }

    /// How far the newest version of an object has come, and when it got there.
    pub fn stages(&self, key: &ObjectKey) -> Option<Stages> {
        self.inner.lock().backlog.stages(key)
    }

    /// Waits until the backlog has room for another state.
    pub async fn room(&self) {
        loop {
            let notified = self.room.notified();
            if self.inner.lock().backlog.bytes() <= self.max_backlog {
                return;
            }
            notified.await;
        }
    }

    /// Forgets everything: the controller starts over as if it were new. Only what was deleted on
    /// `not_found` counts on: losing its memory must win nobody another allowance (D7).
    pub fn reset(&self) {
        let mut memory = self.inner.lock();
        let mut brake = std::mem::take(&mut memory.brake);
        brake.begin_anew();
        *memory = Memory {
            brake,
            ..Memory::new(self.controller, self.max_backlog)
        };
        self.is_broken.store(false, Ordering::Relaxed);
        drop(memory);
        self.room.notify_waiters();
    }
}
