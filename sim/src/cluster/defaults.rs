//! What a server adds to an object that does not say otherwise.

mod pod;
mod workload;

use serde_json::{Map, Value, json};

use super::schema::Kind;

/// Adds the defaults of its kind to an object in its stored form.
pub(super) fn fill(kind: &Kind, object: &mut Value) {
    match kind.name {
        "Pod" => pod::pod(object),
        "ReplicaSet" => workload::replica_set(object),
        "Deployment" => workload::deployment(object),
        "HorizontalPodAutoscaler" => workload::autoscaler(object),
        "Service" => service(object),
        "Secret" => secret(object),
        "Namespace" => namespace(object),
        _ => {}
    }
}

fn service(object: &mut Value) {
    let spec = &mut object["spec"];
    default(spec, "type", json!("ClusterIP"));
    default(spec, "sessionAffinity", json!("None"));
    if spec["sessionAffinity"] == "ClientIP" {
        if spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null() {
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10800}});
        }
    } else if let Some(fields) = spec.as_object_mut() {
        fields.remove("sessionAffinityConfig");
    }
    if spec["type"] != "ExternalName" {
        default(spec, "internalTrafficPolicy", json!("Cluster"));
    } else if let Some(fields) = spec.as_object_mut() {
        fields.remove("internalTrafficPolicy");
    }
    if is_open_to_others(spec) {
        default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if spec["type"] == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    for port in items(spec, "ports") {
        default(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        default(port, "targetPort", number);
    }
}

/// Whether a Service is reached from outside the cluster.
pub(super) fn is_open_to_others(spec: &Value) -> bool {
    let has_addresses = spec["externalIPs"]
        .as_array()
        .is_some_and(|addresses| !addresses.is_empty());
    match spec["type"].as_str() {
        Some("NodePort" | "LoadBalancer") => true,
        Some("ClusterIP") => has_addresses,
        _ => false,
    }
}

fn secret(object: &mut Value) {
    use base64::Engine;
    default(object, "type", json!("Opaque"));
    let Some(map) = object.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(texts)) = map.remove("stringData") {
        let data = map.entry("data").or_insert_with(|| json!({}));
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            data[key] = json!(base64::engine::general_purpose::STANDARD.encode(text));
        }
    }
}

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    let labels = &mut object["metadata"]["labels"];
    if labels.is_null() {
        *labels = json!({});
    }
    labels["kubernetes.io/metadata.name"] = name;
    default(object, "spec", json!({}));
    default(object, "status", json!({}));
}

/// The items of a list in an object.
pub(super) fn items<'a>(parent: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = parent.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

pub(super) fn default(object: &mut Value, key: &str, value: Value) {
    if object.is_null() {
        *object = Value::Object(Map::new());
    }
    if object.get(key).is_none() {
        object[key] = value;
    }
}
