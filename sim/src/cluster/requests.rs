//! What requests do to the store, whoever makes them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::apply::{Owned, Writer, apply, update};
use super::refusals::{self, Broken, Status};
use super::schema::Kind;
use super::services;
use super::store::{Key, Version};
use super::validate;
use super::world::World;

/// What a delete asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Deletion {
    pub(super) uid: Option<Arc<str>>,
    /// Seconds; the pod's own when absent.
    pub(super) grace: Option<u64>,
    /// Wait for dependents to go first.
    pub(super) is_foreground: bool,
}

impl World {
    pub(super) fn writer(&self, manager: &str, subresource: &str) -> Writer {
        Writer {
            manager: manager.into(),
            subresource: subresource.into(),
            time: self.clock.timestamp().into(),
        }
    }

    /// The live object of a kind that is there.
    pub(super) fn live(&self, key: &Key) -> Result<Option<Arc<Version>>, Status> {
        self.kind_is_there(key)?;
        Ok(self.store.get(key).cloned())
    }

    /// The live object, which a request needs.
    fn found(&self, key: &Key) -> Result<Arc<Version>, Status> {
        let live = self.live(key)?;
        live.ok_or_else(|| refusals::not_found(key.kind(), &key.name))
    }

    fn kind_is_there(&self, key: &Key) -> Result<(), Status> {
        if self.absent_kinds.contains(key.kind) {
            return Err(refusals::kind_missing());
        }
        Ok(())
    }

    /// Creates an object by POST.
    pub(super) fn create(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        mut body: Value,
        manager: &str,
    ) -> Result<Arc<Version>, Status> {
        let generated = body["metadata"]["generateName"].as_str().map(str::to_owned);
        if let Some(prefix) = generated.filter(|_| body["metadata"]["name"].is_null()) {
            body["metadata"]["name"] = json!(format!("{prefix}{}", self.suffix()));
        }
        let name = body["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let key = Key::new(
            kind.name,
            if kind.is_namespaced { namespace } else { "" },
            &name,
        );
        self.kind_is_there(&key)?;
        complete_identity(&key, &mut body)?;
        if kind.name == "Pod" && body["spec"]["serviceAccountName"].is_null() {
            body["spec"]["serviceAccountName"] = json!("default");
        }
        let writer = self.writer(manager, "");
        let object = update(kind, None, body, &writer)?;
        if self.store.get(&key).is_some() {
            self.namespace_takes(&key)?;
            return Err(refusals::exists(kind, &name));
        }
        self.insert(key, object)
    }

