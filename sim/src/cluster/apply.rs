//! What a write makes of an object and of who owns its fields.
//!
//! The rules are those of Kubernetes' structured merge; `typed` has the operations on values.

use std::sync::Arc;

use serde_json::{Value, json};

use super::defaults;
use super::field_set::FieldSet;
use super::normal::{normal, unwritten};
use super::ownership::{Manager, Managers, Operation};
use super::refusals::{self, Status};
use super::schema::{Kind, Type};
use super::typed::{check, compare, fields, merge, remove};

/// An object without `managedFields`, and who owns what of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owned {
    pub(super) value: Value,
    pub(super) managers: Managers,
}

/// Who writes, and when.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    pub(super) manager: Arc<str>,
    /// `status`, `scale`, or empty for the object itself.
    pub(super) subresource: Arc<str>,
    /// As RFC 3339 says it, in seconds.
    pub(super) time: Arc<str>,
}

impl Writer {
    fn entry(&self, kind: &Kind, operation: Operation) -> Manager {
        Manager {
            operation,
            name: Arc::clone(&self.manager),
            api_version: kind.api_version().into(),
            subresource: Arc::clone(&self.subresource),
        }
    }
}

/// Server-side apply of `body`. Without a live object it makes one.
pub(super) fn apply(
    kind: &Kind,
    live: Option<&Owned>,
    body: &Value,
    writer: &Writer,
    force: bool,
) -> Result<Owned, Status> {
    let root = &kind.root;
    let problems = check(root, body);
    if !problems.is_empty() {
        return Err(refusals::untyped(kind, body, &problems));
    }
    let nothing = nothing(kind);
    let (value, mut managers) = match live {
        Some(live) if live.managers.is_empty() => {
            (&live.value, before_first_apply(kind, &live.value, writer))
        }
        Some(live) => (&live.value, live.managers.clone()),
        None => (&nothing, Managers::default()),
    };
    let manager = writer.entry(kind, Operation::Apply);
    let merged = merge(root, Some(value), Some(body)).unwrap_or_default();
    let last = managers.fields_of(&manager).cloned();
    let wanted = own_fields(fields(root, body), &manager.subresource);
    managers.set(&manager, wanted, &writer.time);
    let merged = match last {
        Some(last) => prune(root, &merged, &managers, &last),
        None => merged,
    };

    let comparison = compare(root, value, &merged);
    let changed = comparison.modified.union(&comparison.added);
    if !force {
        let conflicts: Vec<_> = managers
            .0
            .iter()
            .filter(|(other, _)| **other != manager)
            .map(|(other, owned)| (other, owned.fields.intersection(&changed)))
            .filter(|(_, fields)| !fields.is_empty())
            .collect();
        if !conflicts.is_empty() {
            return Err(refusals::field_conflict(&conflicts));
        }
    }
    managers.take_from_others(&manager, &changed);
    managers.take_from_others(&manager, &comparison.removed);
    let value = stored(kind, merged, body)?;
    Ok(Owned { value, managers })
}

/// Any other write: `new` takes the place of the live object.
pub(super) fn update(
    kind: &Kind,
    live: Option<&Owned>,
    new: Value,
    writer: &Writer,
) -> Result<Owned, Status> {
    let root = &kind.root;
    let mut new = new;
    let sent = new["metadata"]
        .as_object_mut()
        .and_then(|metadata| metadata.remove("managedFields"));
    let value = stored(kind, new, &Value::Null)?;
    let is_of_object = writer.subresource.is_empty();
    let mut managers = live.map(|live| live.managers.clone()).unwrap_or_default();
    if let Some(Value::Array(entries)) = sent.filter(|_| is_of_object) {
        match &entries[..] {
            [Value::Object(entry)] if entry.is_empty() => managers = Managers::default(),
            [] => {}
            entries => {
                if let Some(sent) = Managers::from_json(entries) {
                    managers = sent;
                }
            }
        }
    }
    if live.is_some() && managers.is_empty() {
        // What nobody applies to is not followed.
        return Ok(Owned { value, managers });
    }
    let nothing = nothing(kind);
    let manager = writer.entry(kind, Operation::Update);
    let old = live.map_or(&nothing, |live| &live.value);
    let time = &writer.time;
    if &*writer.subresource == "scale" {
        // A scale of zero is not written: it takes the field from whoever has it, and owns nothing.
        // A field that nobody has is not followed.
        let (old, new) = (scale_of(old), scale_of(&value));
        let replicas = fields(root, &json!({"spec": {"replicas": 1}}));
        let owns =
            |owned: &super::ownership::Owned| !owned.fields.intersection(&replicas).is_empty();
        if managers.0.values().any(owns) {
            own(root, &old, &new, &manager, time, &mut managers);
        }
    } else {
        own(root, old, &value, &manager, time, &mut managers);
    }
    Ok(Owned { value, managers })
}

