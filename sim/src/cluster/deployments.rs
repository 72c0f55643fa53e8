//! The controller of Deployments: a ReplicaSet for each template, and the pods rolled from one to
//! the next.

mod status;

use std::sync::Arc;

use serde_json::{Value, json};

use super::agenda::Task;
use super::replica_sets::MANAGER;
use super::requests::Deletion;
use super::schema::kind_named;
use super::store::{Event, Key, Version, controller};
use super::world::World;

/// The label that tells the pods of one template from those of another.
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

/// A Deployment changed, or a ReplicaSet that belongs to one.
pub(super) fn notice(world: &mut World, event: &Event) {
    let key = match event.key.kind {
        "Deployment" if event.after.is_some() => event.key.clone(),
        "ReplicaSet" => {
            let set = event.after.as_ref().or(event.before.as_ref());
            let owner = set.and_then(|set| controller(set.value()));
            match owner.and_then(|uid| world.store.by_uid(uid)) {
                Some(owner) if owner.kind == "Deployment" => owner.clone(),
                _ => return,
            }
        }
        _ => return,
    };
    let latency = world.options.pace.controller;
    world.later(latency, Task::Sync(key));
}

/// One of a Deployment's ReplicaSets.
struct Set {
    key: Key,
    live: Arc<Version>,
}

impl Set {
    fn wanted(&self) -> u64 {
        self.live.value()["spec"]["replicas"].as_u64().unwrap_or(1)
    }

    fn count(&self, field: &str) -> u64 {
        let status = &self.live.value()["status"];
        status[field].as_u64().unwrap_or_default()
    }

    fn revision(&self) -> u64 {
        let revision = self.live.metadata("annotations")[REVISION].as_str();
        revision
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }
}

/// Brings one Deployment and its ReplicaSets a step closer together.
pub(super) fn sync(world: &mut World, key: &Key) {
    let Some(live) = world.store.get(key).cloned() else {
        return;
    };
    let sets = sets_of(world, key, live.uid());
    let template = bare_template(live.value());
    let (new, old): (Vec<_>, Vec<_>) = sets
        .into_iter()
        .partition(|set| bare_template(set.live.value()) == template);
    let mut old: Vec<_> = old.into_iter().collect();
    let mut new: Vec<_> = new.into_iter().collect();
    // Of two with one template the first is meant.
    old.extend(new.drain(new.len().min(1)..));
    let new = new.pop();
    if !live.is_terminating() {
        step(world, key, &live, new.as_ref(), &old);
    }
    status::tell(world, key);
}

fn step(world: &mut World, key: &Key, live: &Version, new: Option<&Set>, old: &[Set]) {
    let spec = &live.value()["spec"];
    let wanted = spec["replicas"].as_u64().unwrap_or(1);
    let (surge, unavailable) = room(spec, wanted);
    let total: u64 = old.iter().chain(new).map(Set::wanted).sum();
    if spec["paused"] == true {
        if let Some(set) =
            new.filter(|set| old.iter().all(|old| old.wanted() == 0) && set.wanted() != wanted)
        {
            scale(world, set, wanted);
        }
        return;
    }
    let is_all_at_once = spec["strategy"]["type"] == "Recreate";
    if is_all_at_once
        && old
            .iter()
            .any(|set| set.count("replicas") > 0 || set.wanted() > 0)
    {
        for set in old.iter().filter(|set| set.wanted() > 0) {
            scale(world, set, 0);
        }
        return;
    }
    let Some(new) = new else {
        let replicas = wanted.min((wanted + surge).saturating_sub(total));
        create(world, key, live, old, replicas);
        return;
    };
    tell_revision(world, key, live, new, old);
    if new.wanted() > wanted {
        scale(world, new, wanted);
        return;
    }
    let more = (wanted + surge)
        .saturating_sub(total)
        .min(wanted - new.wanted());
    if more > 0 {
        scale(world, new, new.wanted() + more);
        return;
    }
    let least = wanted.saturating_sub(unavailable);
    let missing = new.wanted().saturating_sub(new.count("availableReplicas"));
    let surplus = total.saturating_sub(least).saturating_sub(missing);
    scale_down(world, new, old, least, surplus);
    forget_oldest(world, spec, old);
}

/// Those that do not work go first, then as many as others can do without.
fn scale_down(world: &mut World, new: &Set, old: &[Set], least: u64, mut surplus: u64) {
    let available: u64 = old
        .iter()
        .chain([new])
        .map(|set| set.count("availableReplicas"))
        .sum();
    let mut spare = available.saturating_sub(least);
    for set in old.iter().filter(|set| set.wanted() > 0) {
        let idle = set.wanted().saturating_sub(set.count("availableReplicas"));
        let idle = idle.min(surplus);
        surplus -= idle;
        let working = (set.wanted() - idle).min(spare).min(surplus);
        surplus -= working;
        spare -= working;
        if idle + working > 0 {
            scale(world, set, set.wanted() - idle - working);
        }
    }
}

