//! A workload as a ReplicaSet.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{DesiredDeployment, template};
use crate::kinds::{RENDERER, Rules};
use crate::labels;
use crate::object::{ObjectRef, Rendered, Resource};

/// Seconds a pod must be ready before it counts as available (R6).
const MIN_READY_SECONDS: u32 = 30;

/// The ReplicaSet of a workload (resources.md §3.3).
pub(crate) fn render(desired: &DesiredDeployment, rules: &Rules) -> Rendered {
    let key = &desired.key;
    let all_labels = all_labels(desired);
    let body = json!({
        "apiVersion": Resource::ReplicaSet.api_version(),
        "kind": Resource::ReplicaSet.kind(),
        "metadata": {
            "name": &*key.name,
            "namespace": &*key.namespace,
            "labels": all_labels,
            "annotations": { labels::RENDERER_ANNOTATION: RENDERER },
        },
        "spec": {
            "replicas": desired.replicas,
            "minReadySeconds": MIN_READY_SECONDS,
            "selector": { "matchLabels": { labels::DEPLOYMENT_ID: &*desired.deployment_id } },
            "template": template::template(desired, rules, &all_labels),
        },
    });
    let reference = ObjectRef::new(
        Resource::ReplicaSet,
        Arc::clone(&key.namespace),
        Arc::clone(&key.name),
    );
    Rendered { reference, body }
}

/// The labels of the ReplicaSet and of its pods: cluster policies select by them.
fn all_labels(desired: &DesiredDeployment) -> Map<String, Value> {
    [
        (labels::WORKSPACE_ID, &*desired.workspace_id),
        (labels::PROJECT_ID, &desired.project_id),
        (labels::APP_ID, &desired.app_id),
        (labels::ENVIRONMENT_ID, &desired.environment_id),
        (labels::DEPLOYMENT_ID, &desired.deployment_id),
        (labels::BUILD_ID, &desired.build_id),
        (labels::MANAGED_BY, labels::MANAGER),
        (labels::COMPONENT, labels::COMPONENT_DEPLOYMENT),
        (labels::INJECT, "true"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Value::from(value)))
    .collect()
}
