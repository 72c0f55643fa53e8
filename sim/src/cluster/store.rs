//! Objects, their versions, and what happened to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, OnceLock};

use krane_domain::object::{LiveObject, ObjectRef, Resource, Undecodable};
use krane_domain::pod::PodDigest;
use krane_ports::Item;
use serde_json::{Value, json};

mod backup;

pub use backup::Backup;

use super::apply::Owned;
use super::refusals::{self, Status};
use super::schema::{Kind, kind_named};

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: &'static str,
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

impl Key {
    pub(super) fn new(kind: &'static str, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub(super) fn of(object: &ObjectRef) -> Self {
        Self {
            kind: object.resource.kind(),
            namespace: Arc::clone(&object.namespace),
            name: Arc::clone(&object.name),
        }
    }

    pub(super) fn kind(&self) -> &'static Kind {
        kind_named(self.kind).unwrap_or_else(|| unreachable!("a key is of a known kind"))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// One state of one object.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "Kubernetes' own name of it")]
pub(super) struct Version {
    pub(super) object: Owned,
    pub(super) resource_version: u64,
    item: OnceLock<Result<Item, Undecodable>>,
}

impl Version {
    pub(super) fn new(object: Owned, resource_version: u64) -> Self {
        Self {
            object,
            resource_version,
            item: OnceLock::new(),
        }
    }

    pub(super) fn value(&self) -> &Value {
        &self.object.value
    }

    pub(super) fn metadata(&self, key: &str) -> &Value {
        &self.object.value["metadata"][key]
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.metadata(key).as_str().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        self.text("uid")
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.metadata("deletionTimestamp").is_string()
    }

    /// The whole object, as a read answers it.
    pub(super) fn json(&self) -> Value {
        let mut json = self.object.value.clone();
        let metadata = &mut json["metadata"];
        metadata["resourceVersion"] = json!(self.resource_version.to_string());
        if !self.object.managers.is_empty() {
            metadata["managedFields"] = self.object.managers.to_json();
        }
        json
    }

    /// The object as the port tells it.
    pub(super) fn item(&self, resource: Resource) -> Result<Item, Undecodable> {
        let item = self.item.get_or_init(|| {
            if resource != Resource::Pod {
                return LiveObject::from_json(resource, self.json()).map(Item::Object);
            }
            let mut json = self.object.value.clone();
            json["metadata"]["resourceVersion"] = json!(self.resource_version.to_string());
            PodDigest::from_slice(json.to_string().as_bytes()).map(Item::Pod)
        });
        item.clone()
    }
}

/// Something that happened to an object.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) version: u64,
    pub(super) key: Key,
    pub(super) before: Option<Arc<Version>>,
    pub(super) after: Option<Arc<Version>>,
    /// What was there before under the version of the event: how watches tell that it left.
    left: OnceLock<Arc<Version>>,
}

impl Event {
    pub(super) fn last_seen(&self) -> Option<&Arc<Version>> {
        let before = self.before.as_ref()?;
        let left = || Arc::new(Version::new(before.object.clone(), self.version));
        Some(self.left.get_or_init(left))
    }
}

/// All objects, and the last things that happened.
#[derive(Debug)]
pub(super) struct Store {
    objects: BTreeMap<Key, Arc<Version>>,
    uids: BTreeMap<Arc<str>, Key>,
    /// By the uid of an owner.
    dependents: BTreeMap<Arc<str>, BTreeSet<Key>>,
    history: VecDeque<Arc<Event>>,
    history_length: usize,
    version: u64,
    /// The newest version whose event is forgotten.
    compacted: u64,
}

