//! The pod template of a sentinel.

use serde_json::{Map, Value, json};

use super::DesiredSentinel;
use super::config::config;
use super::form::{Config, Form, Labels};
use crate::kinds::{ProbePaths, Rules};
use crate::labels;

/// Where a sentinel serves.
pub(super) const HTTP_PORT: u16 = 8040;
/// Where sentinels of an environment find each other.
pub(super) const GOSSIP_PORT: u16 = 7946;
const METRICS_PORT: u16 = 9090;

/// Name of the one container and of its port.
pub(super) const CONTAINER: &str = "sentinel";

/// Taint of the nodes sentinels run on.
const SENTINEL_TAINT: (&str, &str) = ("node-class", "sentinel");

/// Lets a rotated Secret roll the pods.
const RELOADER: (&str, &str) = ("reloader.stakater.com/auto", "true");

const HEALTH_PATH: &str = "/_unkey/internal/health";

/// The template in this form.
pub(super) fn template(desired: &DesiredSentinel, rules: &Rules, form: &Form) -> Value {
    let (taint, pool) = SENTINEL_TAINT;
    let (reloader, is_on) = RELOADER;
    json!({
        "metadata": {
            "annotations": { reloader: is_on },
            "labels": pod_labels(desired, form),
        },
        "spec": {
            "restartPolicy": "Always",
            "tolerations": [
                { "key": taint, "operator": "Equal", "value": pool, "effect": "NoSchedule" },
            ],
            "topologySpreadConstraints": [{
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {
                    "matchLabels": { labels::SENTINEL_ID: &*desired.sentinel_id },
                },
            }],
            "containers": [container(desired, rules, form)],
        },
    })
}

/// The labels of everything a sentinel is made of, whoever wants it.
pub(super) fn all_labels(desired: &DesiredSentinel) -> Map<String, Value> {
    [
        (labels::WORKSPACE_ID, &*desired.workspace_id),
        (labels::PROJECT_ID, &desired.project_id),
        (labels::APP_ID, &desired.app_id),
        (labels::ENVIRONMENT_ID, &desired.environment_id),
        (labels::SENTINEL_ID, &desired.sentinel_id),
        (labels::MANAGED_BY, labels::MANAGER),
        (labels::COMPONENT, labels::COMPONENT_SENTINEL),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Value::from(value)))
    .collect()
}

fn pod_labels(desired: &DesiredSentinel, form: &Form) -> Map<String, Value> {
    let mut all = all_labels(desired);
    if form.labels != Labels::All {
        all.remove(labels::MANAGED_BY);
    }
    if form.labels == Labels::Few {
        all.remove(labels::PROJECT_ID);
        all.remove(labels::APP_ID);
    }
    all
}

fn container(desired: &DesiredSentinel, rules: &Rules, form: &Form) -> Value {
    let secrets = form.secrets.iter().map(|(name, is_optional)| {
        let mut reference = json!({ "name": name });
        if *is_optional {
            reference["optional"] = Value::Bool(true);
        }
        json!({ "secretRef": reference })
    });
    let (live, ready) = match form.probe_paths.unwrap_or(rules.probe_paths) {
        ProbePaths::Legacy => (HEALTH_PATH.to_owned(), HEALTH_PATH.to_owned()),
        ProbePaths::Split => (
            format!("{HEALTH_PATH}/live"),
            format!("{HEALTH_PATH}/ready"),
        ),
    };
    let mut container = json!({
        "name": CONTAINER,
        "image": desired.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["run", "sentinel"],
        "envFrom": secrets.collect::<Vec<_>>(),
        "env": variables(desired, rules, form),
        "ports": ports(form),
        "livenessProbe": probe(&live, 10, 10, 5, 3),
        "readinessProbe": probe(&ready, 5, 5, 3, 2),
    });
    if form.has_resources {
        container["resources"] = resources(desired);
    }
    container
}

fn variables(desired: &DesiredSentinel, rules: &Rules, form: &Form) -> Value {
    let variable = |name: &str, value: &str| json!({ "name": name, "value": value });
    if form.config > Config::Variables {
        return json!([variable("UNKEY_CONFIG_DATA", &config(desired, rules, form))]);
    }
    json!([
        variable("UNKEY_HTTP_PORT", &HTTP_PORT.to_string()),
        variable("UNKEY_WORKSPACE_ID", &desired.workspace_id),
        variable("UNKEY_PROJECT_ID", &desired.project_id),
        variable("UNKEY_ENVIRONMENT_ID", &desired.environment_id),
        variable("UNKEY_SENTINEL_ID", &desired.sentinel_id),
        variable("UNKEY_REGION", &rules.region.name),
    ])
}

/// Number and protocol together are the key of the list.
fn ports(form: &Form) -> Value {
    let port = |number: u16, protocol: &str, name: &str| json!({ "containerPort": number, "protocol": protocol, "name": name });
    let mut ports = vec![port(HTTP_PORT, "TCP", CONTAINER)];
    if form.has_gossip {
        ports.push(port(GOSSIP_PORT, "TCP", "gossip-lan"));
        ports.push(port(GOSSIP_PORT, "UDP", "gossip-lan-udp"));
    }
    if form.has_metrics {
        ports.push(port(METRICS_PORT, "TCP", "metrics"));
    }
    Value::Array(ports)
}

fn probe(path: &str, delay: u32, period: u32, timeout: u32, failures: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": HTTP_PORT },
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    })
}

/// Limits as asked for; half the CPU is requested, and all of the memory (D21).
fn resources(desired: &DesiredSentinel) -> Value {
    let quantities = |millicores: u64| json!({ "cpu": format!("{millicores}m"), "memory": format!("{}Mi", desired.memory_mib) });
    json!({
        "limits": quantities(desired.cpu_millicores),
        "requests": quantities((desired.cpu_millicores / 2).max(1)),
    })
}
