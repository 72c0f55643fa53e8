//! What is seen of the cluster, taken in.

use std::collections::BTreeSet;
use std::sync::Arc;

use krane_domain::ids::{Moment, ObjectKey};
use krane_domain::object::Resource;
use krane_domain::view::Effects;

use super::{BrokenWatch, Memory, WatchFailure};
use crate::ports::{Item, Listed};

impl Memory {
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
}
