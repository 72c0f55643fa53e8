//! Edits of a `PodDisruptionBudget`.

use serde_json::{Value, json};

use super::{Change, Edit, MANAGED_BY_LABEL_REMOVED, WORKSPACE_LABEL_CHANGED, patch};

/// The half of the union that is given, as a merge patch of the other one.
fn swapped(live: &Value) -> Value {
    if live["spec"]["minAvailable"].is_null() {
        json!({"spec": {"maxUnavailable": null, "minAvailable": "100%"}})
    } else {
        json!({"spec": {"minAvailable": null, "maxUnavailable": "100%"}})
    }
}

fn given(live: &Value) -> &'static str {
    if live["spec"]["minAvailable"].is_null() {
        "maxUnavailable"
    } else {
        "minAvailable"
    }
}

/// Edits of what krane owns: an apply undoes them.
pub const DISRUPTION_BUDGET_EDITS: [Edit; 11] = [
    WORKSPACE_LABEL_CHANGED,
    MANAGED_BY_LABEL_REMOVED,
    Edit {
        name: "another number",
        change: |live| Change::Merge(json!({"spec": {given(live): "50%"}})),
    },
    Edit {
        name: "number removed",
        change: |live| patch(json!([{"op": "remove", "path": format!("/spec/{}", given(live))}])),
    },
    Edit {
        name: "pods that do not work are kept",
        change: |_| {
            Change::Merge(json!({"spec": {"unhealthyPodEvictionPolicy": "IfHealthyBudget"}}))
        },
    },
    Edit {
        name: "policy about pods that do not work removed",
        change: |_| Change::Merge(json!({"spec": {"unhealthyPodEvictionPolicy": null}})),
    },
    Edit {
        name: "another selector",
        change: |_| Change::Merge(json!({"spec": {"selector": {"matchLabels": {"other": "x"}}}})),
    },
    Edit {
        name: "whole object put",
        change: |live| {
            let mut body = live.clone();
            body["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
            Change::Put(body)
        },
    },
    Edit {
        name: "forced apply by another manager",
        change: |live| {
            Change::Apply(
                "gitops",
                json!({
                    "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                    "metadata": {"name": live["metadata"]["name"]},
                    "spec": {"selector": {"matchLabels": {"app": "other"}}},
                }),
            )
        },
    },
    Edit {
        name: "managed fields wiped and another selector",
        change: |_| {
            patch(json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
                {"op": "replace", "path": "/spec/selector", "value": {}},
            ]))
        },
    },
    Edit {
        name: "owner removed",
        change: |_| patch(json!([{"op": "remove", "path": "/metadata/ownerReferences"}])),
    },
];

/// What a plain apply is refused for: both halves would be there.
pub const DISRUPTION_BUDGET_INTRUSIONS: [Edit; 2] = [
    Edit {
        name: "the other half instead",
        change: |live| Change::Merge(swapped(live)),
    },
    Edit {
        name: "the other half instead, in a whole object",
        change: |live| {
            let mut body = live.clone();
            let taken = given(live);
            if let Some(spec) = body["spec"].as_object_mut() {
                spec.remove(taken);
            }
            let other = if taken == "minAvailable" {
                "maxUnavailable"
            } else {
                "minAvailable"
            };
            body["spec"][other] = json!(1);
            Change::Put(body)
        },
    },
];
