//! What others add to a `ReplicaSet` where only krane may own anything.

use serde_json::{Value, json};

use super::{CONTAINER, Change, Edit, POD, op, patch};

/// A strategic merge patch of the first container.
fn container(live: &Value, change: Value) -> Change {
    let mut change = change;
    change["name"] = live["spec"]["template"]["spec"]["containers"][0]["name"].clone();
    Change::Strategic(json!({"spec": {"template": {"spec": {"containers": [change]}}}}))
}

/// What a plain apply leaves in place, and krane must not (D11a).
pub const REPLICA_SET_INTRUSIONS: [Edit; 25] = [
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
        name: "host port added",
        change: |live| {
            let port =
                live["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"]
                    .clone();
            op("add", format!("{CONTAINER}/ports/0/hostPort"), port)
        },
    },
    Edit {
        name: "spread constraint added",
        change: |_| {
            op(
                "add",
                format!("{POD}/topologySpreadConstraints/-"),
                json!({"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}),
            )
        },
    },
    Edit {
        name: "host network switched on",
        change: |live| {
            let port =
                live["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"]
                    .clone();
            patch(json!([
                {"op": "add", "path": format!("{POD}/hostNetwork"), "value": true},
                {"op": "add", "path": format!("{CONTAINER}/ports/0/hostPort"), "value": port},
            ]))
        },
    },
    Edit {
        name: "host processes shown",
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
        name: "hook after the start added",
        change: |live| {
            container(
                live,
                json!({"lifecycle": {"postStart": {"exec": {"command": ["x"]}}}}),
            )
        },
    },
    Edit {
        name: "anti-affinity added",
        change: |_| {
            Change::Merge(
                json!({"spec": {"template": {"spec": {"affinity": {"podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}
                    ]
                }}}}}}),
            )
        },
    },
    Edit {
        name: "limit added",
        change: |live| {
            container(
                live,
                json!({"resources": {"limits": {"ephemeral-storage": "1Gi"}}}),
            )
        },
    },
    Edit {
        name: "node chosen",
        change: |_| op("add", format!("{POD}/nodeName"), json!("somewhere")),
    },
    Edit {
        name: "template annotation added",
        change: |_| {
            Change::Merge(json!({"spec": {"template": {"metadata": {
                "annotations": {"other": "x"}
            }}}}))
        },
    },
    Edit {
        name: "success threshold changed",
        change: |_| {
            op(
                "replace",
                format!("{CONTAINER}/readinessProbe/successThreshold"),
                json!(2),
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
