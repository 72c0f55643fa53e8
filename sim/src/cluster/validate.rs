//! What each kind demands of its objects, beyond their types.

mod metadata;
mod pod;
mod policy;
mod service;

use krane_domain::object::Resource;
use serde_json::Value;

use super::refusals::Broken;
use super::schema::Kind;
use super::selectors::label_selector_matches;

/// What is wrong with a new object.
pub(super) fn created(kind: &Kind, object: &Value) -> Vec<Broken> {
    let mut broken = metadata::broken(object, kind.name == Resource::Namespace.kind());
    match kind.name {
        "Pod" => pod::pod_spec("spec", &object["spec"], &mut broken),
        "ReplicaSet" => workload(object, &mut broken),
        "Deployment" => {
            workload(object, &mut broken);
            service::rollout(object, &mut broken);
        }
        "Service" => service::service(object, &mut broken),
        "PodDisruptionBudget" => service::disruption_budget(object, &mut broken),
        "Secret" => secret(object, &mut broken),
        "CiliumNetworkPolicy" => policy::broken(object, &mut broken),
        _ => {}
    }
    broken
}

/// What is wrong with a change.
pub(super) fn updated(kind: &Kind, new: &Value, old: &Value) -> Vec<Broken> {
    let mut broken = created(kind, new);
    let mut immutable = |pointer: &str, field: &str| {
        if new.pointer(pointer) != old.pointer(pointer) {
            let value = new.pointer(pointer).unwrap_or(&Value::Null);
            broken.push(Broken::invalid(field, value, "field is immutable"));
        }
    };
    match kind.name {
        "ReplicaSet" | "Deployment" => immutable("/spec/selector", "spec.selector"),
        "Secret" => immutable("/type", "type"),
        "Service" => service::service_change(new, old, &mut broken),
        _ => {}
    }
    if kind.name == "Secret" && old["immutable"] == true {
        let text = "field is immutable when `immutable` is set";
        for field in ["data", "immutable"] {
            if new[field] != old[field] {
                broken.push(Broken::forbidden(field, text));
            }
        }
    }
    broken
}

fn workload(object: &Value, broken: &mut Vec<Broken>) {
    let spec = &object["spec"];
    for field in ["replicas", "minReadySeconds"] {
        if spec[field].as_i64().is_some_and(|number| number < 0) {
            let text = "must be greater than or equal to 0";
            broken.push(Broken::invalid(format!("spec.{field}"), &spec[field], text));
        }
    }
    let selector = &spec["selector"];
    if selector.is_null() {
        broken.push(Broken::required("spec.selector", ""));
    } else if selector.as_object().is_some_and(serde_json::Map::is_empty) {
        let text = "empty selector is invalid for deployment";
        broken.push(Broken::invalid("spec.selector", selector, text));
    }
    let template = &spec["template"];
    let labels = &template["metadata"]["labels"];
    if !selector.is_null() && !label_selector_matches(selector, labels) {
        let text = "`selector` does not match template `labels`";
        broken.push(Broken::invalid(
            "spec.template.metadata.labels",
            labels,
            text,
        ));
    }
    metadata::labels("spec.template.metadata.labels", labels, broken);
    pod::pod_spec("spec.template.spec", &template["spec"], broken);
    let restart = &template["spec"]["restartPolicy"];
    if restart != "Always" {
        let field = "spec.template.spec.restartPolicy";
        broken.push(Broken::unsupported(field, restart, &["Always"]));
    }
}

fn secret(object: &Value, broken: &mut Vec<Broken>) {
    use base64::Engine;
    let data = object["data"].as_object();
    for key in data.into_iter().flatten().map(|(key, _)| key) {
        let is_legal = key
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c));
        if !is_legal || key.is_empty() || key.len() > 253 {
            let text =
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
            broken.push(Broken::invalid(
                format!("data[{key}]"),
                &Value::from(&**key),
                text,
            ));
        }
    }
    if object["type"] == "kubernetes.io/dockerconfigjson" {
        let config = &object["data"][".dockerconfigjson"];
        let text = config
            .as_str()
            .map(|text| base64::engine::general_purpose::STANDARD.decode(text));
        match text {
            None => broken.push(Broken::required("data[.dockerconfigjson]", "")),
            Some(Ok(text)) if serde_json::from_slice::<Value>(&text).is_ok() => {}
            Some(_) => {
                let field = "data[.dockerconfigjson]";
                let value = Value::from("<secret contents redacted>");
                broken.push(Broken::invalid(field, &value, "invalid character in JSON"));
            }
        }
    }
}