    /// Server-side apply.
    pub(super) fn apply(
        &mut self,
        key: &Key,
        body: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Arc<Version>, Status> {
        self.kind_is_there(key)?;
        let kind = key.kind();
        let version = body["apiVersion"].as_str().unwrap_or_default();
        if version != kind.api_version() {
            return Err(refusals::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {version}, \
                 expected: {}",
                kind.api_version()
            )));
        }
        if body["metadata"].get("managedFields").is_some() {
            return Err(refusals::bad_request("metadata.managedFields must be nil"));
        }
        let live = self.store.get(key).cloned();
        let mut body = body.clone();
        let wanted_version = take_version(&mut body);
        let writer = self.writer(manager, "");
        let live_object = live.as_ref().map(|live| &live.object);
        let mut object = apply(kind, live_object, &body, &writer, force)?;
        complete_identity(key, &mut object.value)?;
        if let Some(live) = live {
            return self.replace(key, &live, object, wanted_version, "");
        }
        if let Some(uid) = object.value["metadata"]["uid"].as_str() {
            return Err(refusals::uid_of_nothing(kind, &key.name, uid));
        }
        self.insert(key.clone(), object)
    }

    /// A change by one of the cluster's own parts, which leaves `managedFields` to the server.
    pub(super) fn change(
        &mut self,
        key: &Key,
        manager: &str,
        subresource: &str,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Arc<Version>, Status> {
        let kind = key.kind();
        let live = self.found(key)?;
        let mut new = live.value().clone();
        edit(&mut new);
        if new == *live.value() {
            return Ok(live);
        }
        let writer = self.writer(manager, subresource);
        let object = update(kind, Some(&live.object), new, &writer)?;
        self.replace(key, &live, object, None, subresource)
    }

    /// A write of a status by the part of the cluster that keeps it.
    pub(super) fn change_status(
        &mut self,
        key: &Key,
        manager: &str,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Arc<Version>, Status> {
        let before = self.store.get(key).map(|live| &live.value()["status"]);
        let mut status = before.cloned().unwrap_or_default();
        edit(&mut status);
        if before == Some(&status) {
            return self.found(key);
        }
        self.change(key, manager, "status", |object| object["status"] = status)
    }

    /// Any other change of an object that is there; `edit` makes the new whole object of the old.
    pub(super) fn modify(
        &mut self,
        key: &Key,
        manager: &str,
        subresource: &str,
        edit: impl FnOnce(Value) -> Result<Value, Status>,
    ) -> Result<Arc<Version>, Status> {
        let kind = key.kind();
        let live = self.found(key)?;
        let mut new = edit(live.json())?;
        let version = take_version(&mut new);
        complete_identity(key, &mut new)?;
        keep_own_part(&mut new, live.value(), subresource);
        let writer = self.writer(manager, subresource);
        let object = update(kind, Some(&live.object), new, &writer)?;
        self.replace(key, &live, object, version, subresource)
    }

    fn insert(&mut self, key: Key, mut object: Owned) -> Result<Arc<Version>, Status> {
        let kind = key.kind();
        self.namespace_takes(&key)?;
        let uid = self.uid();
        let now = self.clock.timestamp();
        let value = &mut object.value;
        let metadata = &mut value["metadata"];
        metadata["uid"] = json!(uid);
        metadata["creationTimestamp"] = json!(now);
        if has_generation(kind) {
            metadata["generation"] = json!(1);
        }
        first_status(kind, value);
        if kind.name == "Service" {
            services::prepare(self, value, None);
        }
        let broken = validate::created(kind, value);
        if !broken.is_empty() {
            return Err(refusals::invalid(kind, &key.name, &broken));
        }
        if let Some(refusal) = refusals::too_large(refusals::text_length(value)) {
            return Err(refusal);
        }
        Ok(self.commit(key, object))
    }

    fn replace(
        &mut self,
        key: &Key,
        live: &Arc<Version>,
        mut object: Owned,
        wanted_version: Option<u64>,
        subresource: &str,
    ) -> Result<Arc<Version>, Status> {
        let kind = key.kind();
        if wanted_version.is_some_and(|wanted| wanted != live.resource_version) {
            return Err(refusals::stale(kind, &key.name));
        }
        let old = live.value();
        keep_own_part(&mut object.value, old, subresource);
        if kind.name == "Service" && subresource.is_empty() {
            services::prepare(self, &mut object.value, Some(old));
        }
        let uid = object.value["metadata"]["uid"].clone();
        let metadata = &mut object.value["metadata"];
        for field in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
        ] {
            keep(metadata, &old["metadata"], field);
        }
        let mut broken = Vec::new();
        if !uid.is_null() && uid != old["metadata"]["uid"] {
            broken.push(Broken::invalid("metadata.uid", &uid, "field is immutable"));
        }
        // Of a Deployment annotations count as well.
        let is_annotated = kind.name == "Deployment"
            && object.value["metadata"]["annotations"] != old["metadata"]["annotations"];
        if has_generation(kind) && (differs_in_spec(&object.value, old) || is_annotated) {
            let generation = old["metadata"]["generation"].as_u64().unwrap_or(1);
            object.value["metadata"]["generation"] = json!(generation + 1);
        }
        broken.extend(validate::updated(kind, &object.value, old));
        if !broken.is_empty() {
            return Err(refusals::invalid(kind, &key.name, &broken));
        }
        if object.value == *old && object.managers.same_fields(&live.object.managers) {
            return Ok(Arc::clone(live));
        }
        if let Some(refusal) = refusals::too_large(refusals::text_length(&object.value)) {
            return Err(refusal);
        }
        let is_freed = live.is_terminating()
            && object.value["metadata"]
                .get("finalizers")
                .is_none_or(is_empty_list)
            && kind.name != "Pod"
            && kind.name != "Namespace";
        let version = self.commit(key.clone(), object);
        if is_freed {
            self.remove(key);
        }
        Ok(version)
    }

    /// Deletes an object; `None` when it is only marked.
    pub(super) fn delete(&mut self, key: &Key, deletion: &Deletion) -> Result<(), Status> {
        let kind = key.kind();
        let live = self.found(key)?;
        if let Some(uid) = &deletion.uid
            && **uid != *live.uid()
        {
            return Err(refusals::precondition(kind, &key.name, uid, live.uid()));
        }
        if kind.name == "Namespace" {
            self.terminate_namespace(key, &live);
            return Ok(());
        }
        if kind.name == "Pod" {
            self.delete_pod(key, &live, deletion.grace);
            return Ok(());
        }
        let has_finalizers = !live
            .metadata("finalizers")
            .as_array()
            .is_none_or(Vec::is_empty);
        if deletion.is_foreground || has_finalizers {
            let mut object = live.object.clone();
            let metadata = &mut object.value["metadata"];
            if metadata["deletionTimestamp"].is_null() {
                metadata["deletionTimestamp"] = json!(self.clock.timestamp());
                metadata["deletionGracePeriodSeconds"] = json!(0);
                let generation = metadata["generation"].as_u64();
                if let Some(generation) = generation {
                    metadata["generation"] = json!(generation + 1);
                }
                if deletion.is_foreground {
                    add_finalizer(metadata, "foregroundDeletion");
                }
                self.commit(key.clone(), object);
            }
            return Ok(());
        }
        self.remove(key);
        Ok(())
    }

    /// New objects need a namespace that stays.
    fn namespace_takes(&self, key: &Key) -> Result<(), Status> {
        let kind = key.kind();
        if self.terminating_kinds.contains(key.kind) {
            return Err(refusals::kind_terminating(kind, &key.name));
        }
        if !kind.is_namespaced {
            return Ok(());
        }
        let namespace = self.store.get(&Key::new("Namespace", "", &key.namespace));
        match namespace {
            None => Err(refusals::namespace_not_found(&key.namespace)),
            Some(namespace) if namespace.is_terminating() => {
                let (name, namespace) = (&key.name, &key.namespace);
                Err(refusals::namespace_terminating(kind, name, namespace))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Name, namespace, version and kind are those of the request.
fn complete_identity(key: &Key, object: &mut Value) -> Result<(), Status> {
    let kind = key.kind();
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.name);
    let metadata = &mut object["metadata"];
    if metadata["name"]
        .as_str()
        .is_some_and(|name| *name != *key.name)
    {
        return Err(refusals::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            metadata["name"].as_str().unwrap_or_default(),
            key.name
        )));
    }
    metadata["name"] = json!(&*key.name);
    if kind.is_namespaced {
        let namespace = metadata["namespace"].as_str();
        if namespace.is_some_and(|namespace| *namespace != *key.namespace) {
            return Err(refusals::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
        metadata["namespace"] = json!(&*key.namespace);
    }
    Ok(())
}

/// The version that a body insists on; `0` insists on nothing.
fn take_version(body: &mut Value) -> Option<u64> {
    let metadata = body["metadata"].as_object_mut()?;
    let version = metadata.remove("resourceVersion")?;
    version
        .as_str()?
        .parse()
        .ok()
        .filter(|version| *version != 0)
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => new[field] = value.clone(),
        None => {
            if let Some(map) = new.as_object_mut() {
                map.remove(field);
            }
        }
    }
}

/// A write of the object leaves its status alone, a write of the status all but it.
fn keep_own_part(new: &mut Value, old: &Value, subresource: &str) {
    if subresource == "status" {
        let status = new["status"].take();
        let managed = new["metadata"].get_mut("managedFields").map(Value::take);
        *new = old.clone();
        if let Some(managed) = managed {
            new["metadata"]["managedFields"] = managed;
        }
        new["status"] = status;
    } else if subresource.is_empty() || subresource == "scale" {
        keep(new, old, "status");
    }
}

fn has_generation(kind: &Kind) -> bool {
    matches!(
        kind.name,
        "ReplicaSet" | "Deployment" | "CiliumNetworkPolicy" | "Pod" | "PodDisruptionBudget"
    )
}

/// Whether anything but metadata and status differs.
fn differs_in_spec(new: &Value, old: &Value) -> bool {
    fn parts(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
        let map = object.as_object().into_iter().flatten();
        map.filter(|(key, _)| !matches!(key.as_str(), "metadata" | "status"))
    }
    parts(new).ne(parts(old))
}

fn first_status(kind: &Kind, value: &mut Value) {
    match kind.name {
        "ReplicaSet" => value["status"] = json!({"replicas": 0}),
        "Deployment" => value["status"] = json!({}),
        "Service" => value["status"] = json!({"loadBalancer": {}}),
        "PodDisruptionBudget" => {
            value["status"] = json!({
                "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0,
                "expectedPods": 0,
            });
        }
        "Namespace" => {
            value["spec"] = json!({"finalizers": ["kubernetes"]});
            value["status"] = json!({"phase": "Active"});
        }
        "Pod" => value["status"] = json!({"phase": "Pending", "qosClass": "Burstable"}),
        _ => {
            if let Some(map) = value.as_object_mut().filter(|_| kind.is_custom) {
                map.remove("status");
            }
        }
    }
}

fn add_finalizer(metadata: &mut Value, finalizer: &str) {
    if metadata["finalizers"].is_null() {
        metadata["finalizers"] = json!([]);
    }
    if let Some(finalizers) = metadata["finalizers"].as_array_mut() {
        finalizers.push(json!(finalizer));
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_none_or(Vec::is_empty)
}
