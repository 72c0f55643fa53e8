//! The whole state of a simulated cluster, and what follows from a write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::agenda::{Agenda, Task};
use super::apply::Owned;
use super::clock::Clock;
use super::nodes::{Addresses, Nodes};
use super::options::Options;
use super::store::{Backup, Event, Key, Store, Version, owners};
use super::tokens::Tokens;
use super::{deployments, garbage, namespaces, pods, replica_sets};
use crate::bell::{Bell, Listener};

pub(super) struct World {
    pub(super) options: Options,
    pub(super) clock: Clock,
    pub(super) chance: fastrand::Rng,
    pub(super) store: Store,
    pub(super) agenda: Agenda,
    pub(super) nodes: Nodes,
    pub(super) addresses: Addresses,
    pub(super) tokens: Tokens,
    /// Kinds whose definition is not there.
    pub(super) absent_kinds: BTreeSet<&'static str>,
    /// Kinds whose definition is being removed.
    pub(super) terminating_kinds: BTreeSet<&'static str>,
    /// How often a kind's definition was removed: its watches end.
    pub(super) removals: BTreeMap<&'static str, u64>,
    /// How often all watches were cut.
    pub(super) cuts: u64,
    news: Bell,
}

impl World {
    pub(super) fn new(options: Options) -> Self {
        Self {
            clock: Clock::new(),
            chance: fastrand::Rng::with_seed(options.seed),
            store: Store::new(options.history),
            agenda: Agenda::default(),
            nodes: Nodes::new(options.nodes),
            addresses: Addresses::default(),
            tokens: Tokens::default(),
            absent_kinds: BTreeSet::new(),
            terminating_kinds: BTreeSet::new(),
            removals: BTreeMap::new(),
            cuts: 0,
            news: Bell::default(),
            options,
        }
    }

    /// Tells whenever something happened that a watch or the driver may want to see.
    pub(super) fn news(&self) -> Listener {
        self.news.listener()
    }

    pub(super) fn tell(&self) {
        self.news.ring();
    }

    pub(super) fn uid(&mut self) -> String {
        let (high, low) = (self.chance.u64(..), self.chance.u64(..));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48 & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// What the server appends to a generated name.
    pub(super) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let letters = (0..5).map(|_| char::from(LETTERS[self.chance.usize(..LETTERS.len())]));
        letters.collect()
    }

    /// A time between half of this one and one and a half.
    pub(super) fn about(&mut self, time: Duration) -> Duration {
        time.mul_f64(0.5 + self.chance.f64())
    }

    pub(super) fn later(&mut self, about: Duration, task: Task) {
        let at = Clock::now() + self.about(about);
        self.agenda.add(at, task);
    }

    /// Stores an object and lets everybody know who looks after such objects.
    pub(super) fn commit(&mut self, key: Key, object: Owned) -> Arc<Version> {
        let event = self.store.commit(key, Some(object));
        self.follow_up(&event);
        let after = event.after.as_ref();
        Arc::clone(after.unwrap_or_else(|| unreachable!("an object was put there")))
    }

    /// Takes an object away for good.
    pub(super) fn remove(&mut self, key: &Key) {
        if self.store.get(key).is_some() {
            let event = self.store.commit(key.clone(), None);
            self.follow_up(&event);
        }
    }

    fn follow_up(&mut self, event: &Event) {
        pods::count(self, event);
        if self.options.has_controllers {
            self.let_controllers_know(event);
        }
        self.tell();
    }

    fn let_controllers_know(&mut self, event: &Event) {
        deployments::notice(self, event);
        replica_sets::notice(self, event);
        pods::notice(self, event);
        garbage::notice(self, event);
        namespaces::notice(self, event);
    }

    /// Everything stored is as it was in the backup. Watches break; controllers and nodes look at
    /// all there is, as after their own start. What runs on nodes is taken to be what is stored.
    pub(super) fn restore(&mut self, backup: &Backup, bump: u64) {
        for name in self.nodes.names() {
            if let Some(node) = self.nodes.get_mut(&name) {
                node.forget_pods();
            }
        }
        self.store.restore(backup, bump);
        self.cuts += 1;
        for event in self.store.arrivals() {
            pods::count(self, &event);
            let pod = event.after.as_ref().filter(|_| event.key.kind == "Pod");
            let is_placed = pod.is_some_and(|pod| !pod.value()["spec"]["nodeName"].is_null());
            if self.options.has_controllers && !is_placed {
                self.let_controllers_know(&event);
            }
        }
        for node in self.nodes.names() {
            self.resume_pods(&node);
        }
        self.tell();
    }

    /// Does everything that is due.
    pub(super) fn run_due(&mut self) {
        let now = Clock::now();
        while let Some(task) = self.agenda.take(now) {
            self.carry_out(task);
        }
    }

    fn carry_out(&mut self, task: Task) {
        match task {
            Task::Sync(key) if key.kind == "Deployment" => deployments::sync(self, &key),
            Task::Sync(key) if key.kind == "ReplicaSet" => replica_sets::sync(self, &key),
            Task::Sync(key) if key.kind == "Namespace" => namespaces::sync(self, &key),
            Task::Sync(_) => {}
            Task::Collect(key) => garbage::collect(self, &key),
            Task::Pod(key, uid, step) => pods::step(self, &key, &uid, step),
            Task::DoubtNode(node) => pods::doubt_node(self, &node),
            Task::EvictNode(node) => pods::evict_node(self, &node),
        }
    }

    /// A controller's write of a status; what it is refused it will try again.
    pub(super) fn write_status(&mut self, key: &Key, manager: &str, status: Value) {
        let _ = self.change_status(key, manager, |old| *old = status);
    }

    /// Whether any owner of an object is there.
    pub(super) fn has_owner(&self, object: &Value) -> bool {
        owners(object).any(|uid| self.store.by_uid(uid).is_some())
    }
}
