//! Objects that somebody else's finalizer holds.

use krane_domain::object::ObjectRef;
use krane_ports::{Deletion, Item, WatchEvent};

use super::{FakeCluster, World};

impl FakeCluster {
    /// A finalizer holds this object from now on: what deletes it only marks it.
    pub(crate) fn hold(&self, reference: &ObjectRef) {
        self.world.lock().finalized.insert(reference.clone());
    }

    /// The finalizer is removed; what was marked goes.
    pub(crate) fn let_go(&self, reference: &ObjectRef) {
        let mut world = self.world.lock();
        world.finalized.remove(reference);
        let marked = world.objects.get(reference);
        if marked.is_some_and(|live| live.is_terminating) {
            world.delete(reference);
        }
    }
}

impl World {
    /// Deletes, or marks what a finalizer holds.
    pub(super) fn begin_delete(&mut self, reference: &ObjectRef) -> Deletion {
        if !self.finalized.contains(reference) {
            self.delete(reference);
            return Deletion::Gone;
        }
        self.version += 1;
        if let Some(live) = self.objects.get_mut(reference) {
            live.is_terminating = true;
            live.resource_version = self.version;
            let marked = WatchEvent::Applied(Item::Object(live.clone()));
            self.tell(reference.resource, &marked);
        }
        Deletion::Begun
    }
}
