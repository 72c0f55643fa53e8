//! The garbage collector: what is owned by nobody that is there goes.

use super::agenda::Task;
use super::requests::Deletion;
use super::store::{Event, Key, owners};
use super::world::World;

/// An owner went, or an object came whose owners may never have been there.
pub(super) fn notice(world: &mut World, event: &Event) {
    let latency = world.options.pace.controller;
    if let (Some(before), None) = (&event.before, &event.after) {
        for dependent in world.store.dependents(before.uid()) {
            world.later(latency, Task::Collect(dependent));
        }
        for owner in owners(before.value()) {
            // A foreground deletion waits for the last of them.
            if let Some(owner) = world.store.by_uid(owner).cloned() {
                world.later(latency, Task::Collect(owner));
            }
        }
    }
    if let Some(after) = &event.after {
        let had = event
            .before
            .as_ref()
            .map(|before| before.metadata("ownerReferences"));
        let is_orphan = owners(after.value()).next().is_some() && !world.has_owner(after.value());
        if (is_orphan && had != Some(after.metadata("ownerReferences"))) || is_foreground(after) {
            world.later(latency, Task::Collect(event.key.clone()));
        }
    }
}

fn is_foreground(object: &super::store::Version) -> bool {
    let finalizers = object.metadata("finalizers").as_array();
    let mut finalizers = finalizers.into_iter().flatten();
    object.is_terminating() && finalizers.any(|each| each == "foregroundDeletion")
}

/// Deletes an object that has owners, none of which is there; lets a foreground deletion go on.
pub(super) fn collect(world: &mut World, key: &Key) {
    let Some(object) = world.store.get(key).cloned() else {
        return;
    };
    if is_foreground(&object) {
        let dependents = world.store.dependents(object.uid());
        for dependent in &dependents {
            let _ = world.delete(dependent, &Deletion::default());
        }
        if world.store.dependents(object.uid()).is_empty() {
            let _ = world.change(key, super::replica_sets::MANAGER, "", |object| {
                if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
                    finalizers.retain(|each| each != "foregroundDeletion");
                }
            });
        }
        return;
    }
    let is_owned = owners(object.value()).next().is_some();
    if is_owned && !world.has_owner(object.value()) && !object.is_terminating() {
        let _ = world.delete(key, &Deletion::default());
    }
}
