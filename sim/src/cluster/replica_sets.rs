//! The controller of ReplicaSets: as many pods as wanted, and a status that counts them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::agenda::Task;
use super::clock::Clock;
use super::requests::Deletion;
use super::schema::kind_named;
use super::selectors::label_selector_matches;
use super::store::{Event, Key, Version, controller};
use super::world::World;

/// Who writes for all controllers.
pub(super) const MANAGER: &str = "kube-controller-manager";

/// Most pods made or deleted at a time.
const BURST: usize = 500;

/// A ReplicaSet changed, or a pod that belongs to one.
pub(super) fn notice(world: &mut World, event: &Event) {
    let key = match event.key.kind {
        "ReplicaSet" if event.after.is_some() => event.key.clone(),
        "Pod" => {
            let pod = event.after.as_ref().or(event.before.as_ref());
            let owner = pod.and_then(|pod| controller(pod.value()));
            match owner.and_then(|uid| world.store.by_uid(uid)) {
                Some(owner) if owner.kind == "ReplicaSet" => owner.clone(),
                _ => return,
            }
        }
        _ => return,
    };
    let latency = world.options.pace.controller;
    world.later(latency, Task::Sync(key));
}

/// Brings one ReplicaSet and its pods together.
pub(super) fn sync(world: &mut World, key: &Key) {
    let Some(set) = world.store.get(key).cloned() else {
        return;
    };
    adopt(world, key, &set);
    let pods = pods_of(world, key, set.uid());
    let active: Vec<_> = pods.into_iter().filter(|(_, pod)| is_active(pod)).collect();
    let wanted = set.value()["spec"]["replicas"].as_u64().unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    if !set.is_terminating() {
        if active.len() < wanted {
            for _ in 0..(wanted - active.len()).min(BURST) {
                if !create_pod(world, key, &set) {
                    break;
                }
            }
        } else if active.len() > wanted {
            let surplus = (active.len() - wanted).min(BURST);
            for pod in first_to_go(&active).into_iter().take(surplus) {
                let _ = world.delete(&pod, &Deletion::default());
            }
        }
    }
    tell_status(world, key, &set);
}

/// Pods that match and that nobody controls become its own; what no longer matches is let go.
fn adopt(world: &mut World, key: &Key, set: &Version) {
    if set.is_terminating() {
        return;
    }
    let selector = set.value()["spec"]["selector"].clone();
    let pods: Vec<(Key, Arc<Version>)> = world
        .store
        .of_kind("Pod", Some(&key.namespace))
        .map(|(key, pod)| (key.clone(), Arc::clone(pod)))
        .collect();
    for (pod_key, pod) in pods {
        let fits = label_selector_matches(&selector, pod.metadata("labels"));
        let owner = controller(pod.value());
        if fits && owner.is_none() && is_active(&pod) {
            let reference = owner_reference(key, set);
            let _ = world.change(&pod_key, MANAGER, "", |object| {
                object["metadata"]["ownerReferences"] = json!([reference]);
            });
        } else if !fits && owner == Some(set.uid()) && !pod.is_terminating() {
            let _ = world.change(&pod_key, MANAGER, "", |object| {
                object["metadata"]["ownerReferences"] = json!([]);
            });
        }
    }
}

fn owner_reference(key: &Key, set: &Version) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": &*key.name, "uid": set.uid(),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Whether another one is worth trying.
fn create_pod(world: &mut World, key: &Key, set: &Version) -> bool {
    let Some(kind) = kind_named("Pod") else {
        return false;
    };
    let template = &set.value()["spec"]["template"];
    let mut metadata = json!({
        "generateName": format!("{}-", key.name),
        "ownerReferences": [owner_reference(key, set)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let pod = json!({"metadata": metadata, "spec": template["spec"]});
    world.create(kind, &key.namespace, pod, MANAGER).is_ok()
}

fn pods_of(world: &World, key: &Key, uid: &str) -> Vec<(Key, Arc<Version>)> {
    let keys = world.store.dependents(uid).into_iter();
    keys.filter(|pod| pod.kind == "Pod" && pod.namespace == key.namespace)
        .filter_map(|key| {
            let pod = world.store.get(&key)?;
            (controller(pod.value()) == Some(uid)).then(|| (key.clone(), Arc::clone(pod)))
        })
        .collect()
}

fn is_active(pod: &Version) -> bool {
    let phase = &pod.value()["status"]["phase"];
    !pod.is_terminating() && phase != "Succeeded" && phase != "Failed"
}

pub(super) fn is_ready(pod: &Version) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

fn condition<'a>(pod: &'a Version, name: &str) -> Option<&'a Value> {
    let conditions = pod.value()["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.find(|condition| condition["type"] == name)
}

/// Unscheduled ones first, then those that run least well and least long.
fn first_to_go(pods: &[(Key, Arc<Version>)]) -> Vec<Key> {
    let mut ranked: Vec<_> = pods.iter().collect();
    ranked.sort_by_cached_key(|(key, pod)| {
        let value = pod.value();
        let phase = match value["status"]["phase"].as_str() {
            Some("Pending") => 0,
            Some("Running") => 2,
            _ => 1,
        };
        let cost = pod.metadata("annotations")["controller.kubernetes.io/pod-deletion-cost"]
            .as_str()
            .and_then(|cost| cost.parse::<i32>().ok());
        let restarts = value["status"]["containerStatuses"][0]["restartCount"].as_u64();
        let since = condition(pod, "Ready").map(|ready| ready["lastTransitionTime"].to_string());
        (
            value["spec"]["nodeName"].is_string(),
            phase,
            is_ready(pod),
            cost.unwrap_or_default(),
            // Ready for a shorter time first, then with more restarts, then made later.
            std::cmp::Reverse(since),
            std::cmp::Reverse(restarts),
            std::cmp::Reverse(pod.text("creationTimestamp").to_owned()),
            key.clone(),
        )
    });
    ranked.into_iter().map(|(key, _)| key.clone()).collect()
}

fn tell_status(world: &mut World, key: &Key, set: &Version) {
    let pods = pods_of(world, key, set.uid());
    let spec = &set.value()["spec"];
    let least = spec["minReadySeconds"].as_u64().unwrap_or_default();
    let least = std::time::Duration::from_secs(least);
    let (mut all, mut labelled, mut ready, mut available) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut next = None;
    let now = Clock::now();
    for (_, pod) in pods.iter().filter(|(_, pod)| is_active(pod)) {
        all += 1;
        let labels = &spec["template"]["metadata"]["labels"];
        let wanted = labels.as_object().into_iter().flatten();
        let has_all =
            |(key, value): (&String, &Value)| pod.metadata("labels").get(key) == Some(value);
        labelled += u64::from(wanted.into_iter().all(has_all));
        if !is_ready(pod) {
            continue;
        }
        ready += 1;
        let since = condition(pod, "Ready").and_then(|ready| ready["lastTransitionTime"].as_str());
        match since.and_then(|since| world.clock.instant(since)) {
            Some(since) if since + least > now => {
                let due = since + least;
                next = Some(next.map_or(due, |next: tokio::time::Instant| next.min(due)));
            }
            _ => available += 1,
        }
    }
    let mut status = json!({"replicas": all, "observedGeneration": set.metadata("generation")});
    for (field, count) in [
        ("fullyLabeledReplicas", labelled),
        ("readyReplicas", ready),
        ("availableReplicas", available),
    ] {
        if count > 0 {
            status[field] = json!(count);
        }
    }
    world.write_status(key, MANAGER, status);
    if let Some(next) = next {
        world.agenda.add(next, Task::Sync(key.clone()));
    }
}
