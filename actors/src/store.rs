//! What one controller knows, owned above the actors that may crash.
//!
//! Desired states, cursor, the view of the cluster and the reports on their way live here. Actors
//! carry keys; a restarted one looks here first. Everything is behind one lock that is held for
//! short, synchronous work only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krane_domain::backlog::{AnswerReceipt, Backlog, Receipt};
use krane_domain::brake::Brake;
use krane_domain::desired::{Change, Invalid, State, StreamItem};
use krane_domain::drift::FuseMemory;
use krane_domain::ids::{Controller, Moment, ObjectKey, SharedKey, WorkKey};
use krane_domain::kinds::{self, Member, Rules};
use krane_domain::members::Members;
use krane_domain::object::{LiveObject, ObjectRef, Resource};
use krane_domain::outbox::Outbox;
use krane_domain::replay::{Replay, Shown};
use krane_domain::upgrades::Upgrades;
use krane_domain::view::{Effects, View};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::breaker::Breaker;
use crate::chance::Chance;
use crate::ports::{Item, Listed};
use crate::watch::WatchFailure;

mod facts;
mod snapshot;
mod terms;
#[cfg(test)]
mod tests;

pub use facts::{BrokenWatch, ResyncSummary, StreamMemory};
pub use snapshot::{ControllerSnapshot, MOST_PODS, MOST_TROUBLES, WorkloadSnapshot};

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
    was_listed: AtomicBool,
}

/// What is behind the lock.
#[derive(Debug)]
pub struct Memory {
    /// Desired states and their order.
    pub backlog: Backlog,
    /// What wanted workloads contribute to shared objects.
    pub wanted: Members,
    /// The cluster.
    pub view: View,
    /// Whether the first complete lists are done.
    pub is_listed: bool,
    /// Where watches of already listed kinds go on; taken by the watch actor.
    pub listed: BTreeMap<Resource, String>,
    /// Kinds the API server does not know at present.
    pub kinds_missing: BTreeSet<Resource>,
    /// Kinds whose watch does not work at present: of these the view is old.
    pub broken_watches: BTreeMap<Resource, BrokenWatch>,
    /// Reports on their way.
    pub outbox: Outbox,
    /// Workloads whose status may have changed.
    pub to_observe: BTreeSet<ObjectKey>,
    /// Deletions on `not_found`.
    pub brake: Brake,
    /// Guards reports and questions.
    pub breaker: Breaker,
    /// What our own applies did not achieve.
    pub fuses: BTreeMap<ObjectRef, FuseMemory>,
    /// Namespaces that somebody else made: used, not labelled.
    pub foreign_namespaces: BTreeSet<Arc<str>>,
    /// Policies without members, and since when.
    pub memberless: BTreeMap<SharedKey, Moment>,
    /// The desired-state stream.
    pub stream: StreamMemory,
    /// The last pass over all objects.
    pub last_resync: Option<ResyncSummary>,
    /// When a pod of a workload was last replaced.
    pub replaced_at: BTreeMap<ObjectKey, Moment>,
    /// Pods made from another template than the live one, by workload.
    pub outdated: BTreeMap<ObjectKey, usize>,
    /// Why pods cannot start, in the kubelet's words, by workload.
    pub config_errors: BTreeMap<ObjectKey, Arc<str>>,
    /// What waits to be rendered anew.
    pub upgrades: Upgrades,
    /// The term in which all of it was wanted; nothing before the first.
    term: Option<u64>,
}

impl Memory {
    fn new(controller: Controller) -> Self {
        Self {
            backlog: Backlog::default(),
            wanted: Members::default(),
            view: View::new(controller),
            is_listed: false,
            listed: BTreeMap::new(),
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
            upgrades: Upgrades::default(),
            term: None,
        }
    }

    /// Takes in a message of the stream.
    pub fn receive(&mut self, item: StreamItem, now: Moment) {
        self.stream.last_item_at = Some(now);
        match item {
            StreamItem::Unnamed { version, .. } => {
                self.stream.unknown += 1;
                self.backlog.pass(version);
            }
            StreamItem::State(state) => {
                let state = of_kind(self.view.controller(), state);
                self.brake.named(&state.key);
                let key = state.key.clone();
                let member = member_of(&state.change);
                let warnings = warnings_of(&state.change);
                let broken = unversioned(&state);
                match self.backlog.receive(state, now) {
                    Receipt::Accepted => {
                        self.stream.received += 1;
                        for warning in warnings {
                            tracing::warn!(%key, %warning, "applied all the same");
                        }
                        self.want(&key, member, now);
                    }
                    Receipt::Repeated => self.stream.replayed += 1,
                    Receipt::Stale => {
                        self.stream.stale += 1;
                        if let Some(reason) = broken {
                            tracing::error!(
                                %key,
                                %reason,
                                "a state whose version cannot be read was passed over; what was \
                                 wanted before is kept"
                            );
                        }
                    }
                }
            }
        }
    }

