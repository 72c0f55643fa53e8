//! Edits of the `Deployment` of a sentinel.

use serde_json::{Value, json};

use super::{Change, EDITOR, Edit, MANAGED_BY_LABEL_REMOVED, WORKSPACE_LABEL_CHANGED, patch};

mod intrusions;

pub use intrusions::{DEPLOYMENT_EXEMPT, DEPLOYMENT_INTRUSIONS};

const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

#[expect(clippy::needless_pass_by_value, reason = "the edits read better so")]
fn op(op: &str, path: impl AsRef<str>, value: Value) -> Change {
    patch(json!([{"op": op, "path": path.as_ref(), "value": value}]))
}

fn remove(path: impl AsRef<str>) -> Change {
    patch(json!([{"op": "remove", "path": path.as_ref()}]))
}

fn other_image(mut body: Value) -> Value {
    body["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("registry.example/other:well");
    body
}

/// The least that an apply may say of a `Deployment`.
fn subset(live: &Value) -> Value {
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": live["metadata"]["name"], "labels": live["metadata"]["labels"]},
        "spec": {
            "selector": live["spec"]["selector"],
            "template": {
                "metadata": {"labels": live["spec"]["template"]["metadata"]["labels"]},
                "spec": {"containers": [{"name": container["name"], "image": container["image"]}]},
            },
        },
    })
}

/// Edits of what krane owns: an apply undoes them.
pub const DEPLOYMENT_EDITS: [Edit; 24] = [
    WORKSPACE_LABEL_CHANGED,
    MANAGED_BY_LABEL_REMOVED,
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
        name: "replicas edited",
        change: |_| Change::Merge(json!({"spec": {"replicas": 3}})),
    },
    Edit {
        name: "scaled",
        change: |_| Change::Scale(3),
    },
    Edit {
        name: "scaled to nothing",
        change: |_| Change::Scale(0),
    },
    Edit {
        name: "pods may be missing while others come",
        change: |_| {
            Change::Merge(json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}}}))
        },
    },
    Edit {
        name: "pods count as available at once",
        change: |_| remove("/spec/minReadySeconds"),
    },
    Edit {
        name: "configuration changed",
        change: |_| {
            op(
                "replace",
                format!("{CONTAINER}/env/0/value"),
                json!("other"),
            )
        },
    },
    Edit {
        name: "configuration removed",
        change: |_| remove(format!("{CONTAINER}/env/0")),
    },
    Edit {
        name: "arguments changed",
        change: |_| op("replace", format!("{CONTAINER}/args/1"), json!("gateway")),
    },
    Edit {
        name: "another source of variables",
        change: |_| {
            op(
                "add",
                format!("{CONTAINER}/envFrom/-"),
                json!({"secretRef": {"name": "other", "optional": true}}),
            )
        },
    },
    Edit {
        name: "a source of variables is optional now",
        change: |_| {
            let path = format!("{CONTAINER}/envFrom/0/secretRef/optional");
            op("add", path, json!(true))
        },
    },
    Edit {
        name: "probe changed",
        change: |_| {
            let path = format!("{CONTAINER}/readinessProbe/httpGet/path");
            op("replace", path, json!("/"))
        },
    },
    Edit {
        name: "probe removed",
        change: |_| remove(format!("{CONTAINER}/livenessProbe")),
    },
    Edit {
        name: "port removed",
        change: |_| remove(format!("{CONTAINER}/ports/2")),
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
        name: "requests changed",
        change: |_| {
            let path = format!("{CONTAINER}/resources/requests/cpu");
            op("replace", path, json!("1m"))
        },
    },
    Edit {
        name: "reloading switched off",
        change: |_| {
            Change::Merge(json!({"spec": {"template": {"metadata": {
                "annotations": {"reloader.stakater.com/auto": "false"}
            }}}}))
        },
    },
    Edit {
        name: "whole object put",
        change: |live| Change::Put(other_image(live.clone())),
    },
    Edit {
        name: "forced apply by another manager",
        change: |live| Change::Apply("gitops", other_image(subset(live))),
    },
    Edit {
        name: "update under the name krane",
        change: |_| {
            let path = format!("{CONTAINER}/image");
            let value = "registry.example/other:well";
            Change::Patch(
                "krane",
                json!([{"op": "replace", "path": path, "value": value}]),
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
            let path = format!("{CONTAINER}/image");
            let value = "registry.example/other:well";
            patch(json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
                {"op": "replace", "path": path, "value": value},
            ]))
        },
    },
];

/// What a strategic merge patch does to the one container.
fn container(live: &Value, mut change: Value) -> Value {
    change["name"] = live["spec"]["template"]["spec"]["containers"][0]["name"].clone();
    json!({"spec": {"template": {"spec": {"containers": [change]}}}})
}

/// A change of the template's annotations, as `kubectl annotate` would make it.
fn annotated(annotations: &Value) -> Change {
    Change::Merge(json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}))
}

/// Whoever says it is `manager`, and adds to what is there.
fn by(manager: &'static str, path: &str, value: &Value) -> Change {
    debug_assert_ne!(manager, EDITOR, "somebody else");
    Change::Patch(
        manager,
        json!([{"op": "add", "path": path, "value": value}]),
    )
}