fn scale_of(object: &Value) -> Value {
    match object["spec"]["replicas"].as_i64() {
        None | Some(0) => json!({"spec": {}}),
        Some(replicas) => json!({"spec": {"replicas": replicas}}),
    }
}

/// Makes a manager own what it changed.
fn own(
    root: &Type,
    old: &Value,
    new: &Value,
    manager: &Manager,
    time: &Arc<str>,
    managers: &mut Managers,
) {
    let comparison = compare(root, old, new);
    let changed = comparison.modified.union(&comparison.added);
    managers.take_from_others(manager, &changed);
    managers.take_from_others(manager, &comparison.removed);
    let before = managers.fields_of(manager).cloned().unwrap_or_default();
    let owned = before.difference(&comparison.removed).union(&changed);
    managers.set(manager, own_fields(owned, &manager.subresource), time);
}

/// The first apply to an object that nobody follows: what is there belongs to whoever put it there.
fn before_first_apply(kind: &Kind, live: &Value, writer: &Writer) -> Managers {
    let manager = Manager {
        operation: Operation::Update,
        name: "before-first-apply".into(),
        api_version: kind.api_version().into(),
        subresource: Arc::clone(&writer.subresource),
    };
    let mut managers = Managers::default();
    let time = &writer.time;
    own(
        &kind.root,
        &nothing(kind),
        live,
        &manager,
        time,
        &mut managers,
    );
    managers
}

fn nothing(kind: &Kind) -> Value {
    if kind.is_custom {
        return json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": {}});
    }
    unwritten(&kind.root)
}

/// Removes what the manager applied last time and now does not, unless somebody else owns it.
fn prune(root: &Type, merged: &Value, managers: &Managers, applied: &FieldSet) -> Value {
    let named = |set: &FieldSet| set.with_named_fields(Some(root));
    let pruned = remove(root, merged, &named(applied));
    let owned = managers
        .0
        .values()
        .fold(FieldSet::default(), |all, owned| all.union(&owned.fields));
    let all = named(&fields(root, merged));
    let kept = named(&fields(root, &pruned)).union(&named(&owned));
    let pruned = remove(root, merged, &all.difference(&kept));
    let lost = all.difference(&named(&fields(root, &pruned)));
    remove(root, merged, &lost.intersection(&named(applied)))
}

/// Without what nobody owns, and without what the endpoint does not write.
fn own_fields(fields: FieldSet, subresource: &str) -> FieldSet {
    /// Written by the server, or the identity of the object.
    const NOBODYS: [&str; 8] = [
        "f:name",
        "f:namespace",
        "f:creationTimestamp",
        "f:selfLink",
        "f:uid",
        "f:generation",
        "f:managedFields",
        "f:resourceVersion",
    ];
    let fields = fields.without("f:apiVersion").without("f:kind");
    let fields = match subresource {
        "" => fields.without("f:status"),
        "status" => fields.only("f:status"),
        _ => fields.only("f:spec"),
    };
    fields.without_below("f:metadata", &NOBODYS)
}

/// As the server stores it: in one spelling, with its defaults.
fn stored(kind: &Kind, value: Value, sent: &Value) -> Result<Value, Status> {
    let mut value = normal(&kind.root, value, kind.is_custom)
        .map_err(|problem| refusals::inconvertible(kind, sent, &problem))?;
    defaults::fill(kind, &mut value);
    Ok(value)
}
