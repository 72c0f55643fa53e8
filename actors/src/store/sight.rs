//! What is seen of the cluster, taken in.

use std::collections::BTreeSet;
use std::time::Duration;

use krane_domain::ids::{Moment, ObjectKey, WorkKey};
use krane_domain::object::Resource;
use krane_domain::view::Effects;
use krane_ports::{Item, Listed};

use super::{BrokenWatch, Memory, WatchFailure};

/// A first list this old is made again: its version may be one that no watch can begin at.
const STALE: Duration = Duration::from_mins(5);

/// How the first list of a kind went, while those of other kinds are missing.
#[derive(Clone, Copy, Debug)]
pub(super) enum FirstList {
    /// It was complete.
    Done { at: Moment },
    /// It failed, and is not asked for before.
    Failed { not_before: Moment },
}

impl Memory {
    /// Whether a kind was listed before another one failed, and not long ago.
    pub(crate) fn is_listed_already(&self, resource: Resource, now: Moment) -> bool {
        let first = self.first_lists.get(&resource);
        first.is_some_and(|first| match first {
            FirstList::Done { at } => now.saturating_sub(*at) < STALE,
            FirstList::Failed { .. } => false,
        })
    }

    /// How long the first list of a kind has to wait, because the server asked for it.
    pub(crate) fn list_wait(&self, resource: Resource, now: Moment) -> Duration {
        match self.first_lists.get(&resource) {
            Some(FirstList::Failed { not_before }) => not_before.saturating_sub(now),
            Some(FirstList::Done { .. }) | None => Duration::ZERO,
        }
    }

    /// The first list of a kind is complete, unless it is to be asked for again after this time.
    pub(crate) fn note_first_list(
        &mut self,
        resource: Resource,
        failed: Option<Duration>,
        now: Moment,
    ) {
        let first = match failed {
            None => FirstList::Done { at: now },
            Some(asked_for) => FirstList::Failed {
                not_before: now + asked_for,
            },
        };
        self.first_lists.insert(resource, first);
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

    /// A complete list of one kind replaces what was known of it. The kind is there, and seen;
    /// whether its watch works is told elsewhere.
    pub fn replace(&mut self, resource: Resource, listed: Listed, now: Moment) {
        self.kinds_missing.remove(&resource);
        let was_unknown = self.view.set_unknown(resource, false);
        // Of what it lacks, everything that is shown later is news when the version cannot be read.
        let version = listed.resource_version.parse().unwrap_or(0);
        let (mut objects, mut pods) = (Vec::new(), Vec::new());
        for item in listed.items {
            match item {
                Item::Object(live) => objects.push(live),
                Item::Pod(pod) => pods.push(pod),
            }
        }
        let effects = if resource == Resource::Pod {
            self.view.replace_pods(pods)
        } else {
            self.view.replace(resource, objects, version)
        };
        self.take_effects(effects, now);
        if was_unknown {
            self.look_at_all(now);
        }
    }

    /// The cluster was restored from a backup (D43): what was learned from versions, uids and
    /// answers of before is not true of it.
    pub fn cluster_restored(&mut self) {
        self.view.forget_removed();
        self.fuses.clear();
    }

    /// The API server does not know this kind: nothing of it is there. Returns whether that is
    /// news.
    pub fn kind_is_missing(&mut self, resource: Resource, now: Moment) -> bool {
        let effects = if resource == Resource::Pod {
            self.view.replace_pods(Vec::new())
        } else {
            self.view.replace(resource, Vec::new(), u64::MAX)
        };
        self.take_effects(effects, now);
        self.broken_watches.remove(&resource);
        if self.view.set_unknown(resource, false) {
            self.look_at_all(now);
        }
        self.kinds_missing.insert(resource)
    }

    /// krane may not list this kind: what was seen of it is of the past, and says nothing about what
    /// is there. Returns whether that is news.
    pub fn kind_is_forbidden(
        &mut self,
        resource: Resource,
        failure: WatchFailure,
        now: Moment,
    ) -> bool {
        self.watch_failed(resource, failure, now);
        self.kinds_missing.remove(&resource);
        self.view.set_unknown(resource, true)
    }

    /// A kind can be seen again: whatever waited for it goes on, and whatever was decided without it
    /// is decided again.
    fn look_at_all(&mut self, now: Moment) {
        let live = self.view.workloads();
        let mut keys: BTreeSet<ObjectKey> = live.map(|live| live.reference.key()).collect();
        for key in &keys {
            self.backlog.look(&WorkKey::Workload(key.clone()), now);
        }
        self.backlog.retry_now(None, now);
        keys.extend(self.outbox.live().cloned());
        self.observe(keys);
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
}
