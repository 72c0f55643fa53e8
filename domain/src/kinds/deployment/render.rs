//! A workload as a ReplicaSet.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::{DesiredDeployment, autoscaler, template};
use crate::kinds::{RENDERER, Rules, WantedKind};
use crate::labels;
use crate::object::{LiveObject, Rendered, Resource};

/// Seconds a pod must be ready before it counts as available.
const MIN_READY_SECONDS: u32 = 30;

/// The ReplicaSet of a workload.
///
/// Of the live one only the number of pods goes in, where an autoscaler may have a say in it.
pub(super) fn render(
    desired: &DesiredDeployment,
    rules: &Rules,
    live: Option<&LiveObject>,
) -> Rendered {
    let key = &desired.key;
    let pod_labels = pod_labels(desired);
    let mut own_labels = pod_labels.clone();
    desired.origin.mark(&mut own_labels);
    let mut annotations = json!({ labels::RENDERER_ANNOTATION: RENDERER });
    if let Some(readiness_id) = &desired.readiness_id {
        annotations[labels::READINESS_ID] = Value::from(&**readiness_id);
    }
    let mut body = json!({
        "apiVersion": Resource::ReplicaSet.api_version(),
        "kind": Resource::ReplicaSet.kind(),
        "metadata": {
            "name": &*key.name,
            "namespace": &*key.namespace,
            "labels": own_labels,
            "annotations": annotations,
        },
        "spec": {
            "minReadySeconds": MIN_READY_SECONDS,
            "selector": { "matchLabels": { labels::DEPLOYMENT_ID: &*desired.deployment_id } },
            "template": template::template(desired, rules, &pod_labels),
        },
    });
    if let Some(replicas) = autoscaler::replicas(desired, live) {
        body["spec"]["replicas"] = Value::from(replicas);
    }
    let of_live = live.filter(|_| desired.autoscaling.is_some());
    Rendered {
        reference: desired.reference(),
        body,
        made_for: of_live.map(|live| live.resource_version),
        keeps_template: false,
    }
}

/// The labels of the pods, all of them also of the ReplicaSet: cluster policies select by them. Who
/// wants the workload is none of theirs: whoever takes it over starts no pod anew.
fn pod_labels(desired: &DesiredDeployment) -> Map<String, Value> {
    let mut labels = identity_labels(desired);
    labels.insert(labels::BUILD_ID.to_owned(), Value::from(&*desired.build_id));
    labels.insert(labels::INJECT.to_owned(), Value::from("true"));
    labels
}

/// The labels of everything a workload is made of.
pub(super) fn identity_labels(desired: &DesiredDeployment) -> Map<String, Value> {
    [
        (labels::WORKSPACE_ID, &*desired.workspace_id),
        (labels::PROJECT_ID, &desired.project_id),
        (labels::APP_ID, &desired.app_id),
        (labels::ENVIRONMENT_ID, &desired.environment_id),
        (labels::DEPLOYMENT_ID, &desired.deployment_id),
        (labels::MANAGED_BY, labels::MANAGER),
        (labels::COMPONENT, labels::COMPONENT_DEPLOYMENT),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Value::from(value)))
    .collect()
}
