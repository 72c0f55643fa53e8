//! The objects that requests are about.

mod sentinel;

use krane_domain::object::{ObjectRef, Rendered, Resource};
pub use sentinel::{deployment, disruption_budget, gossip_policy, headless_service, service};
use serde_json::{Value, json};

fn metadata(namespace: &str, name: &str) -> Value {
    json!({
        "namespace": namespace, "name": name,
        "labels": {
            "app.kubernetes.io/managed-by": "krane", "app.kubernetes.io/component": "deployment",
            "unkey.com/workspace.id": "ws_1",
        },
        "annotations": {"krane.unkey.com/renderer": "1"},
    })
}

/// A ReplicaSet with everything that can be edited.
pub fn replica_set(namespace: &str, name: &str) -> Rendered {
    let probe = json!({
        "httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10, "timeoutSeconds": 5,
        "failureThreshold": 3,
    });
    let selector = json!({"matchLabels": {"app": name}});
    let container = json!({
        "name": "deployment", "image": "registry.example/app:1",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 8080, "protocol": "TCP", "name": "http"}],
        "env": [
            {"name": "PORT", "value": "8080"}, {"name": "FIRST", "value": "1"},
            {"name": "SECOND", "value": "2"},
        ],
        "resources": {
            "limits": {"cpu": "1000m", "memory": "2048Mi"},
            "requests": {"cpu": "250m", "memory": "512Mi"},
        },
        "livenessProbe": probe, "readinessProbe": probe,
    });
    let body = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata(namespace, name),
        "spec": {
            "replicas": 2, "minReadySeconds": 30, "selector": selector,
            "template": {
                "metadata": {
                    "labels": {"app": name}, "annotations": {"krane.unkey.com/template": "abc"},
                },
                "spec": {
                    "runtimeClassName": "gvisor", "restartPolicy": "Always",
                    "tolerations": [{
                        "key": "karpenter.sh/nodepool", "operator": "Equal", "value": "untrusted",
                        "effect": "NoSchedule",
                    }],
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector,
                    }],
                    "containers": [container],
                },
            },
        },
    });
    Rendered::new(ObjectRef::new(Resource::ReplicaSet, namespace, name), body)
}

/// An isolation policy.
pub fn policy(namespace: &str, name: &str) -> Rendered {
    let body = json!({
        "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
        "metadata": metadata(namespace, name),
        "spec": {
            "description": "only sentinels",
            "endpointSelector": {"matchLabels": {"app": name}},
            "ingress": [{
                "fromEndpoints": [{"matchLabels": {"io.kubernetes.pod.namespace": "sentinel"}}],
                "toPorts": [{"ports": [{"port": "8080", "protocol": "TCP"}]}],
            }],
        },
    });
    Rendered::new(
        ObjectRef::new(Resource::CiliumNetworkPolicy, namespace, name),
        body,
    )
}

/// The pull secret, the only one that krane may write.
pub fn secret(namespace: &str) -> Rendered {
    let name = "depot-pull-secret";
    let body = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata(namespace, name),
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": "eyJhdXRocyI6e319"},
    });
    Rendered::new(ObjectRef::new(Resource::Secret, namespace, name), body)
}

/// An autoscaler that hangs on a workload.
pub fn autoscaler(namespace: &str, name: &str) -> Rendered {
    let target = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name});
    let mut owner = target.clone();
    owner["uid"] = json!("5d0cbaf5-3f1c-4a6f-9c0e-0a4b8a1f2d11");
    owner["controller"] = json!(true);
    let mut metadata = metadata(namespace, name);
    metadata["ownerReferences"] = json!([owner]);
    let body = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata,
        "spec": {
            "scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 6,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
            }}],
        },
    });
    let reference = ObjectRef::new(Resource::HorizontalPodAutoscaler, namespace, name);
    Rendered::new(reference, body)
}
