//! What others add to the `Deployment` of a sentinel: what krane takes away, and what it leaves.

use serde_json::json;

use super::{CONTAINER, Change, Edit, POD, annotated, by, container, op, patch};

/// What a plain apply leaves in place, and krane must not (D11a).
pub const DEPLOYMENT_INTRUSIONS: [Edit; 22] = [
    Edit {
        name: "rollouts paused",
        change: |_| Change::Merge(json!({"spec": {"paused": true}})),
    },
    Edit {
        name: "all pods at once",
        change: |_| {
            Change::Merge(
                json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}),
            )
        },
    },
    Edit {
        name: "no history",
        change: |_| Change::Merge(json!({"spec": {"revisionHistoryLimit": 0}})),
    },
    Edit {
        name: "another deadline",
        change: |_| Change::Merge(json!({"spec": {"progressDeadlineSeconds": 60}})),
    },
    Edit {
        name: "container added",
        change: |_| {
            let miner = json!({"name": "miner", "image": "registry.example/miner:well"});
            op("add", format!("{POD}/containers/-"), miner)
        },
    },
    Edit {
        name: "init container added",
        change: |_| {
            let init = json!([{"name": "i", "image": "registry.example/i:well"}]);
            op("add", format!("{POD}/initContainers"), init)
        },
    },
    Edit {
        name: "env variable added",
        change: |_| {
            let variable = json!({"name": "LD_PRELOAD", "value": "/x.so"});
            op("add", format!("{CONTAINER}/env/-"), variable)
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
            let port = json!({"containerPort": 22, "protocol": "TCP"});
            op("add", format!("{CONTAINER}/ports/-"), port)
        },
    },
    Edit {
        name: "host network",
        change: |_| op("add", format!("{POD}/hostNetwork"), json!(true)),
    },
    Edit {
        name: "service account",
        change: |_| op("add", format!("{POD}/serviceAccountName"), json!("admin")),
    },
    Edit {
        name: "node selector",
        change: |_| op("add", format!("{POD}/nodeSelector"), json!({"a": "b"})),
    },
    Edit {
        name: "grace period",
        change: |_| {
            op(
                "replace",
                format!("{POD}/terminationGracePeriodSeconds"),
                json!(1),
            )
        },
    },
    Edit {
        name: "runtime class",
        change: |_| op("add", format!("{POD}/runtimeClassName"), json!("gvisor")),
    },
    Edit {
        name: "command",
        change: |live| Change::Strategic(container(live, json!({"command": ["sh"]}))),
    },
    Edit {
        name: "more limits",
        change: |live| {
            let limits = json!({"resources": {"limits": {"ephemeral-storage": "1Gi"}}});
            Change::Strategic(container(live, limits))
        },
    },
    Edit {
        name: "privileged",
        change: |live| {
            Change::Strategic(container(
                live,
                json!({"securityContext": {"privileged": true}}),
            ))
        },
    },
    Edit {
        name: "template label added",
        change: |_| {
            Change::Merge(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}))
        },
    },
    Edit {
        name: "template annotation added",
        change: |_| annotated(&json!({"team": "a"})),
    },
    Edit {
        name: "annotation like one of the reloader's",
        change: |_| annotated(&json!({"reloader.stakater.community/x": "a"})),
    },
    Edit {
        name: "rolled by the reloader, and another variable with it",
        change: |_| {
            Change::Patch(
                "reloader",
                json!([
                    {"op": "add", "path": format!("{CONTAINER}/env/-"), "value": {"name": "DEBUG", "value": "1"}},
                    {"op": "add", "path": format!("{POD}/hostPID"), "value": true},
                ]),
            )
        },
    },
    Edit {
        name: "apply of another manager",
        change: |live| {
            let metadata = json!({"name": live["metadata"]["name"]});
            let spec = json!({
                "paused": true, "selector": live["spec"]["selector"],
                "template": {"metadata": {"labels": live["spec"]["template"]["metadata"]["labels"]}},
            });
            Change::Apply(
                "gitops",
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}),
            )
        },
    },
];

/// What rolls the pods when a Secret has changed, or because a person asks for it: it stays (D11a).
pub const DEPLOYMENT_EXEMPT: [Edit; 4] = [
    Edit {
        name: "rolled by a variable of the reloader",
        change: |_| {
            let variable = json!({"name": "STAKATER_DATABASE_SECRET", "value": "5f3a"});
            by("reloader", &format!("{CONTAINER}/env/-"), &variable)
        },
    },
    Edit {
        name: "rolled by an annotation of the reloader",
        change: |_| annotated(&json!({"reloader.stakater.com/last-reloaded-from": "{}"})),
    },
    Edit {
        name: "rollout restart",
        change: |_| {
            annotated(&json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}))
        },
    },
    Edit {
        name: "rolled by an apply of another manager",
        change: |live| {
            let template = json!({"metadata": {"annotations": {
                "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
            }}});
            Change::Apply(
                "gitops",
                json!({
                    "apiVersion": "apps/v1", "kind": "Deployment",
                    "metadata": {"name": live["metadata"]["name"]}, "spec": {"template": template},
                }),
            )
        },
    },
];
