//! `status` of a pod, as scheduler and kubelet write it.

use serde_json::{Value, json};

use super::Behaviour;

/// Whether all containers have ended for good.
pub(super) fn is_over(pod: &Value) -> bool {
    matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    )
}

/// Sets a condition; its time changes only with its status.
pub(super) fn set(status: &mut Value, name: &str, is_true: bool, reason: &str, now: &str) {
    if status["conditions"].is_null() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    let word = if is_true { "True" } else { "False" };
    let mut condition = json!({"type": name, "status": word});
    if !now.is_empty() {
        condition["lastTransitionTime"] = json!(now);
    }
    if !reason.is_empty() {
        condition["reason"] = json!(reason);
    }
    match conditions.iter_mut().find(|known| known["type"] == name) {
        Some(known) if known["status"] == word => {}
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

pub(super) fn unschedulable(status: &mut Value, now: &str) {
    set(status, "PodScheduled", false, "Unschedulable", now);
}

pub(super) fn set_ready(status: &mut Value, is_ready: bool, now: &str) {
    let reason = if is_ready { "" } else { "ContainersNotReady" };
    set(status, "ContainersReady", is_ready, reason, now);
    set(status, "Ready", is_ready, reason, now);
    each_container(status, |container| container["ready"] = json!(is_ready));
}

/// The kubelet has taken the pod.
pub(super) fn started(status: &mut Value, spec: &Value, behaviour: Behaviour, now: &str) {
    let containers = spec["containers"].as_array().into_iter().flatten();
    let running = json!({"running": {"startedAt": now}});
    let state = match behaviour {
        Behaviour::ImagePull => json!({"waiting": {"reason": "ErrImagePull"}}),
        Behaviour::Crash => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        Behaviour::Well
        | Behaviour::Pending
        | Behaviour::Slow
        | Behaviour::Unready
        | Behaviour::Fail
        | Behaviour::Stuck
        | Behaviour::Manual => running,
    };
    let statuses: Vec<Value> = containers
        .map(|container| {
            json!({
                "name": container["name"], "image": container["image"], "imageID": "",
                "ready": false, "started": state.get("running").is_some(), "restartCount": 0,
                "state": state,
            })
        })
        .collect();
    status["containerStatuses"] = json!(statuses);
    let is_pulled = behaviour != Behaviour::ImagePull;
    status["phase"] = json!(if is_pulled { "Running" } else { "Pending" });
    set(status, "Initialized", true, "", now);
    set_ready(status, false, now);
}

/// A Secret that a container cannot do without is not there.
pub(super) fn wait_for_secret(status: &mut Value, name: &str) {
    status["phase"] = json!("Pending");
    each_container(status, |container| {
        container["started"] = json!(false);
        container["state"] = json!({"waiting": {
            "reason": "CreateContainerConfigError",
            "message": format!("secret \"{name}\" not found"),
        }});
    });
}

pub(super) fn crash(status: &mut Value, now: &str) {
    set_ready(status, false, now);
    each_container(status, |container| {
        container["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        container["started"] = json!(false);
    });
}

pub(super) fn restart(status: &mut Value, now: &str) {
    each_container(status, |container| {
        let count = container["restartCount"].as_u64().unwrap_or_default();
        container["restartCount"] = json!(count + 1);
        if container["state"]["waiting"]["reason"] == "CrashLoopBackOff" {
            container["state"] = json!({"running": {"startedAt": now}});
            container["started"] = json!(true);
        }
    });
}

pub(super) fn fail(status: &mut Value, reason: &str, message: &str, now: &str) {
    set_ready(status, false, now);
    status["phase"] = json!("Failed");
    status["reason"] = json!(reason);
    if !message.is_empty() {
        status["message"] = json!(message);
    }
    each_container(status, |container| {
        container["state"] = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    });
}

fn each_container(status: &mut Value, change: impl Fn(&mut Value)) {
    let containers = status["containerStatuses"].as_array_mut();
    containers.into_iter().flatten().for_each(change);
}
