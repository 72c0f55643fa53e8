//! The objects that Kubernetes Events are about.

use std::sync::Arc;

use krane_domain::ids::{ObjectKey, WorkKey};
use krane_domain::kinds;
use krane_domain::object::{LiveObject, ObjectRef};

use super::Store;

impl Store {
    /// The first `most` objects whose deletion is held.
    pub(crate) fn held_deletions(&self, most: usize) -> Vec<ObjectKey> {
        self.with(|memory| {
            let held = memory.brake.held().iter();
            held.take(most).cloned().collect()
        })
    }

    /// The live object of this key, or its namespace when there is no such object.
    pub(crate) fn live_or_namespace(
        &self,
        key: &WorkKey,
        namespace: &ObjectRef,
    ) -> Option<Arc<LiveObject>> {
        self.with(|memory| {
            let live = match key {
                WorkKey::Workload(key) => memory.view.workload(key),
                WorkKey::Shared(shared) => memory.view.get(&kinds::shared_reference(shared)),
            };
            live.or_else(|| memory.view.get(namespace)).cloned()
        })
    }
}
