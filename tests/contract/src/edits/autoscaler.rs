//! Edits of a `HorizontalPodAutoscaler`.

use serde_json::{Value, json};

use super::{Change, Edit, MANAGED_BY_LABEL_REMOVED, WORKSPACE_LABEL_CHANGED, patch};

fn with_metric(live: &Value) -> Value {
    let mut metrics = live["spec"]["metrics"].clone();
    let more = json!({"type": "Resource", "resource": {
        "name": "memory", "target": {"type": "Utilization", "averageUtilization": 5},
    }});
    if let Some(metrics) = metrics.as_array_mut() {
        metrics.push(more);
    }
    metrics
}

/// Edits of what krane owns on an autoscaler.
pub const AUTOSCALER_EDITS: [Edit; 13] = [
    Edit {
        name: "more replicas allowed",
        change: |_| Change::Merge(json!({"spec": {"maxReplicas": 100}})),
    },
    Edit {
        name: "fewer replicas allowed",
        change: |_| Change::Merge(json!({"spec": {"minReplicas": 1}})),
    },
    Edit {
        name: "minimum removed",
        change: |_| patch(json!([{"op": "remove", "path": "/spec/minReplicas"}])),
    },
    Edit {
        name: "another target",
        change: |_| Change::Merge(json!({"spec": {"scaleTargetRef": {"name": "other"}}})),
    },
    Edit {
        name: "metric added",
        change: |live| Change::Merge(json!({"spec": {"metrics": with_metric(live)}})),
    },
    Edit {
        name: "other utilization",
        change: |_| {
            patch(json!([{
                "op": "replace", "value": 5,
                "path": "/spec/metrics/0/resource/target/averageUtilization",
            }]))
        },
    },
    Edit {
        name: "slower scale down",
        change: |_| {
            Change::Merge(json!({"spec": {"behavior": {
                "scaleDown": {"stabilizationWindowSeconds": 3600}
            }}}))
        },
    },
    WORKSPACE_LABEL_CHANGED,
    MANAGED_BY_LABEL_REMOVED,
    Edit {
        name: "whole object put",
        change: |live| {
            let mut body = live.clone();
            body["spec"]["maxReplicas"] = json!(99);
            Change::Put(body)
        },
    },
    Edit {
        name: "forced apply by another manager",
        change: |live| {
            Change::Apply(
                "gitops",
                json!({
                    "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": live["metadata"]["name"]},
                    "spec": {"maxReplicas": 99, "scaleTargetRef": live["spec"]["scaleTargetRef"]},
                }),
            )
        },
    },
    Edit {
        name: "managed fields wiped and more replicas allowed",
        change: |_| {
            patch(json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
                {"op": "replace", "path": "/spec/maxReplicas", "value": 99},
            ]))
        },
    },
    Edit {
        name: "owner removed",
        change: |_| patch(json!([{"op": "remove", "path": "/metadata/ownerReferences"}])),
    },
];

/// Edits of what krane leaves to the API server's defaults, and does not leave to others.
pub const AUTOSCALER_INTRUSIONS: [Edit; 4] = [
    Edit {
        name: "scale up forbidden",
        change: |_| {
            Change::Merge(json!({"spec": {"behavior": {
                "scaleUp": {"selectPolicy": "Disabled"}
            }}}))
        },
    },
    Edit {
        name: "scale up rules of another manager",
        change: |live| {
            Change::Apply(
                "gitops",
                json!({
                    "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": live["metadata"]["name"]},
                    "spec": {
                        "maxReplicas": live["spec"]["maxReplicas"],
                        "scaleTargetRef": live["spec"]["scaleTargetRef"],
                        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 600}},
                    },
                }),
            )
        },
    },
    Edit {
        name: "scale down policy replaced",
        change: |_| {
            Change::Merge(json!({"spec": {"behavior": {"scaleDown": {"policies": [
                {"type": "Pods", "value": 1, "periodSeconds": 600}
            ]}}}}))
        },
    },
    Edit {
        name: "scale down forbidden",
        change: |_| {
            Change::Merge(json!({"spec": {"behavior": {
                "scaleDown": {"selectPolicy": "Disabled"}
            }}}))
        },
    },
];
