//! Everybody else in the cluster: people, other tools, nodes that fail.

use std::sync::Arc;

use krane_domain::object::{LiveObject, ObjectRef};
use krane_domain::refusal::ApiStatus;
use krane_ports::Item;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::agenda::Task;
use super::patches;
use super::requests::Deletion;
use super::schema::{Kind, kind_named};
use super::store::{Backup, Key, Version};
use super::world::World;

/// Somebody with all rights. Answers and refusals are those of the API server.
#[derive(Clone)]
pub struct Admin {
    world: Arc<Mutex<World>>,
}

/// A way to change an object that is there.
#[derive(Clone, Debug)]
pub enum Patch {
    /// A JSON patch.
    Json(Value),
    /// A merge patch.
    Merge(Value),
    /// A strategic merge patch.
    Strategic(Value),
    /// The whole object.
    Put(Value),
}

/// The answer to a request of an [`Admin`].
pub type Answer<T> = Result<T, ApiStatus>;

impl Admin {
    pub(super) fn new(world: Arc<Mutex<World>>) -> Self {
        Self { world }
    }

    /// The whole object as a read answers it.
    pub fn get(&self, object: &ObjectRef) -> Option<Value> {
        let world = self.world.lock();
        world.store.get(&Key::of(object)).map(|found| found.json())
    }

    /// The same as krane reads it, decoded once; nothing when krane cannot read it.
    pub fn live(&self, object: &ObjectRef) -> Option<LiveObject> {
        let found = self.world.lock().store.get(&Key::of(object)).cloned()?;
        match found.item(object.resource) {
            Ok(Item::Object(live)) => Some(live),
            Ok(Item::Pod(_)) | Err(_) => None,
        }
    }

    /// Whether the object is there.
    pub fn has(&self, object: &ObjectRef) -> bool {
        self.world.lock().store.get(&Key::of(object)).is_some()
    }

    /// All objects of a kind, in one namespace or in all.
    pub fn list(&self, kind: &str, namespace: Option<&str>) -> Vec<Value> {
        let world = self.world.lock();
        let Some(kind) = kind_named(kind) else {
            return Vec::new();
        };
        let objects = world.store.of_kind(kind.name, namespace);
        objects.map(|(_, version)| version.json()).collect()
    }

