//! The HorizontalPodAutoscaler of a workload, and who decides how many pods it has (D11c).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Autoscaling, DesiredDeployment, render};
use crate::drift;
use crate::kinds::RENDERER;
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};

/// CPU target of a policy that names none, in percent of the request.
const DEFAULT_CPU_THRESHOLD: u32 = 80;

/// Seconds of lower demand before pods are taken away.
const SCALE_DOWN_WINDOW_SECONDS: u32 = 60;

/// How many pods to ask for; `None` where that is somebody else's to say.
///
/// A field that krane owns and leaves out falls back to the API server's default of one pod. So
/// while krane owns it, the live value is rendered, until the autoscaler has changed it once.
pub(super) fn replicas(desired: &DesiredDeployment, live: Option<&LiveObject>) -> Option<u32> {
    let Some(policy) = desired.autoscaling else {
        return Some(desired.replicas);
    };
    let at_first = desired.replicas.max(policy.min_replicas);
    let Some(live) = live else {
        return Some(at_first);
    };
    if !drift::owns(live, &["spec", "replicas"]) {
        return None;
    }
    let count = live.value()["spec"]["replicas"].as_u64();
    // An autoscaler rests while its target has no pods at all.
    let count = count.and_then(|count| u32::try_from(count).ok());
    Some(count.filter(|count| *count > 0).unwrap_or(at_first))
}

/// Leaves the number of pods to whoever else owns it, for an autoscaler that nobody can see may (D38b).
pub(super) fn leave_replicas_of_others(mut rendered: Rendered, live: &LiveObject) -> Rendered {
    if !drift::owns(live, &["spec", "replicas"]) {
        if let Some(spec) = rendered.body["spec"].as_object_mut() {
            spec.remove("replicas");
        }
        rendered.made_for = Some(live.resource_version);
    }
    rendered
}

/// What hangs on the live ReplicaSet of a workload.
pub(super) fn dependants(desired: &DesiredDeployment, owner: &LiveObject) -> Vec<Rendered> {
    let policy = desired.autoscaling.as_ref();
    policy
        .map(|policy| autoscaler(desired, policy, owner))
        .into_iter()
        .collect()
}

/// What may hang on it from earlier states.
pub(super) fn unneeded(desired: &DesiredDeployment) -> Vec<ObjectRef> {
    match desired.autoscaling {
        Some(_) => Vec::new(),
        None => vec![reference(desired)],
    }
}

fn reference(desired: &DesiredDeployment) -> ObjectRef {
    let key = &desired.key;
    ObjectRef::new(
        Resource::HorizontalPodAutoscaler,
        Arc::clone(&key.namespace),
        Arc::clone(&key.name),
    )
}

/// The autoscaler of a workload whose number of pods may change.
fn autoscaler(desired: &DesiredDeployment, policy: &Autoscaling, owner: &LiveObject) -> Rendered {
    let reference = reference(desired);
    let target = json!({
        "apiVersion": owner.reference.resource.api_version(),
        "kind": owner.reference.resource.kind(),
        "name": &*owner.reference.name,
    });
    let mut owner_reference = target.clone();
    owner_reference["uid"] = Value::from(&*owner.uid);
    // Without blockOwnerDeletion: where its admission plugin is on, it takes a right on the
    // finalizers of ReplicaSets that krane does not have.
    owner_reference["controller"] = Value::Bool(true);
    let body = json!({
        "apiVersion": reference.resource.api_version(),
        "kind": reference.resource.kind(),
        "metadata": {
            "name": &*reference.name,
            "namespace": &*reference.namespace,
            "labels": render::identity_labels(desired),
            "annotations": { labels::RENDERER_ANNOTATION: RENDERER },
            "ownerReferences": [owner_reference],
        },
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": policy.min_replicas,
            "maxReplicas": policy.max_replicas,
            "behavior": {
                "scaleDown": { "stabilizationWindowSeconds": SCALE_DOWN_WINDOW_SECONDS },
            },
            "metrics": metrics(policy),
        },
    });
    Rendered::new(reference, body)
}

fn metrics(policy: &Autoscaling) -> Vec<Value> {
    let utilization = |resource: &str, percent: u32| {
        json!({
            "type": "Resource",
            "resource": {
                "name": resource,
                "target": { "type": "Utilization", "averageUtilization": percent },
            },
        })
    };
    let memory = policy
        .memory_threshold
        .map(|percent| utilization("memory", percent));
    let cpu = policy.cpu_threshold.unwrap_or(DEFAULT_CPU_THRESHOLD);
    memory
        .into_iter()
        .chain([utilization("cpu", cpu)])
        .collect()
}
