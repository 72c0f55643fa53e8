//! Edits of a Namespace.

use serde_json::json;

use super::{COMPONENT_LABEL_REMOVED, Change, Edit};

/// Edits of what krane owns on a Namespace.
pub const NAMESPACE_EDITS: [Edit; 5] = [
    Edit {
        name: "our label changed",
        change: |_| {
            Change::Merge(json!({"metadata": {"labels": {"app.kubernetes.io/component": "other"}}}))
        },
    },
    COMPONENT_LABEL_REMOVED,
    Edit {
        name: "forced apply by another manager",
        change: |live| {
            Change::Apply(
                "gitops",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                    "name": live["metadata"]["name"],
                    "labels": {"app.kubernetes.io/component": "other"},
                }}),
            )
        },
    },
    Edit {
        name: "whole object put",
        change: |live| {
            let mut body = live.clone();
            body["metadata"]["labels"]["app.kubernetes.io/component"] = json!("other");
            Change::Put(body)
        },
    },
    Edit {
        name: "managed-fields wiped and our label changed",
        change: |_| {
            Change::Merge(json!({"metadata": {
                "managedFields": [{}], "labels": {"app.kubernetes.io/component": "other"},
            }}))
        },
    },
];
