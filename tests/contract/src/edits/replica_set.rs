//! Edits of a `ReplicaSet` whose deployment has a health check.

use serde_json::{Value, json};

use super::{Change, Edit, MANAGED_BY_LABEL_REMOVED, WORKSPACE_LABEL_CHANGED, patch};

mod intrusions;

pub use intrusions::REPLICA_SET_INTRUSIONS;

const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

#[expect(clippy::needless_pass_by_value, reason = "the edits read better so")]
fn op(op: &str, path: impl AsRef<str>, value: Value) -> Change {
    patch(json!([{"op": op, "path": path.as_ref(), "value": value}]))
}

fn remove(path: impl AsRef<str>) -> Change {
    patch(json!([{"op": "remove", "path": path.as_ref()}]))
}

fn other_image(live: &Value) -> Value {
    let mut body = live.clone();
    body["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("registry.example/other:well");
    body
}

/// The least that an apply may say of a `ReplicaSet`, with another image.
fn subset(live: &Value) -> Value {
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": live["metadata"]["name"], "labels": live["metadata"]["labels"],
        },
        "spec": {
            "replicas": live["spec"]["replicas"],
            "selector": live["spec"]["selector"],
            "template": {
                "metadata": {"labels": live["spec"]["template"]["metadata"]["labels"]},
                "spec": {"containers": [{"name": container["name"], "image": container["image"]}]},
            },
        },
    })
}

/// Edits of what krane owns: an apply undoes them.
pub const REPLICA_SET_EDITS: [Edit; 28] = [
    WORKSPACE_LABEL_CHANGED,
    Edit {
        name: "our label removed",
        change: |_| {
            Change::Merge(json!({"metadata": {"labels": {"unkey.com/workspace.id": null}}}))
        },
    },
    MANAGED_BY_LABEL_REMOVED,
    Edit {
        name: "template annotation changed",
        change: |_| {
            Change::Merge(json!({"spec": {"template": {"metadata": {
                "annotations": {"krane.unkey.com/template": "0"}
            }}}}))
        },
    },
    Edit {
        name: "template annotation removed",
        change: |_| {
            Change::Merge(json!({"spec": {"template": {"metadata": {
                "annotations": {"krane.unkey.com/template": null}
            }}}}))
        },
    },
    Edit {
        name: "image changed",
        change: |live| {
            let name = &live["spec"]["template"]["spec"]["containers"][0]["name"];
            Change::Strategic(json!({"spec": {"template": {"spec": {"containers": [
                {"name": name, "image": "registry.example/other:well"}
            ]}}}}))
        },
    },
    Edit {
        name: "env value changed",
        change: |_| {
            op(
                "replace",
                format!("{CONTAINER}/env/1/value"),
                json!("other"),
            )
        },
    },
    Edit {
        name: "env value removed",
        change: |_| remove(format!("{CONTAINER}/env/1/value")),
    },
    Edit {
        name: "env variable removed",
        change: |_| remove(format!("{CONTAINER}/env/1")),
    },
    Edit {
        name: "env order changed",
        change: |live| {
            let env = &live["spec"]["template"]["spec"]["containers"][0]["env"];
            let mut env = env.as_array().cloned().unwrap_or_default();
            env.reverse();
            op("replace", format!("{CONTAINER}/env"), Value::Array(env))
        },
    },
    Edit {
        name: "replicas edited",
        change: |_| Change::Merge(json!({"spec": {"replicas": 3}})),
    },
    Edit {
        name: "scaled",
        change: |_| Change::Scale(0),
    },
    Edit {
        name: "probe changed",
        change: |_| {
            op(
                "replace",
                format!("{CONTAINER}/readinessProbe/periodSeconds"),
                json!(77),
            )
        },
    },
    Edit {
        name: "probe removed",
        change: |_| remove(format!("{CONTAINER}/livenessProbe")),
    },
    Edit {
        name: "toleration changed",
        change: |_| {
            op(
                "replace",
                format!("{POD}/tolerations/0/value"),
                json!("other"),
            )
        },
    },
    Edit {
        name: "toleration removed",
        change: |_| remove(format!("{POD}/tolerations/0")),
    },
    Edit {
        name: "toleration added",
        change: |_| {
            op(
                "add",
                format!("{POD}/tolerations/-"),
                json!({"operator": "Exists"}),
            )
        },
    },
    Edit {
        name: "runtime class removed",
        change: |_| remove(format!("{POD}/runtimeClassName")),
    },
    Edit {
        name: "runtime class changed",
        change: |_| op("replace", format!("{POD}/runtimeClassName"), json!("runc")),
    },
    Edit {
        name: "requests removed",
        change: |_| remove(format!("{CONTAINER}/resources/requests")),
    },
    Edit {
        name: "requests changed",
        change: |_| {
            op(
                "replace",
                format!("{CONTAINER}/resources/requests/cpu"),
                json!("1m"),
            )
        },
    },
    Edit {
        name: "limits removed",
        change: |_| remove(format!("{CONTAINER}/resources/limits/memory")),
    },
    Edit {
        name: "key added to a spread selector",
        change: |_| {
            op(
                "add",
                format!("{POD}/topologySpreadConstraints/0/labelSelector/matchLabels/other"),
                json!("x"),
            )
        },
    },
    Edit {
        name: "whole object put",
        change: |live| Change::Put(other_image(live)),
    },
    Edit {
        name: "forced apply by another manager",
        change: |live| {
            let mut body = subset(live);
            body["spec"]["template"]["spec"]["containers"][0]["image"] =
                json!("registry.example/other:well");
            Change::Apply("gitops", body)
        },
    },
    Edit {
        name: "update under the name krane",
        change: |_| {
            Change::Patch(
                "krane",
                json!([{"op": "replace", "path": format!("{CONTAINER}/image"), "value": "registry.example/other:well"}]),
            )
        },
    },
    Edit {
        name: "apply of a subset under the name krane",
        change: |live| Change::Apply("krane", subset(live)),
    },
    Edit {
        name: "managed fields wiped and image changed",
        change: |_| {
            patch(json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
                {"op": "replace", "path": format!("{CONTAINER}/image"), "value": "registry.example/other:well"},
            ]))
        },
    },
];
