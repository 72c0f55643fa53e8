//! What every change of the cluster does.

use std::sync::Arc;

use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_domain::testing::applied;
use krane_ports::{Item, WatchEvent};

use super::World;

impl World {
    pub(super) fn next_uid(&mut self) -> Arc<str> {
        self.uids += 1;
        format!("uid-{}", self.uids).into()
    }

    pub(super) fn tell(&mut self, resource: Resource, event: &WatchEvent) {
        self.history.push((self.version, resource, event.clone()));
        self.watchers.retain(|(watched, watcher)| {
            *watched != resource || watcher.send(event.clone()).is_ok()
        });
    }

    pub(super) fn store(&mut self, rendered: &Rendered, uid: &Arc<str>) -> LiveObject {
        self.version += 1;
        let live = applied(rendered, uid, self.version).expect("a rendered object decodes");
        self.put(live)
    }

    pub(super) fn put(&mut self, live: LiveObject) -> LiveObject {
        self.objects.insert(live.reference.clone(), live.clone());
        // Watches select by our label: an object without it looks deleted.
        let event = if live.is_ours() {
            WatchEvent::Applied(Item::Object(live.clone()))
        } else {
            WatchEvent::Deleted(Item::Object(live.clone()))
        };
        self.tell(live.reference.resource, &event);
        live
    }

    pub(super) fn delete(&mut self, reference: &ObjectRef) {
        if let Some(mut live) = self.objects.remove(reference) {
            self.version += 1;
            live.resource_version = self.version;
            self.tell(reference.resource, &WatchEvent::Deleted(Item::Object(live)));
        }
    }
}
