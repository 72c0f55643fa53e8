//! Edits of a `Service`, with an address of its own and without.

use serde_json::{Value, json};

use super::{Change, Edit, MANAGED_BY_LABEL_REMOVED, WORKSPACE_LABEL_CHANGED, patch};

fn with_other_selector(live: &Value) -> Value {
    let mut body = live.clone();
    body["spec"]["selector"] = json!({"app": "other"});
    body
}

/// The least that an apply may say of a `Service`, with another selector.
fn subset(live: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": live["metadata"]["name"]},
        "spec": {"selector": {"app": "other"}, "ports": live["spec"]["ports"]},
    })
}

/// Edits of what krane owns on any Service: an apply undoes them.
pub const SERVICE_EDITS: [Edit; 11] = [
    WORKSPACE_LABEL_CHANGED,
    MANAGED_BY_LABEL_REMOVED,
    Edit {
        name: "another selector",
        change: |_| {
            patch(json!([{"op": "replace", "path": "/spec/selector", "value": {"a": "b"}}]))
        },
    },
    Edit {
        name: "key added to the selector",
        change: |_| Change::Merge(json!({"spec": {"selector": {"other": "x"}}})),
    },
    Edit {
        name: "selector removed",
        change: |_| patch(json!([{"op": "remove", "path": "/spec/selector"}])),
    },
    Edit {
        name: "another target port",
        change: |_| {
            patch(json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 22}]))
        },
    },
    Edit {
        name: "whole object put",
        change: |live| Change::Put(with_other_selector(live)),
    },
    Edit {
        name: "forced apply by another manager",
        change: |live| Change::Apply("gitops", subset(live)),
    },
    Edit {
        name: "update under the name krane",
        change: |_| {
            let selector = json!({"app": "other"});
            Change::Patch(
                "krane",
                json!([{"op": "replace", "path": "/spec/selector", "value": selector}]),
            )
        },
    },
    Edit {
        name: "managed fields wiped and another selector",
        change: |_| {
            patch(json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
                {"op": "replace", "path": "/spec/selector", "value": {"app": "other"}},
            ]))
        },
    },
    Edit {
        name: "apply of a subset under the name krane",
        change: |live| {
            Change::Apply(
                "krane",
                json!({
                    "apiVersion": "v1", "kind": "Service",
                    "metadata": {"name": live["metadata"]["name"], "labels": live["metadata"]["labels"]},
                    "spec": {"ports": live["spec"]["ports"]},
                }),
            )
        },
    },
];

/// What a plain apply leaves in place or is refused for, on any Service.
pub const SERVICE_INTRUSIONS: [Edit; 6] = [
    Edit {
        name: "addresses from outside",
        change: |_| Change::Merge(json!({"spec": {"externalIPs": ["192.0.2.1"]}})),
    },
    Edit {
        name: "pods that are not ready published",
        change: |_| Change::Merge(json!({"spec": {"publishNotReadyAddresses": true}})),
    },
    Edit {
        name: "clients stay with a pod",
        change: |_| Change::Merge(json!({"spec": {"sessionAffinity": "ClientIP"}})),
    },
    Edit {
        name: "traffic kept near",
        change: |_| Change::Merge(json!({"spec": {"trafficDistribution": "PreferClose"}})),
    },
    Edit {
        name: "traffic kept on the node",
        change: |_| Change::Merge(json!({"spec": {"internalTrafficPolicy": "Local"}})),
    },
    Edit {
        name: "a name elsewhere instead of pods",
        change: |_| {
            Change::Merge(json!({"spec": {
                "type": "ExternalName", "externalName": "elsewhere.example", "clusterIP": null,
                "clusterIPs": null, "internalTrafficPolicy": null,
            }}))
        },
    },
];

/// The same for one that has an address of its own and one port.
pub const ADDRESS_INTRUSIONS: [Edit; 4] = [
    Edit {
        name: "its port renumbered",
        change: |_| patch(json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 80}])),
    },
    Edit {
        name: "port added",
        change: |_| {
            patch(json!([
                {"op": "add", "path": "/spec/ports/0/name", "value": "http"},
                {"op": "add", "path": "/spec/ports/-", "value": {"name": "ssh", "port": 22}},
            ]))
        },
    },
    Edit {
        name: "open on every node",
        change: |_| Change::Merge(json!({"spec": {"type": "NodePort"}})),
    },
    Edit {
        name: "balanced from outside",
        change: |_| Change::Merge(json!({"spec": {"type": "LoadBalancer"}})),
    },
];

/// The same for one without.
pub const HEADLESS_INTRUSIONS: [Edit; 3] = [
    Edit {
        name: "its port renumbered",
        change: |_| patch(json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 80}])),
    },
    Edit {
        name: "port added",
        change: |_| {
            let port = json!({"name": "ssh", "port": 22});
            patch(json!([{"op": "add", "path": "/spec/ports/-", "value": port}]))
        },
    },
    Edit {
        name: "port removed",
        change: |_| patch(json!([{"op": "remove", "path": "/spec/ports/1"}])),
    },
];