    /// Takes in a state that a full replay shows (D8). Returns whether there is work.
    pub fn receive_replayed(&mut self, replay: &mut Replay, state: State, now: Moment) -> bool {
        let state = of_kind(self.view.controller(), state);
        let age = self.backlog.age(&state);
        match replay.show(state, age) {
            Shown::News(state) => {
                self.receive(StreamItem::State(state), now);
                true
            }
            Shown::Known | Shown::Older => {
                self.stream.replayed += 1;
                false
            }
        }
    }

    /// Takes over what a restored control plane wants, and begins its stream again at 0 (D8).
    pub fn adopt(&mut self, states: Vec<State>, now: Moment) {
        self.stream.adopted += states.len() as u64;
        self.stream.must_reconnect = true;
        for state in &states {
            self.brake.named(&state.key);
            self.want(&state.key, member_of(&state.change), now);
        }
        self.backlog.adopt(states, now);
    }

    /// The control plane does not know this object, as it said when asked at `asked_at`: it is
    /// deleted, unless the stream spoke of it since. Returns whether it is.
    pub fn disown(&mut self, key: &ObjectKey, asked_at: Moment, now: Moment) -> bool {
        let receipt = self.backlog.answer(key, Ok(Change::Delete), asked_at, now);
        let is_adopted = receipt == AnswerReceipt::Adopted;
        if is_adopted {
            self.want(key, None, now);
        }
        is_adopted
    }

    /// A person allows the deletions that the brake holds (D7). Returns what is deleted now.
    pub fn allow_deletes(&mut self, now: Moment) -> BTreeSet<ObjectKey> {
        let held = self.brake.release(now);
        held.into_iter()
            .filter(|key| self.disown(key, now, now))
            .collect()
    }

    /// A wanted workload changed: so may the shared objects it was and is part of.
    pub fn want(&mut self, key: &ObjectKey, member: Option<Member>, now: Moment) {
        for changed in self.wanted.set(key, member) {
            self.backlog.look(&WorkKey::Shared(changed), now);
        }
    }

    /// Acts on what a change of the view calls for.
    pub fn take_effects(&mut self, effects: Effects, now: Moment) {
        for key in &effects.look {
            self.backlog.look(key, now);
        }
        self.observe(effects.observe);
    }

    /// The status of these workloads may have changed. Nobody takes them off the list where nothing
    /// is reported.
    pub fn observe(&mut self, keys: impl IntoIterator<Item = ObjectKey>) {
        if self.view.controller().has_reports() {
            self.to_observe.extend(keys);
        }
    }

    /// Something was seen by a watch.
    pub fn see(&mut self, item: Item, now: Moment) {
        let effects = match item {
            Item::Object(live) => self.view.insert(live),
            Item::Pod(pod) => self.view.insert_pod(pod),
        };
        self.take_effects(effects, now);
    }

    /// Something left a watch.
    pub fn lose(&mut self, item: &Item, now: Moment) {
        let effects = match item {
            Item::Object(live) => {
                self.view
                    .remove(&live.reference, &live.uid, live.resource_version)
            }
            Item::Pod(pod) => self.view.remove_pod(&pod.namespace, &pod.name, &pod.uid),
        };
        self.take_effects(effects, now);
    }

    /// A complete list of one kind replaces what was known of it. The kind is there, and seen.
    pub fn replace(&mut self, resource: Resource, listed: Listed, now: Moment) {
        self.kinds_missing.remove(&resource);
        self.broken_watches.remove(&resource);
        // A version that cannot be read is older than all: nothing is taken for gone.
        let version = listed.resource_version.parse().unwrap_or(0);
        let uids = listed
            .items
            .iter()
            .map(|item| match item {
                Item::Object(live) => Arc::clone(&live.uid),
                Item::Pod(pod) => Arc::clone(&pod.uid),
            })
            .collect();
        let effects = self.view.retain_listed(resource, &uids, version);
        self.take_effects(effects, now);
        for item in listed.items {
            self.see(item, now);
        }
    }