    /// Makes a namespace without any labels of its own.
    pub fn create_namespace(&self, name: &str) -> Answer<Value> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create(body, "kubectl-create")
    }

    /// Creates an object of any kind that the cluster has.
    pub fn create(&self, body: Value, manager: &str) -> Answer<Value> {
        let kind = kind_in(&body)?;
        let namespace = body["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let mut world = self.world.lock();
        let created = world.create(kind, &namespace, body, manager)?;
        Ok(created.json())
    }

    /// Changes an object, or its status or scale.
    pub fn patch(
        &self,
        object: &ObjectRef,
        manager: &str,
        subresource: &str,
        patch: &Patch,
    ) -> Answer<Value> {
        let key = Key::of(object);
        let changed = self
            .world
            .lock()
            .modify(&key, manager, subresource, |live| {
                let mut new = live;
                match patch {
                    Patch::Json(operations) => patches::json(&mut new, operations)?,
                    Patch::Merge(patch) => patches::merge(&mut new, patch),
                    Patch::Strategic(patch) => {
                        patches::strategic(&key.kind().root, &mut new, patch);
                    }
                    Patch::Put(body) => new = body.clone(),
                }
                Ok(new)
            })?;
        Ok(changed.json())
    }

    /// `kubectl scale`.
    pub fn scale(&self, object: &ObjectRef, replicas: u32, manager: &str) -> Answer<Value> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.patch(object, manager, "scale", &patch)
    }

    /// Server-side apply under any name.
    pub fn apply(
        &self,
        object: &ObjectRef,
        body: &Value,
        manager: &str,
        force: bool,
    ) -> Answer<Value> {
        let mut world = self.world.lock();
        let applied = world.apply(&Key::of(object), body, manager, force)?;
        Ok(applied.json())
    }

    /// Deletes an object; `grace` in seconds counts for pods only.
    pub fn delete(&self, object: &ObjectRef, grace: Option<u64>) -> Answer<()> {
        let deletion = Deletion {
            grace,
            ..Deletion::default()
        };
        self.world.lock().delete(&Key::of(object), &deletion)
    }

    /// Deletes an object after everything it owns.
    pub fn delete_in_foreground(&self, object: &ObjectRef) -> Answer<()> {
        let deletion = Deletion {
            is_foreground: true,
            ..Deletion::default()
        };
        self.world.lock().delete(&Key::of(object), &deletion)
    }

    /// Removes the definition of a custom kind: its objects go, its watches end, its path is gone.
    pub fn remove_definition(&self, kind: &str) {
        let Some(kind) = kind_named(kind) else { return };
        let mut world = self.world.lock();
        let objects = world.store.of_kind(kind.name, None);
        let keys: Vec<Key> = objects.map(|(key, _)| key.clone()).collect();
        for key in &keys {
            world.remove(key);
        }
        world.absent_kinds.insert(kind.name);
        *world.removals.entry(kind.name).or_default() += 1;
        world.tell();
    }

    /// The definition of a custom kind is being removed: it takes no new objects.
    pub fn terminate_definition(&self, kind: &str) {
        if let Some(kind) = kind_named(kind) {
            self.world.lock().terminating_kinds.insert(kind.name);
        }
    }

    /// Puts the definition of a custom kind in place. Earlier resource versions are too old.
    pub fn add_definition(&self, kind: &str) {
        let Some(kind) = kind_named(kind) else { return };
        let mut world = self.world.lock();
        world.absent_kinds.remove(kind.name);
        world.terminating_kinds.remove(kind.name);
    }

    /// A container of a running pod ends badly and starts again later.
    pub fn crash_pod(&self, pod: &ObjectRef) {
        self.with_pod(pod, |world, key, pod| world.crash(key, &pod.uid().into()));
    }

    /// The node is short of memory and ends a pod; its ReplicaSet makes another.
    pub fn evict_pod(&self, pod: &ObjectRef) {
        self.with_pod(pod, |world, key, _| world.evict(key));
    }

    /// A pod's probe succeeds or fails from now on.
    pub fn set_pod_ready(&self, pod: &ObjectRef, is_ready: bool) {
        self.with_pod(pod, |world, key, _| world.set_ready(key, is_ready));
    }

    fn with_pod(&self, pod: &ObjectRef, act: impl FnOnce(&mut World, &Key, &Version)) {
        let key = Key::of(pod);
        let mut world = self.world.lock();
        if let Some(pod) = world.store.get(&key).cloned() {
            act(&mut world, &key, &pod);
        }
    }

    /// The names of all nodes.
    pub fn nodes(&self) -> Vec<Arc<str>> {
        self.world.lock().nodes.names()
    }

    /// A node says nothing any more. Its pods are first not ready, later deleted, and then stay
    /// Terminating.
    pub fn lose_node(&self, name: &str) {
        let mut world = self.world.lock();
        let Some(node) = world.nodes.get_mut(name) else {
            return;
        };
        node.is_lost = true;
        let doubt = world.options.pace.doubt;
        world.later(doubt, Task::DoubtNode(name.into()));
        world.tell();
    }

    /// A lost node is back: what was deleted meanwhile ends, the rest is ready again.
    pub fn return_node(&self, name: &str) {
        let mut world = self.world.lock();
        let Some(node) = world.nodes.get_mut(name) else {
            return;
        };
        node.is_lost = false;
        world.agenda.cancel(&Task::DoubtNode(name.into()));
        world.agenda.cancel(&Task::EvictNode(name.into()));
        world.resume_pods(name);
        world.tell();
    }

    /// Every watch's connection breaks.
    pub fn break_watches(&self) {
        let mut world = self.world.lock();
        world.cuts += 1;
        world.tell();
    }

    /// The server forgets what happened: watches from any earlier version expire.
    pub fn compact(&self) {
        self.world.lock().store.compact();
    }

    /// Saves everything that is stored.
    pub fn backup(&self) -> Backup {
        self.world.lock().store.backup()
    }

    /// Restores the cluster: everything is as it was in the backup, and versions count from there,
    /// or from `bump` further. All watches break; one from an earlier version has to list, one from
    /// a later version is silent until that is passed.
    pub fn restore(&self, backup: &Backup, bump: u64) {
        self.world.lock().restore(backup, bump);
    }

    /// The newest resource version.
    pub fn version(&self) -> u64 {
        self.world.lock().store.version()
    }

    /// Other kinds of objects change, so often.
    pub fn skip_versions(&self, count: u64) {
        self.world.lock().store.skip_versions(count);
    }
}

fn kind_in(body: &Value) -> Answer<&'static Kind> {
    let name = body["kind"].as_str().unwrap_or_default();
    kind_named(name).ok_or_else(super::refusals::kind_missing)
}
