//! The objects of a sentinel.

use krane_domain::object::{ObjectRef, Rendered, Resource};
use serde_json::{Value, json};

const OWNER: &str = "5d0cbaf5-3f1c-4a6f-9c0e-0a4b8a1f2d11";

fn metadata(namespace: &str, name: &str) -> Value {
    json!({
        "namespace": namespace, "name": name,
        "labels": {
            "app.kubernetes.io/managed-by": "krane", "app.kubernetes.io/component": "sentinel",
            "unkey.com/workspace.id": "ws_1",
        },
        "annotations": {"krane.unkey.com/renderer": "1"},
    })
}

fn rendered(resource: Resource, metadata: &Value, spec: &Value) -> Rendered {
    let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
    let reference = ObjectRef::new(resource, text("namespace"), text("name"));
    let (version, kind) = (resource.api_version(), resource.kind());
    let body = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
    Rendered::new(reference, body)
}

/// Hangs an object on a Deployment of the same name.
fn owned(namespace: &str, name: &str) -> Value {
    let mut metadata = metadata(namespace, name);
    metadata["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": OWNER,
    }]);
    metadata
}

/// A Deployment with everything that can be edited.
pub fn deployment(namespace: &str, name: &str) -> Rendered {
    let probe = |path: &str| {
        json!({
            "httpGet": {"path": path, "port": 8040}, "initialDelaySeconds": 5,
            "periodSeconds": 5, "timeoutSeconds": 3, "failureThreshold": 2,
        })
    };
    let secret = |name: &str| json!({"secretRef": {"name": name, "optional": true}});
    let selector = json!({"matchLabels": {"unkey.com/sentinel.id": name}});
    let container = json!({
        "name": "sentinel", "image": "registry.example/sentinel:1",
        "imagePullPolicy": "IfNotPresent", "args": ["run", "sentinel"],
        "envFrom": [{"secretRef": {"name": "database"}}, secret("otel"), secret("redis")],
        "env": [{"name": "UNKEY_CONFIG_DATA", "value": "sentinel_id = \"s\"\n"}],
        "ports": [
            {"containerPort": 8040, "protocol": "TCP", "name": "sentinel"},
            {"containerPort": 7946, "protocol": "TCP", "name": "gossip-lan"},
            {"containerPort": 7946, "protocol": "UDP", "name": "gossip-lan-udp"},
        ],
        "resources": {
            "limits": {"cpu": "256m", "memory": "1024Mi"},
            "requests": {"cpu": "128m", "memory": "1024Mi"},
        },
        "livenessProbe": probe("/live"), "readinessProbe": probe("/ready"),
    });
    let mut metadata = metadata(namespace, name);
    metadata["labels"]["unkey.com/sentinel.id"] = json!(name);
    let labels = metadata["labels"].clone();
    rendered(
        Resource::Deployment,
        &metadata,
        &json!({
            "replicas": 2, "minReadySeconds": 30, "selector": selector,
            "strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
            },
            "template": {
                "metadata": {
                    "labels": labels, "annotations": {"reloader.stakater.com/auto": "true"},
                },
                "spec": {
                    "restartPolicy": "Always",
                    "tolerations": [{
                        "key": "node-class", "operator": "Equal", "value": "sentinel",
                        "effect": "NoSchedule",
                    }],
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector,
                    }],
                    "containers": [container],
                },
            },
        }),
    )
}

/// The Service in front of a Deployment.
pub fn service(namespace: &str, name: &str) -> Rendered {
    rendered(
        Resource::Service,
        &owned(namespace, name),
        &json!({
            "type": "ClusterIP", "selector": {"unkey.com/sentinel.id": name},
            "ports": [{"port": 8040, "targetPort": 8040, "protocol": "TCP"}],
        }),
    )
}

/// A Service without an address of its own.
pub fn headless_service(namespace: &str, name: &str) -> Rendered {
    let port = |name: &str, protocol: &str| json!({"name": name, "port": 7946, "targetPort": 7946, "protocol": protocol});
    rendered(
        Resource::Service,
        &metadata(namespace, &format!("{name}-gossip-lan")),
        &json!({
            "type": "ClusterIP", "clusterIP": "None",
            "selector": {"unkey.com/environment.id": "env_1"},
            "ports": [port("gossip-lan", "TCP"), port("gossip-lan-udp", "UDP")],
        }),
    )
}

/// The disruption budget of a Deployment of several pods.
pub fn disruption_budget(namespace: &str, name: &str) -> Rendered {
    rendered(
        Resource::PodDisruptionBudget,
        &owned(namespace, name),
        &json!({
            "maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {"unkey.com/sentinel.id": name}},
        }),
    )
}

/// The policy that lets sentinels of an environment talk to each other.
pub fn gossip_policy(namespace: &str, name: &str) -> Rendered {
    let environment = json!({"matchLabels": {"unkey.com/environment.id": "env_1"}});
    let port = |protocol: &str| json!({"port": "7946", "protocol": protocol});
    rendered(
        Resource::CiliumNetworkPolicy,
        &metadata(namespace, &format!("{name}-gossip-lan")),
        &json!({
            "endpointSelector": environment,
            "ingress": [{
                "fromEndpoints": [environment],
                "toPorts": [{"ports": [port("TCP"), port("UDP")]}],
            }],
        }),
    )
}
