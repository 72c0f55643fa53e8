//! What the API server adds, rewrites and drops.

use serde_json::{Map, Value, json};

use crate::object::Resource;

/// Turns a rendered body into the stored object, managed fields apart.
pub(super) fn fill(resource: Resource, object: &mut Value) {
    match resource {
        Resource::ReplicaSet => {
            object["metadata"]["generation"] = json!(1);
            object["status"] = json!({ "observedGeneration": 1, "replicas": 0 });
            default(&mut object["spec"], "replicas", json!(1));
            pod(&mut object["spec"]["template"]["spec"]);
        }
        Resource::Namespace => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["status"] = json!({ "phase": "Active" });
        }
        Resource::HorizontalPodAutoscaler => {
            object["status"] = json!({ "currentMetrics": null, "desiredReplicas": 0 });
            behavior(&mut object["spec"]["behavior"]);
        }
        Resource::CiliumNetworkPolicy => object["metadata"]["generation"] = json!(1),
        Resource::Deployment => {
            object["metadata"]["generation"] = json!(1);
            object["status"] = json!({});
            let spec = &mut object["spec"];
            default(spec, "replicas", json!(1));
            default(spec, "progressDeadlineSeconds", json!(600));
            default(spec, "revisionHistoryLimit", json!(10));
            pod(&mut spec["template"]["spec"]);
        }
        Resource::Service => {
            object["status"] = json!({ "loadBalancer": {} });
            let spec = &mut object["spec"];
            default(spec, "clusterIP", json!("10.0.0.1"));
            let address = spec["clusterIP"].clone();
            default(spec, "clusterIPs", json!([address]));
            default(spec, "internalTrafficPolicy", json!("Cluster"));
            default(spec, "ipFamilies", json!(["IPv4"]));
            default(spec, "ipFamilyPolicy", json!("SingleStack"));
            default(spec, "sessionAffinity", json!("None"));
        }
        Resource::PodDisruptionBudget => {
            object["metadata"]["generation"] = json!(1);
            object["status"] = json!({ "currentHealthy": 0 });
        }
        Resource::Secret | Resource::Pod => {}
    }
}

/// How fast an autoscaler may go up and down.
fn behavior(behavior: &mut Value) {
    let percent = json!({ "type": "Percent", "value": 100, "periodSeconds": 15 });
    let pods = json!({ "type": "Pods", "value": 4, "periodSeconds": 15 });
    let rules = [
        ("scaleDown", json!([percent.clone()])),
        ("scaleUp", json!([pods, percent])),
    ];
    for (direction, policies) in rules {
        default(
            behavior,
            direction,
            json!({ "stabilizationWindowSeconds": 0 }),
        );
        default(&mut behavior[direction], "selectPolicy", json!("Max"));
        default(&mut behavior[direction], "policies", policies);
    }
}

fn pod(spec: &mut Value) {
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    for container in items(spec, "containers") {
        default(
            container,
            "terminationMessagePath",
            json!("/dev/termination-log"),
        );
        default(container, "terminationMessagePolicy", json!("File"));
        default(container, "imagePullPolicy", json!("IfNotPresent"));
        default(container, "resources", json!({}));
        for port in items(container, "ports") {
            default(port, "protocol", json!("TCP"));
        }
        for variable in items(container, "env") {
            drop_empty(variable, "value");
            if let Some(reference) = variable.pointer_mut("/valueFrom/fieldRef") {
                default(reference, "apiVersion", json!("v1"));
            }
        }
        for probe in ["livenessProbe", "readinessProbe"] {
            if let Some(probe) = container.get_mut(probe) {
                drop_empty(probe, "initialDelaySeconds");
                default(probe, "successThreshold", json!(1));
                default(probe, "timeoutSeconds", json!(1));
                default(probe, "periodSeconds", json!(10));
                default(probe, "failureThreshold", json!(3));
                if let Some(get) = probe.get_mut("httpGet") {
                    default(get, "scheme", json!("HTTP"));
                }
            }
        }
        for amounts in ["limits", "requests"] {
            let amounts = container["resources"]
                .get_mut(amounts)
                .and_then(Value::as_object_mut);
            for quantity in amounts.into_iter().flat_map(Map::values_mut) {
                let canonical = quantity.as_str().map(canonical);
                *quantity = json!(canonical);
            }
        }
    }
    for volume in items(spec, "volumes") {
        if let Some(projected) = volume.get_mut("projected") {
            default(projected, "defaultMode", json!(420));
        }
        if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate") {
            default(claim, "metadata", json!({}));
            default(&mut claim["spec"], "volumeMode", json!("Filesystem"));
            let storage = claim.pointer_mut("/spec/resources/requests/storage");
            if let Some(quantity) = storage {
                let canonical = quantity.as_str().map(canonical);
                *quantity = json!(canonical);
            }
        }
    }
}

fn items<'a>(parent: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    parent
        .get_mut(key)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

fn default(object: &mut Value, key: &str, value: Value) {
    if object.get(key).is_none() {
        object[key] = value;
    }
}

fn drop_empty(object: &mut Value, key: &str) {
    let is_empty = |value: &Value| value.as_str() == Some("") || value.as_i64() == Some(0);
    if object.get(key).is_some_and(is_empty)
        && let Some(map) = object.as_object_mut()
    {
        map.remove(key);
    }
}

/// The spelling the API server stores: `1000m` is `1`, `2048Mi` is `2Gi`.
fn canonical(quantity: &str) -> String {
    let split = quantity
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(split);
    let Ok(mut number) = number.parse::<u64>() else {
        return quantity.to_owned();
    };
    let ladder = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if unit == "m" && number.is_multiple_of(1000) {
        return (number / 1000).to_string();
    }
    let Some(mut step) = ladder
        .iter()
        .position(|step| *step == unit && !unit.is_empty())
    else {
        return quantity.to_owned();
    };
    while number.is_multiple_of(1024) && number > 0 && step + 1 < ladder.len() {
        number /= 1024;
        step += 1;
    }
    format!("{number}{}", ladder.get(step).copied().unwrap_or_default())
}
