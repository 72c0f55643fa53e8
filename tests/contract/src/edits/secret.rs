//! Edits of the pull secret.

use serde_json::json;

use super::{COMPONENT_LABEL_REMOVED, Change, Edit, MANAGED_BY_LABEL_REMOVED, patch};

/// No credentials, as others would write them: `{"auths":{}}`.
const OTHER: &str = "eyJhdXRocyI6e319";

/// Edits of what krane owns on its pull secret.
pub const SECRET_EDITS: [Edit; 8] = [
    Edit {
        name: "credentials changed",
        change: |_| Change::Merge(json!({"data": {".dockerconfigjson": OTHER}})),
    },
    COMPONENT_LABEL_REMOVED,
    MANAGED_BY_LABEL_REMOVED,
    Edit {
        name: "whole object put",
        change: |live| {
            let mut body = live.clone();
            body["data"][".dockerconfigjson"] = json!(OTHER);
            Change::Put(body)
        },
    },
    Edit {
        name: "forced apply by another manager",
        change: |live| {
            Change::Apply(
                "gitops",
                json!({
                    "apiVersion": "v1", "kind": "Secret", "type": live["type"],
                    "metadata": {"name": live["metadata"]["name"]},
                    "data": {".dockerconfigjson": OTHER},
                }),
            )
        },
    },
    Edit {
        name: "update under the name krane",
        change: |_| {
            Change::Patch(
                "krane",
                json!([{"op": "replace", "path": "/data/.dockerconfigjson", "value": OTHER}]),
            )
        },
    },
    Edit {
        name: "managed fields wiped and credentials changed",
        change: |_| {
            patch(json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
                {"op": "replace", "path": "/data/.dockerconfigjson", "value": OTHER},
            ]))
        },
    },
    Edit {
        name: "apply of a subset under the name krane",
        change: |live| {
            Change::Apply(
                "krane",
                json!({
                    "apiVersion": "v1", "kind": "Secret", "type": live["type"],
                    "metadata": {"name": live["metadata"]["name"], "labels": live["metadata"]["labels"]},
                    "data": live["data"],
                }),
            )
        },
    },
];

/// What a plain apply leaves in place, and krane must not.
pub const SECRET_INTRUSIONS: [Edit; 3] = [
    Edit {
        name: "key added",
        change: |_| Change::Merge(json!({"data": {"LD_PRELOAD": "L3guc28="}})),
    },
    Edit {
        name: "made immutable",
        change: |_| Change::Merge(json!({"immutable": true})),
    },
    Edit {
        name: "key added and made immutable",
        change: |_| Change::Merge(json!({"data": {"LD_PRELOAD": "L3guc28="}, "immutable": true})),
    },
];
