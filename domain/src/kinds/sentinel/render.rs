//! A sentinel as a Deployment.

use serde_json::{Value, json};

use super::form::CURRENT;
use super::template::all_labels;
use super::{DesiredSentinel, forms, state, template};
use crate::kinds::{Keep, RENDERER, Rules, WantedKind};
use crate::labels;
use crate::object::{LiveObject, Rendered};

/// Seconds a pod must be ready before it counts as available.
const MIN_READY_SECONDS: u32 = 30;

/// The Deployment of a sentinel. Of the live one only the form of its pod template goes in.
pub(super) fn render(
    desired: &DesiredSentinel,
    rules: &Rules,
    live: Option<&LiveObject>,
    keep: Keep,
) -> Rendered {
    let reference = desired.reference();
    let body = json!({
        "apiVersion": reference.resource.api_version(),
        "kind": reference.resource.kind(),
        "metadata": metadata(desired, &reference.name),
        "spec": {
            "replicas": desired.replicas,
            "minReadySeconds": MIN_READY_SECONDS,
            "selector": { "matchLabels": { labels::SENTINEL_ID: &*desired.sentinel_id } },
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 },
            },
            "template": template::template(desired, rules, &CURRENT),
        },
    });
    let mut rendered = Rendered::new(reference, body);
    // Outside of the template: a new value restarts no pod.
    rendered.body["metadata"]["annotations"][labels::STATE_ANNOTATION] =
        state::hash(desired).into();
    if let Some(live) = live {
        forms::keep_what_runs(&mut rendered, desired, rules, live, keep);
    }
    rendered
}

/// The metadata of one of its objects.
pub(super) fn metadata(desired: &DesiredSentinel, name: &str) -> Value {
    let mut own_labels = all_labels(desired);
    desired.origin.mark(&mut own_labels);
    json!({
        "name": name,
        "namespace": &*desired.key.namespace,
        "labels": own_labels,
        "annotations": { labels::RENDERER_ANNOTATION: RENDERER },
    })
}