/// How many pods there may be too many, and how many may be missing.
fn room(spec: &Value, wanted: u64) -> (u64, u64) {
    let rolling = &spec["strategy"]["rollingUpdate"];
    let resolve = |value: &Value, rounds_up: bool| {
        let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
        match percent.and_then(|percent| percent.parse::<u64>().ok()) {
            Some(percent) if rounds_up => (wanted * percent).div_ceil(100),
            Some(percent) => wanted * percent / 100,
            None => value.as_u64().unwrap_or_default(),
        }
    };
    let surge = resolve(&rolling["maxSurge"], true);
    let unavailable = resolve(&rolling["maxUnavailable"], false);
    // Both may round to nothing, and then nothing would ever move.
    (
        surge,
        if surge == 0 {
            unavailable.max(1)
        } else {
            unavailable
        },
    )
}

fn create(world: &mut World, key: &Key, live: &Version, old: &[Set], replicas: u64) {
    let Some(kind) = kind_named("ReplicaSet") else {
        return;
    };
    let spec = &live.value()["spec"];
    let hash = hash(&spec["template"]);
    let mut template = spec["template"].clone();
    template["metadata"]["labels"][HASH] = json!(hash);
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][HASH] = json!(hash);
    let revision = old.iter().map(Set::revision).max().unwrap_or_default() + 1;
    let set = json!({
        "metadata": {
            "name": format!("{}-{hash}", key.name),
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision.to_string()},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": &*key.name,
                "uid": live.uid(), "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": replicas, "minReadySeconds": spec["minReadySeconds"],
            "selector": selector, "template": template,
        },
    });
    if world.create(kind, &key.namespace, set, MANAGER).is_ok() {
        annotate(world, key, revision);
    } else {
        // One that is being deleted may still have the name.
        let latency = world.options.pace.ready;
        world.later(latency, Task::Sync(key.clone()));
    }
}

/// A template that was used before gets the newest number.
fn tell_revision(world: &mut World, key: &Key, live: &Version, new: &Set, old: &[Set]) {
    let newest = old.iter().map(Set::revision).max().unwrap_or_default();
    let revision = new.revision().max(newest + 1);
    if new.revision() != revision {
        annotate(world, &new.key, revision);
    }
    let known = &live.metadata("annotations")[REVISION];
    if *known != *revision.to_string() {
        annotate(world, key, revision);
    }
}

fn annotate(world: &mut World, key: &Key, revision: u64) {
    let _ = world.change(key, MANAGER, "", |object| {
        object["metadata"]["annotations"][REVISION] = json!(revision.to_string());
    });
}

fn scale(world: &mut World, set: &Set, replicas: u64) {
    let _ = world.change(&set.key, MANAGER, "", |object| {
        object["spec"]["replicas"] = json!(replicas);
    });
}

/// More than the last few that have no pods any more are not kept.
fn forget_oldest(world: &mut World, spec: &Value, old: &[Set]) {
    let kept = spec["revisionHistoryLimit"].as_u64().unwrap_or(10);
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    let mut idle: Vec<_> = old
        .iter()
        .filter(|set| set.wanted() == 0 && set.count("replicas") == 0)
        .collect();
    idle.sort_by_key(|set| std::cmp::Reverse(set.revision()));
    for set in idle.into_iter().skip(kept) {
        let _ = world.delete(&set.key, &Deletion::default());
    }
}

/// In the order in which they were made.
fn sets_of(world: &World, key: &Key, uid: &str) -> Vec<Set> {
    let keys = world.store.dependents(uid).into_iter();
    let mut sets: Vec<_> = keys
        .filter(|set| set.kind == "ReplicaSet" && set.namespace == key.namespace)
        .filter_map(|key| {
            let live = Arc::clone(world.store.get(&key)?);
            (controller(live.value()) == Some(uid) && !live.is_terminating())
                .then_some(Set { key, live })
        })
        .collect();
    sets.sort_by_key(|set| (set.revision(), set.key.clone()));
    sets
}

/// The template without what this controller adds.
fn bare_template(object: &Value) -> Value {
    let mut template = object["spec"]["template"].clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    template
}

/// A short word that stands for a template.
fn hash(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let hash = template
        .to_string()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
    let digits = hash.to_string();
    digits
        .bytes()
        .map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()]))
        .collect()
}
