//! The end of namespaces: everything in them goes, then they go.

use std::sync::Arc;

use serde_json::json;

use super::agenda::Task;
use super::requests::Deletion;
use super::store::{Event, Key, Version};
use super::world::World;

/// A namespace began to go, or something in one that goes went.
pub(super) fn notice(world: &mut World, event: &Event) {
    let key = if event.key.kind == "Namespace" {
        event.key.clone()
    } else if event.after.is_none() {
        Key::new("Namespace", "", &event.key.namespace)
    } else {
        return;
    };
    let namespace = world.store.get(&key);
    if namespace.is_some_and(|namespace| namespace.is_terminating()) {
        let latency = world.options.pace.controller;
        world.later(latency, Task::Sync(key));
    }
}

/// Deletes what is left in a terminating namespace, and at last the namespace.
pub(super) fn sync(world: &mut World, key: &Key) {
    let namespace = world.store.get(key);
    if namespace.is_none_or(|namespace| !namespace.is_terminating()) {
        return;
    }
    for object in world.store.in_namespace(&key.name) {
        let live = world.store.get(&object);
        if live.is_some_and(|live| !live.is_terminating()) {
            let _ = world.delete(&object, &Deletion::default());
        }
    }
    if world.store.in_namespace(&key.name).is_empty() {
        world.remove(key);
    }
}

impl World {
    /// A namespace takes nothing new from now on.
    pub(super) fn terminate_namespace(&mut self, key: &Key, live: &Arc<Version>) {
        if live.is_terminating() {
            return;
        }
        let mut object = live.object.clone();
        object.value["metadata"]["deletionTimestamp"] = json!(self.clock.timestamp());
        object.value["status"]["phase"] = json!("Terminating");
        self.commit(key.clone(), object);
    }
}
