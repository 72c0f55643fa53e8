//! Edits of a `ReplicaSet` whose deployment has a health check.

use serde_json::{Value, json};

use super::{Change, Edit};

const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

#[expect(clippy::needless_pass_by_value, reason = "the edits read better so")]
fn op(op: &str, path: impl AsRef<str>, value: Value) -> Change {
    patch(json!([{"op": op, "path": path.as_ref(), "value": value}]))
}

fn remove(path: impl AsRef<str>) -> Change {
    patch(json!([{"op": "remove", "path": path.as_ref()}]))
}

fn patch(operations: Value) -> Change {
    Change::Patch("kubectl-edit", operations)
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
pub const REPLICA_SET_EDITS: [Edit; 26] = [
    Edit {
        name: "our label changed",
        change: |_| {
            Change::Merge(json!({"metadata": {"labels": {"unkey.com/workspace.id": "ws_other"}}}))
        },
    },
    Edit {
        name: "our label removed",
        change: |_| {
            Change::Merge(json!({"metadata": {"labels": {"unkey.com/workspace.id": null}}}))
        },
    },
    Edit {
        name: "managed-by label removed",
        change: |_| {
            Change::Merge(json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}))
        },
    },
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

/// What a plain apply leaves in place, and krane must not (D11a).
pub const REPLICA_SET_INTRUSIONS: [Edit; 16] = [
    Edit {
        name: "container added",
        change: |_| {
            op(
                "add",
                format!("{POD}/containers/-"),
                json!({"name": "miner", "image": "registry.example/miner:well"}),
            )
        },
    },
    Edit {
        name: "init container added",
        change: |_| {
            op(
                "add",
                format!("{POD}/initContainers"),
                json!([{"name": "i", "image": "registry.example/i:well"}]),
            )
        },
    },
    Edit {
        name: "env variable added",
        change: |_| {
            op(
                "add",
                format!("{CONTAINER}/env/-"),
                json!({"name": "LD_PRELOAD", "value": "/x.so"}),
            )
        },
    },
    Edit {
        name: "volume and mount added",
        change: |_| {
            patch(json!([
                {"op": "add", "path": format!("{POD}/volumes"), "value": [{"name": "v", "emptyDir": {}}]},
                {"op": "add", "path": format!("{CONTAINER}/volumeMounts"), "value": [{"name": "v", "mountPath": "/v"}]},
            ]))
        },
    },
    Edit {
        name: "port added",
        change: |_| {
            op(
                "add",
                format!("{CONTAINER}/ports/-"),
                json!({"containerPort": 22, "protocol": "TCP"}),
            )
        },
    },
    Edit {
        name: "pull secret added",
        change: |_| {
            op(
                "add",
                format!("{POD}/imagePullSecrets"),
                json!([{"name": "other"}]),
            )
        },
    },
    Edit {
        name: "host network switched on",
        change: |_| op("add", format!("{POD}/hostPID"), json!(true)),
    },
    Edit {
        name: "privileged",
        change: |_| {
            op(
                "add",
                format!("{CONTAINER}/securityContext"),
                json!({"privileged": true}),
            )
        },
    },
    Edit {
        name: "run as root",
        change: |_| {
            op(
                "add",
                format!("{POD}/securityContext"),
                json!({"runAsUser": 0}),
            )
        },
    },
    Edit {
        name: "node selector added",
        change: |_| op("add", format!("{POD}/nodeSelector"), json!({"a": "b"})),
    },
    Edit {
        name: "service account set",
        change: |_| op("add", format!("{POD}/serviceAccountName"), json!("admin")),
    },
    Edit {
        name: "arguments added",
        change: |_| op("add", format!("{CONTAINER}/args"), json!(["--evil"])),
    },
    Edit {
        name: "startup probe added",
        change: |_| {
            op(
                "add",
                format!("{CONTAINER}/startupProbe"),
                json!({"exec": {"command": ["x"]}}),
            )
        },
    },
    Edit {
        name: "template label added",
        change: |_| op("add", "/spec/template/metadata/labels/other", json!("x")),
    },
    Edit {
        name: "grace period changed",
        change: |_| {
            op(
                "replace",
                format!("{POD}/terminationGracePeriodSeconds"),
                json!(1),
            )
        },
    },
    Edit {
        name: "DNS policy changed",
        change: |_| op("replace", format!("{POD}/dnsPolicy"), json!("Default")),
    },
];