    /// The API server does not know this kind: nothing of it is there. Returns whether that is
    /// news.
    pub fn kind_is_missing(&mut self, resource: Resource, now: Moment) -> bool {
        let effects = self
            .view
            .retain_listed(resource, &BTreeSet::new(), u64::MAX);
        self.take_effects(effects, now);
        self.broken_watches.remove(&resource);
        self.kinds_missing.insert(resource)
    }

    /// A list or watch of this kind failed. Returns whether it worked before.
    pub fn watch_failed(&mut self, resource: Resource, failure: WatchFailure, now: Moment) -> bool {
        let before = self.broken_watches.get(&resource);
        let broken = BrokenWatch {
            since: before.map_or(now, |broken| broken.since),
            is_refused: failure.is_refused,
            error: failure.text,
        };
        self.broken_watches.insert(resource, broken).is_none()
    }

    /// Whether the stream has replayed everything: it was open and silent for 10 s once, or open
    /// for as long as a replay may take. A busy region is never silent.
    pub fn is_replayed(&mut self, now: Moment) -> bool {
        let stream = &mut self.stream;
        if let Some(opened_at) = stream.opened_at {
            let silent_since = stream.last_item_at.max(Some(opened_at));
            stream.was_replayed |= silent_since.is_some_and(|since| since + QUIET <= now)
                || opened_at + REPLAY_LIMIT <= now;
        }
        stream.was_replayed
    }

    /// Whether a live object that an earlier krane rendered may be rewritten now; if not, it waits
    /// for its turn.
    pub fn may_upgrade(&mut self, live: &LiveObject) -> bool {
        let work = self.view.work_of(live);
        work.is_none_or(|work| self.upgrades.ask(work))
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
        self.upgrades.retain(|key| match key {
            WorkKey::Workload(key) => view.workload(key).is_some(),
            WorkKey::Shared(shared) => view.get(&kinds::shared_reference(shared)).is_some(),
        });
        self.outdated.retain(|key, _| view.workload(key).is_some());
        self.config_errors
            .retain(|key, _| view.workload(key).is_some());
        self.replaced_at
            .retain(|key, _| view.workload(key).is_some());
    }
}

/// A state of another kind is none for this controller, whatever its name.
fn of_kind(controller: Controller, mut state: State) -> State {
    state.change = state.change.and_then(|change| {
        if change.is_for(controller) {
            return Ok(change);
        }
        Err(Invalid::new(
            "message",
            "is the state of an object of another kind",
            "look for a control plane that mixes up its streams",
        ))
    });
    state
}

/// What is wrong with a state so broken that even its version is missing: it counts as older than
/// whatever is known of its object.
fn unversioned(state: &State) -> Option<Invalid> {
    let invalid = state.change.as_ref().err();
    invalid.filter(|_| state.version == 0).cloned()
}

fn warnings_of(change: &Result<Change, Invalid>) -> Vec<Invalid> {
    match change {
        Ok(Change::Apply(desired)) => desired.warnings().to_vec(),
        Ok(Change::Delete) | Err(_) => Vec::new(),
    }
}

/// What a change contributes to shared objects.
pub fn member_of(change: &Result<Change, Invalid>) -> Option<Member> {
    match change {
        Ok(Change::Apply(desired)) => Some(desired.member()),
        Ok(Change::Delete) | Err(_) => None,
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
            inner: Mutex::new(Memory::new(controller)),
            room: Notify::new(),
            is_halted: AtomicBool::new(false),
            was_listed: AtomicBool::new(false),
        }
    }

    /// The process is on its way out: from now on no lane, no write and no report starts (D41).
    pub fn halt(&self) {
        self.is_halted.store(true, Ordering::Relaxed);
    }

    /// The first complete lists are done.
    pub fn listed(&self) {
        self.was_listed.store(true, Ordering::Relaxed);
        self.inner.lock().is_listed = true;
    }

    /// Whether complete lists were done once in this process, whatever happened since.
    pub fn was_listed(&self) -> bool {
        self.was_listed.load(Ordering::Relaxed)
    }

    /// Whether nothing may start any more.
    pub fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Relaxed)
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

    /// Does short, synchronous work on what is known.
    pub fn with<T>(&self, work: impl FnOnce(&mut Memory) -> T) -> T {
        let mut memory = self.inner.lock();
        let result = work(&mut memory);
        let has_room = memory.backlog.bytes() <= self.max_backlog;
        drop(memory);
        if has_room {
            self.room.notify_waiters();
        }
        result
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
            ..Memory::new(self.controller)
        };
        drop(memory);
        self.room.notify_waiters();
    }
}