impl Store {
    pub(super) fn new(history_length: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            uids: BTreeMap::new(),
            dependents: BTreeMap::new(),
            history: VecDeque::new(),
            history_length,
            // Nothing is as old as version 1.
            version: 100,
            compacted: 100,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Version>> {
        self.objects.get(key)
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<&Key> {
        self.uids.get(uid)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Key> {
        let keys = self.dependents.get(uid);
        keys.into_iter().flatten().cloned().collect()
    }

    /// Objects of a kind, in one namespace or in all, by name.
    pub(super) fn of_kind<'a>(
        &'a self,
        kind: &'static str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Version>)> {
        let first = Key::new(kind, namespace.unwrap_or_default(), "");
        self.objects.range(first..).take_while(move |(key, _)| {
            key.kind == kind && namespace.is_none_or(|namespace| *key.namespace == *namespace)
        })
    }

    /// Objects of all kinds in a namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Key> {
        let keys = self.objects.keys();
        keys.filter(|key| *key.namespace == *namespace)
            .cloned()
            .collect()
    }

    /// Puts an object in its place, or takes it away.
    pub(super) fn commit(&mut self, key: Key, object: Option<Owned>) -> Arc<Event> {
        self.version += 1;
        let after = object.map(|object| Arc::new(Version::new(object, self.version)));
        let before = match &after {
            Some(after) => self.objects.insert(key.clone(), Arc::clone(after)),
            None => self.objects.remove(&key),
        };
        if let Some(before) = &before {
            if after.is_none() {
                self.uids.remove(before.uid());
            }
            for owner in owners(before.value()) {
                if let Some(keys) = self.dependents.get_mut(owner) {
                    keys.remove(&key);
                    if keys.is_empty() {
                        self.dependents.remove(owner);
                    }
                }
            }
        }
        if let Some(after) = &after {
            if before.is_none() {
                self.uids.insert(after.uid().into(), key.clone());
            }
            for owner in owners(after.value()) {
                let keys = self.dependents.entry(owner.into()).or_default();
                keys.insert(key.clone());
            }
        }
        let event = Arc::new(Event {
            version: self.version,
            key,
            before,
            after,
            left: OnceLock::new(),
        });
        self.history.push_back(Arc::clone(&event));
        while self.history.len() > self.history_length {
            self.forget_first();
        }
        event
    }

    fn forget_first(&mut self) {
        if let Some(event) = self.history.pop_front() {
            self.compacted = event.version;
        }
    }

    /// Forgets everything that happened: watches from any earlier version expire.
    pub(super) fn compact(&mut self) {
        self.history.clear();
        self.compacted = self.version;
    }

    /// The version counter jumps, as it does when nobody looks at other kinds.
    pub(super) fn skip_versions(&mut self, count: u64) {
        self.version += count;
    }

    /// The first thing that happened after this version and up to that one.
    pub(super) fn next_event(&self, after: u64, until: u64) -> Result<Option<&Arc<Event>>, Status> {
        if after < self.compacted {
            return Err(refusals::expired(after, self.compacted));
        }
        let index = self.history.partition_point(|event| event.version <= after);
        let event = self.history.get(index);
        Ok(event.filter(|event| event.version <= until))
    }

    /// An object as it was at an earlier version that is still remembered.
    pub(super) fn get_as_of(&self, key: &Key, version: u64) -> Option<Arc<Version>> {
        let index = self
            .history
            .partition_point(|event| event.version <= version);
        let mut later = self.history.range(index..);
        match later.find(|event| event.key == *key) {
            Some(event) => event.before.clone(),
            None => self.objects.get(key).cloned(),
        }
    }

    /// The objects of a kind as they were at an earlier version that is still remembered.
    pub(super) fn of_kind_as_of(
        &self,
        kind: &'static str,
        namespace: Option<&str>,
        version: u64,
    ) -> Vec<(Key, Arc<Version>)> {
        let objects = self.of_kind(kind, namespace);
        let mut found: BTreeMap<Key, Arc<Version>> = objects
            .map(|(key, version)| (key.clone(), Arc::clone(version)))
            .collect();
        let index = self
            .history
            .partition_point(|event| event.version <= version);
        for event in self.history.range(index..).rev() {
            let is_meant = event.key.kind == kind
                && namespace.is_none_or(|namespace| *event.key.namespace == *namespace);
            if !is_meant {
                continue;
            }
            match &event.before {
                Some(before) => found.insert(event.key.clone(), Arc::clone(before)),
                None => found.remove(&event.key),
            };
        }
        found.into_iter().collect()
    }

    /// The oldest version that a read can still be answered as of.
    pub(super) fn oldest(&self) -> u64 {
        self.compacted
    }
}

/// The uids of an object's owners.
pub(super) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str())
}

/// The uid of the owner that controls an object.
pub(super) fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.find(|owner| owner["controller"] == true)?["uid"].as_str()
}
