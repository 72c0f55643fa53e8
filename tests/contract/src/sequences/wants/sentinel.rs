//! What else krane may want of the objects of a sentinel, and what it is refused for.

use serde_json::json;

use super::{ANY, FAULTS, Mutation, REPLICA_SET, REPLICA_SET_FAULTS, set_or_remove};

/// Other things to want of a Deployment: what goes for a ReplicaSet, and how it is rolled out.
pub(crate) const DEPLOYMENT: [(&str, Mutation); 18] = [
    ANY[0],
    ANY[1],
    ANY[2],
    REPLICA_SET[3],
    REPLICA_SET[4],
    REPLICA_SET[7],
    REPLICA_SET[9],
    REPLICA_SET[10],
    REPLICA_SET[11],
    REPLICA_SET[12],
    REPLICA_SET[13],
    REPLICA_SET[14],
    REPLICA_SET[17],
    REPLICA_SET[18],
    ("strategy", |body, chance| {
        let rolling = |unavailable, surge| {
            let rolling = json!({"maxUnavailable": unavailable, "maxSurge": surge});
            json!({"type": "RollingUpdate", "rollingUpdate": rolling})
        };
        let values = [
            rolling(json!(0), json!(1)),
            rolling(json!("50%"), json!(0)),
            json!({"type": "RollingUpdate"}),
        ];
        set_or_remove(&mut body["spec"], "strategy", &values, chance);
    }),
    ("deadline and history", |body, chance| {
        let spec = &mut body["spec"];
        set_or_remove(spec, "progressDeadlineSeconds", &[json!(300)], chance);
        set_or_remove(spec, "revisionHistoryLimit", &[json!(0), json!(3)], chance);
    }),
    ("paused", |body, chance| {
        set_or_remove(
            &mut body["spec"],
            "paused",
            &[json!(false), json!(true)],
            chance,
        );
    }),
    ("sources of variables", |body, chance| {
        let secret = |name| json!({"secretRef": {"name": name, "optional": false}});
        let values = [
            json!([secret("a")]),
            json!([secret("b"), secret("a")]),
            json!([]),
        ];
        let container = &mut body["spec"]["template"]["spec"]["containers"][0];
        set_or_remove(container, "envFrom", &values, chance);
    }),
];

/// What a Deployment is refused for.
pub(crate) const DEPLOYMENT_FAULTS: [(&str, Mutation); 12] = [
    FAULTS[0],
    FAULTS[1],
    REPLICA_SET_FAULTS[2],
    REPLICA_SET_FAULTS[4],
    REPLICA_SET_FAULTS[9],
    REPLICA_SET_FAULTS[11],
    REPLICA_SET_FAULTS[13],
    ("FAULT no room to roll", |body, _| {
        let rolling = json!({"maxUnavailable": 0, "maxSurge": 0});
        body["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    }),
    ("FAULT rolled and not", |body, _| {
        body["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}});
    }),
    ("FAULT unknown strategy", |body, _| {
        body["spec"]["strategy"] = json!({"type": "Hope"});
    }),
    ("FAULT deadline too short", |body, _| {
        body["spec"]["minReadySeconds"] = json!(30);
        body["spec"]["progressDeadlineSeconds"] = json!(30);
    }),
    ("FAULT no percentage", |body, _| {
        let rolling = json!({"maxUnavailable": "many", "maxSurge": 1});
        body["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    }),
];

/// Other things to want of a Service.
pub(crate) const SERVICE: [(&str, Mutation); 7] = [
    ANY[0],
    ANY[1],
    ANY[2],
    ("selector", |body, chance| {
        let values = [json!({"a": "b"}), json!({"a": "b", "c": "d"}), json!({})];
        set_or_remove(&mut body["spec"], "selector", &values, chance);
    }),
    ("ports", |body, chance| {
        let values = [
            json!([{"port": 8040}]),
            json!([{"port": 8040, "targetPort": "http", "protocol": "TCP", "name": "http"}]),
            json!([{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}]),
        ];
        body["spec"]["ports"] = values[chance.usize(..values.len())].clone();
    }),
    ("affinity and traffic", |body, chance| {
        let spec = &mut body["spec"];
        set_or_remove(
            spec,
            "sessionAffinity",
            &[json!("None"), json!("ClientIP")],
            chance,
        );
        let values = [json!("Cluster"), json!("Local")];
        set_or_remove(spec, "internalTrafficPolicy", &values, chance);
    }),
    ("what is false", |body, chance| {
        let spec = &mut body["spec"];
        set_or_remove(spec, "publishNotReadyAddresses", &[json!(false)], chance);
    }),
];

/// What a Service is refused for.
pub(crate) const SERVICE_FAULTS: [(&str, Mutation); 10] = [
    FAULTS[0],
    FAULTS[1],
    ("FAULT unknown field", |body, _| {
        body["spec"]["clusterIp"] = json!("None");
    }),
    ("FAULT port twice", |body, _| {
        body["spec"]["ports"] = json!([{"name": "a", "port": 1}, {"name": "b", "port": 1}]);
    }),
    ("FAULT name twice", |body, _| {
        body["spec"]["ports"] = json!([{"name": "a", "port": 1}, {"name": "a", "port": 2}]);
    }),
    ("FAULT several ports without names", |body, _| {
        body["spec"]["ports"] = json!([{"port": 1}, {"port": 2}]);
    }),
    ("FAULT no such port", |body, _| {
        body["spec"]["ports"] = json!([{"port": 70000}]);
    }),
    ("FAULT unknown protocol", |body, _| {
        body["spec"]["ports"] = json!([{"port": 1, "protocol": "QUIC"}]);
    }),
    ("FAULT headless or not", |body, _| {
        let is_headless = body["spec"]["clusterIP"] == "None";
        body["spec"]["clusterIP"] = json!(if is_headless { "10.255.255.9" } else { "None" });
    }),
    ("FAULT unknown type", |body, _| {
        body["spec"]["type"] = json!("Cluster");
    }),
];

/// Other things to want of a disruption budget.
pub(crate) const DISRUPTION_BUDGET: [(&str, Mutation); 6] = [
    ANY[0],
    ANY[1],
    ANY[2],
    ("the other half", |body, chance| {
        let spec = body["spec"].as_object_mut().unwrap();
        spec.remove("minAvailable");
        spec.remove("maxUnavailable");
        let half = ["minAvailable", "maxUnavailable"][chance.usize(..2)];
        let value = [json!(1), json!("50%"), json!(0)][chance.usize(..3)].clone();
        spec.insert(half.to_owned(), value);
    }),
    ("policy", |body, chance| {
        let values = [json!("AlwaysAllow"), json!("IfHealthyBudget")];
        set_or_remove(
            &mut body["spec"],
            "unhealthyPodEvictionPolicy",
            &values,
            chance,
        );
    }),
    ("selector", |body, chance| {
        let values = [json!({"matchLabels": {"a": "b"}}), json!({})];
        set_or_remove(&mut body["spec"], "selector", &values, chance);
    }),
];

/// What a disruption budget is refused for.
pub(crate) const DISRUPTION_BUDGET_FAULTS: [(&str, Mutation); 5] = [
    FAULTS[0],
    FAULTS[1],
    ("FAULT both halves", |body, _| {
        body["spec"]["minAvailable"] = json!(1);
        body["spec"]["maxUnavailable"] = json!(1);
    }),
    ("FAULT no percentage", |body, _| {
        body["spec"]["maxUnavailable"] = json!("many");
    }),
    ("FAULT unknown policy", |body, _| {
        body["spec"]["unhealthyPodEvictionPolicy"] = json!("Sometimes");
    }),
];
