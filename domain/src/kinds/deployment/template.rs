//! The pod template of a workload: what customers' code runs in.

mod environment;

use serde_json::{Map, Value, json};

use super::{DesiredDeployment, ShutdownSignal, healthcheck};
use crate::canonical;
use crate::kinds::Rules;
use crate::labels;

/// Customer code runs in this sandbox, always: no setting takes it away.
const RUNTIME_CLASS: &str = "gvisor";

/// Taint of the nodes customer code runs on.
const UNTRUSTED_TAINT: (&str, &str) = ("karpenter.sh/nodepool", "untrusted");

/// Zones, for spreading and for staying near sentinels.
const TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";

/// Name of the one container and of its port.
const CONTAINER: &str = "deployment";

/// Volume that holds the token of the secrets audience.
const TOKEN_VOLUME: &str = "krane-token";

/// Name of the scratch volume, and where it is.
const SCRATCH_VOLUME: &str = "data";
const SCRATCH_PATH: &str = "/data";

/// Where a process looks for its service account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Seconds a projected token is valid; the least the API server grants (D30).
const TOKEN_SECONDS: u64 = 600;

/// The pod template with its own hash in [`labels::TEMPLATE_ANNOTATION`] (D16).
pub(super) fn template(
    desired: &DesiredDeployment,
    rules: &Rules,
    pod_labels: &Map<String, Value>,
) -> Value {
    let mut template = json!({
        "metadata": {
            "generateName": format!("{}-", desired.key.name),
            "labels": pod_labels,
            "annotations": {
                labels::DEPLOYMENT_ID: &*desired.deployment_id,
                labels::ENVIRONMENT_ID: &*desired.environment_id,
            },
        },
        "spec": pod_spec(desired, rules),
    });
    if let Some(readiness_id) = &desired.readiness_id {
        template["metadata"]["annotations"][labels::READINESS_ID] = Value::from(&**readiness_id);
    }
    let hash = canonical::hex(&template, 16);
    template["metadata"]["annotations"][labels::TEMPLATE_ANNOTATION] = Value::from(hash);
    template
}

fn pod_spec(desired: &DesiredDeployment, rules: &Rules) -> Value {
    let (taint, pool) = UNTRUSTED_TAINT;
    let mut spec = json!({
        "runtimeClassName": RUNTIME_CLASS,
        "restartPolicy": "Always",
        "tolerations": [
            { "key": taint, "operator": "Equal", "value": pool, "effect": "NoSchedule" },
        ],
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": TOPOLOGY_ZONE,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": { labels::DEPLOYMENT_ID: &*desired.deployment_id } },
        }],
        "affinity": { "podAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "topologyKey": TOPOLOGY_ZONE,
                // Without it the term would look for sentinels in the workload's own namespace.
                "namespaces": [labels::SENTINEL_NAMESPACE],
                "labelSelector": { "matchLabels": {
                    labels::ENVIRONMENT_ID: &*desired.environment_id,
                    labels::COMPONENT: labels::COMPONENT_SENTINEL,
                } },
            },
        }] } },
        "containers": [container(desired, rules)],
    });
    if rules.pull_secret.is_some() {
        spec["imagePullSecrets"] = json!([{ "name": labels::PULL_SECRET_NAME }]);
    }
    if rules.secrets_audience.is_some() {
        spec["automountServiceAccountToken"] = Value::Bool(false);
    }
    let volumes = volumes(desired, rules);
    if !volumes.is_empty() {
        spec["volumes"] = Value::Array(volumes);
    }
    spec
}

/// The volumes of a pod; an empty list must not be rendered, it would own nothing.
fn volumes(desired: &DesiredDeployment, rules: &Rules) -> Vec<Value> {
    let token = rules.secrets_audience.as_ref().map(|audience| {
        json!({
            "name": TOKEN_VOLUME,
            "projected": { "sources": [{ "serviceAccountToken": {
                "audience": &**audience,
                "expirationSeconds": TOKEN_SECONDS,
                "path": "token",
            } }] },
        })
    });
    let scratch = desired.ephemeral_storage_mib.map(|mebibytes| {
        json!({
            "name": SCRATCH_VOLUME,
            "ephemeral": { "volumeClaimTemplate": { "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": &*rules.storage_class_name,
                "resources": { "requests": { "storage": format!("{mebibytes}Mi") } },
            } } },
        })
    });
    token.into_iter().chain(scratch).collect()
}

/// Where the container finds them.
fn mounts(desired: &DesiredDeployment, rules: &Rules) -> Vec<Value> {
    let token = rules
        .secrets_audience
        .as_ref()
        .map(|_| json!({ "name": TOKEN_VOLUME, "mountPath": TOKEN_PATH, "readOnly": true }));
    let scratch = desired
        .ephemeral_storage_mib
        .map(|_| json!({ "name": SCRATCH_VOLUME, "mountPath": SCRATCH_PATH }));
    token.into_iter().chain(scratch).collect()
}

fn container(desired: &DesiredDeployment, rules: &Rules) -> Value {
    let mut container = json!({
        "name": CONTAINER,
        "image": desired.image,
        "imagePullPolicy": "IfNotPresent",
        // Number and protocol together are the key of the list.
        "ports": [{ "containerPort": desired.port, "protocol": "TCP", "name": CONTAINER }],
        "env": environment::variables(desired),
        "resources": resources(desired, rules),
    });
    if !desired.command.is_empty() {
        container["command"] = json!(desired.command);
    }
    if let Some(healthcheck) = &desired.healthcheck {
        let probe = healthcheck::probe(healthcheck, desired.port);
        container["livenessProbe"] = probe.clone();
        container["readinessProbe"] = probe;
    }
    if let Some(signal) = desired.shutdown_signal {
        container["lifecycle"] = json!({
            "preStop": { "exec": { "command": ["kill", option(signal), "1"] } },
        });
    }
    let mounts = mounts(desired, rules);
    if !mounts.is_empty() {
        container["volumeMounts"] = Value::Array(mounts);
    }
    container
}

/// Limits as asked for; requests a fraction of them, at least one unit.
fn resources(desired: &DesiredDeployment, rules: &Rules) -> Value {
    let divisor = rules.request_divisor.max(1);
    let quantities = |millicores: u64, mebibytes: u64| json!({ "cpu": format!("{millicores}m"), "memory": format!("{mebibytes}Mi") });
    let (cpu, memory) = (desired.cpu_millicores, desired.memory_mib);
    json!({
        "limits": quantities(cpu, memory),
        "requests": quantities((cpu / divisor).max(1), (memory / divisor).max(1)),
    })
}

/// The signal as an option of `kill`.
fn option(signal: ShutdownSignal) -> &'static str {
    match signal {
        ShutdownSignal::Interrupt => "-SIGINT",
        ShutdownSignal::Quit => "-SIGQUIT",
        ShutdownSignal::Kill => "-SIGKILL",
    }
}
