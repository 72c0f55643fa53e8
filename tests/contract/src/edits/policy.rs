//! Edits of a `CiliumNetworkPolicy`.

use serde_json::json;

use super::{COMPONENT_LABEL_REMOVED, Change, Edit, MANAGED_BY_LABEL_REMOVED, patch};

/// Edits of what krane owns on its isolation policy.
pub const POLICY_EDITS: [Edit; 13] = [
    Edit {
        name: "ingress rule added",
        change: |_| {
            patch(
                json!([{"op": "add", "path": "/spec/ingress/-", "value": {"fromEntities": ["all"]}}]),
            )
        },
    },
    Edit {
        name: "peer added to an ingress rule",
        change: |_| {
            patch(json!([{"op": "add", "path": "/spec/ingress/0/fromEndpoints/-", "value": {}}]))
        },
    },
    Edit {
        name: "source range added to an ingress rule",
        change: |_| {
            patch(json!([
                {"op": "add", "path": "/spec/ingress/-", "value": {"fromCIDR": ["0.0.0.0/0"]}}
            ]))
        },
    },
    Edit {
        name: "port of an ingress rule changed",
        change: |_| {
            patch(json!([
                {"op": "replace", "path": "/spec/ingress/0/toPorts/0/ports/0/port", "value": "22"}
            ]))
        },
    },
    Edit {
        name: "key added to the endpoint selector",
        change: |_| {
            patch(
                json!([{"op": "add", "path": "/spec/endpointSelector/matchLabels/other", "value": "x"}]),
            )
        },
    },
    Edit {
        name: "all ingress rules removed",
        change: |_| patch(json!([{"op": "replace", "path": "/spec/ingress", "value": []}])),
    },
    COMPONENT_LABEL_REMOVED,
    MANAGED_BY_LABEL_REMOVED,
    Edit {
        name: "update under the name krane",
        change: |_| {
            Change::Patch(
                "krane",
                json!([{"op": "replace", "path": "/spec/ingress", "value": [{"fromEntities": ["all"]}]}]),
            )
        },
    },
    Edit {
        name: "apply of a subset under the name krane",
        change: |live| {
            Change::Apply(
                "krane",
                json!({
                    "apiVersion": live["apiVersion"], "kind": live["kind"],
                    "metadata": {"name": live["metadata"]["name"]},
                    "spec": {
                        "endpointSelector": live["spec"]["endpointSelector"],
                        "ingress": live["spec"]["ingress"],
                    },
                }),
            )
        },
    },
    Edit {
        name: "managed fields wiped and all ingress allowed",
        change: |_| {
            patch(json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
                {"op": "replace", "path": "/spec/ingress", "value": [{"fromEntities": ["all"]}]},
            ]))
        },
    },
    Edit {
        name: "whole object put",
        change: |live| {
            let mut body = live.clone();
            body["spec"]["ingress"] = json!([{"fromEntities": ["all"]}]);
            Change::Put(body)
        },
    },
    Edit {
        name: "forced apply by another manager",
        change: |live| {
            Change::Apply(
                "gitops",
                json!({
                    "apiVersion": live["apiVersion"], "kind": live["kind"],
                    "metadata": {"name": live["metadata"]["name"]},
                    "spec": {
                        "endpointSelector": live["spec"]["endpointSelector"],
                        "ingress": [{"fromEntities": ["all"]}],
                    },
                }),
            )
        },
    },
];

/// What a plain apply leaves in place, and krane must not (D11a).
pub const POLICY_INTRUSIONS: [Edit; 5] = [
    Edit {
        name: "default deny switched off",
        change: |_| Change::Merge(json!({"spec": {"enableDefaultDeny": {"ingress": false}}})),
    },
    Edit {
        name: "egress added",
        change: |_| Change::Merge(json!({"spec": {"egress": [{"toEntities": ["world"]}]}})),
    },
    Edit {
        name: "deny rule added",
        change: |_| Change::Merge(json!({"spec": {"ingressDeny": [{"fromEntities": ["world"]}]}})),
    },
    Edit {
        name: "endpoint selector replaced by a node selector",
        change: |_| Change::Merge(json!({"spec": {"endpointSelector": null, "nodeSelector": {}}})),
    },
    Edit {
        name: "second set of rules added",
        change: |_| {
            Change::Merge(
                json!({"specs": [{"endpointSelector": {}, "ingress": [{"fromEntities": ["all"]}]}]}),
            )
        },
    },
];
