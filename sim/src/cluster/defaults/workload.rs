//! Defaults of what makes and scales pods.

use serde_json::{Value, json};

use super::{default, items, pod::pod_spec};

pub(super) fn replica_set(object: &mut Value) {
    default(&mut object["spec"], "replicas", json!(1));
    pod_spec(&mut object["spec"]["template"]["spec"], true);
}

pub(super) fn deployment(object: &mut Value) {
    let spec = &mut object["spec"];
    default(spec, "replicas", json!(1));
    default(spec, "revisionHistoryLimit", json!(10));
    default(spec, "progressDeadlineSeconds", json!(600));
    let strategy = &mut spec["strategy"];
    default(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        default(strategy, "rollingUpdate", json!({}));
        let rolling = &mut strategy["rollingUpdate"];
        default(rolling, "maxUnavailable", json!("25%"));
        default(rolling, "maxSurge", json!("25%"));
    }
    // Only pods and what makes them without anything between get ports of the host.
    pod_spec(&mut spec["template"]["spec"], false);
}

pub(super) fn autoscaler(object: &mut Value) {
    default(object, "status", json!({}));
    default(&mut object["status"], "currentMetrics", Value::Null);
    default(&mut object["status"], "desiredReplicas", json!(0));
    let spec = &mut object["spec"];
    default(spec, "minReplicas", json!(1));
    let utilization = json!({"type": "Utilization", "averageUtilization": 80});
    let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": utilization}});
    default(spec, "metrics", json!([metric]));
    let Some(behavior) = spec.get_mut("behavior") else {
        return;
    };
    default(behavior, "scaleUp", json!({}));
    let up = &mut behavior["scaleUp"];
    default(up, "stabilizationWindowSeconds", json!(0));
    default(up, "selectPolicy", json!("Max"));
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    default(up, "policies", json!([pods, percent.clone()]));
    default(behavior, "scaleDown", json!({}));
    let down = &mut behavior["scaleDown"];
    default(down, "selectPolicy", json!("Max"));
    default(down, "policies", json!([percent]));
    for policy in items(down, "policies") {
        default(policy, "periodSeconds", json!(15));
    }
}
