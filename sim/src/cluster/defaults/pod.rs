//! Defaults of pods and of their templates.

use serde_json::{Value, json};

use super::{default, items};

/// A pod of its own has a few more defaults than a template.
pub(super) fn pod(object: &mut Value) {
    let spec = &mut object["spec"];
    default(spec, "enableServiceLinks", json!(true));
    pod_spec(spec, true);
    for container in items(spec, "containers") {
        let limits = container["resources"]["limits"].clone();
        for (name, limit) in limits.as_object().into_iter().flatten() {
            let requests = &mut container["resources"]["requests"];
            default(requests, name, limit.clone());
        }
    }
}

/// What pods and templates of pods have in common.
pub(super) fn pod_spec(spec: &mut Value, has_host_ports: bool) {
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    // Two names of one field; the newer one wins.
    let account = spec
        .get("serviceAccountName")
        .or_else(|| spec.get("serviceAccount"));
    if let Some(account) = account.filter(|account| *account != "").cloned() {
        spec["serviceAccount"] = account.clone();
        spec["serviceAccountName"] = account;
    }
    let is_on_host = has_host_ports && spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        for each in items(spec, list) {
            container(each, is_on_host);
        }
    }
    for each in items(spec, "volumes") {
        volume(each);
    }
}

fn container(container: &mut Value, is_on_host: bool) {
    let log = json!("/dev/termination-log");
    default(container, "terminationMessagePath", log);
    default(container, "terminationMessagePolicy", json!("File"));
    let image = container["image"].as_str().unwrap_or_default();
    let policy = if is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    };
    default(container, "imagePullPolicy", json!(policy));
    default(container, "resources", json!({}));
    for port in items(container, "ports") {
        default(port, "protocol", json!("TCP"));
        if is_on_host {
            let number = port["containerPort"].clone();
            default(port, "hostPort", number);
        }
    }
    for variable in items(container, "env") {
        if let Some(reference) = variable.pointer_mut("/valueFrom/fieldRef") {
            default(reference, "apiVersion", json!("v1"));
        }
        if let Some(reference) = variable.pointer_mut("/valueFrom/resourceFieldRef") {
            default(reference, "divisor", json!("0"));
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name) {
            default(probe, "successThreshold", json!(1));
            default(probe, "timeoutSeconds", json!(1));
            default(probe, "periodSeconds", json!(10));
            default(probe, "failureThreshold", json!(3));
            http_get(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = container.pointer_mut(&format!("/lifecycle/{hook}")) {
            http_get(handler);
        }
    }
}

/// No tag is the tag `latest`.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn http_get(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet") {
        default(get, "path", json!("/"));
        default(get, "scheme", json!("HTTP"));
    }
}

fn volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|fields| fields.len() == 1) {
        volume["emptyDir"] = json!({});
    }
    for source in ["secret", "configMap", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source) {
            default(source, "defaultMode", json!(420));
        }
    }
    if let Some(host) = volume.get_mut("hostPath") {
        default(host, "type", json!(""));
    }
    if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        default(claim, "volumeMode", json!("Filesystem"));
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in items(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                default(token, "expirationSeconds", json!(3600));
            }
            if let Some(downward) = source.get_mut("downwardAPI") {
                for item in items(downward, "items") {
                    if let Some(reference) = item.get_mut("fieldRef") {
                        default(reference, "apiVersion", json!("v1"));
                    }
                }
            }
        }
    }
}
