//! What else krane may want of an object, and what it is refused for.

mod sentinel;

use fastrand::Rng;
pub(super) use sentinel::{DEPLOYMENT, DEPLOYMENT_FAULTS, SERVICE, SERVICE_FAULTS};
pub(super) use sentinel::{DISRUPTION_BUDGET, DISRUPTION_BUDGET_FAULTS};
use serde_json::{Value, json};

/// Makes a manifest another one.
pub(super) type Mutation = fn(&mut Value, &mut Rng);

/// Other things to want of any object.
pub(super) const ANY: [(&str, Mutation); 3] = [
    ("another label", |body, chance| {
        body["metadata"]["labels"]["theirs"] = json!(["a", "b", ""][chance.usize(..3)]);
    }),
    ("no such label", |body, _| {
        if let Some(labels) = body["metadata"]["labels"].as_object_mut() {
            labels.remove("theirs");
        }
    }),
    ("an annotation", |body, chance| {
        body["metadata"]["annotations"]["x"] = json!(chance.u8(..3).to_string());
    }),
];

const CONTAINER: &str = "/spec/template/spec/containers/0";

fn container(body: &mut Value) -> &mut Value {
    body.pointer_mut(CONTAINER).unwrap()
}

fn pod(body: &mut Value) -> &mut Value {
    &mut body["spec"]["template"]["spec"]
}

fn env(body: &mut Value) -> &mut Vec<Value> {
    container(body)["env"].as_array_mut().unwrap()
}

fn set_or_remove(object: &mut Value, key: &str, values: &[Value], chance: &mut Rng) {
    match values.get(chance.usize(..=values.len())) {
        Some(value) => object[key] = value.clone(),
        None => {
            object.as_object_mut().unwrap().remove(key);
        }
    }
}

/// Other things to want of a ReplicaSet.
pub(super) const REPLICA_SET: [(&str, Mutation); 20] = [
    ANY[0],
    ANY[1],
    ANY[2],
    ("replicas", |body, chance| {
        let values = [json!(0), json!(2), json!(5)];
        set_or_remove(&mut body["spec"], "replicas", &values, chance);
    }),
    ("a variable more", |body, chance| {
        let name = format!("V{}", chance.u8(..6));
        let env = env(body);
        env.retain(|variable| variable["name"] != name);
        let at = chance.usize(..=env.len());
        env.insert(
            at,
            json!({"name": name, "value": chance.u8(..3).to_string()}),
        );
    }),
    ("a variable less", |body, chance| {
        let env = env(body);
        if env.len() > 1 {
            env.remove(chance.usize(..env.len()));
        }
    }),
    ("variables in another order", |body, chance| {
        chance.shuffle(env(body));
    }),
    ("an empty variable", |body, _| {
        let env = env(body);
        env.retain(|variable| variable["name"] != "EMPTY");
        env.push(json!({"name": "EMPTY", "value": ""}));
    }),
    ("a variable from a field", |body, _| {
        let env = env(body);
        env.retain(|variable| variable["name"] != "NAME");
        let field = json!({"fieldRef": {"fieldPath": "metadata.name"}});
        env.push(json!({"name": "NAME", "valueFrom": field}));
    }),
    ("limits", |body, chance| {
        let cpu = ["1000m", "0.5", "2", "250m", "1500m"][chance.usize(..5)];
        let memory = ["2048Mi", "1Gi", "0.5Gi", "1000M", "65Mi"][chance.usize(..5)];
        container(body)["resources"]["limits"] = json!({"cpu": cpu, "memory": memory});
    }),
    ("command", |body, chance| {
        let values = [json!(["a"]), json!(["a", "b"]), json!([])];
        set_or_remove(container(body), "command", &values, chance);
    }),
    ("ports", |body, chance| {
        let values = [
            json!([{"containerPort": 8080}]),
            json!([{"containerPort": 8080, "protocol": "TCP", "name": "http"}]),
            json!([{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]),
        ];
        set_or_remove(container(body), "ports", &values, chance);
    }),
    ("readiness probe", |body, chance| {
        let values = [
            json!({"httpGet": {"path": "/a", "port": 8080}, "periodSeconds": 5}),
            json!({"httpGet": {"path": "/b", "port": "http"}, "initialDelaySeconds": 0}),
            json!({"exec": {"command": ["true"]}, "timeoutSeconds": 7}),
        ];
        set_or_remove(container(body), "readinessProbe", &values, chance);
    }),
    ("tolerations", |body, chance| {
        let values = [
            json!([{"key": "a", "operator": "Exists"}]),
            json!([{"key": "a", "operator": "Equal", "value": "", "effect": "NoSchedule"}]),
            json!([]),
        ];
        set_or_remove(pod(body), "tolerations", &values, chance);
    }),
    ("volumes", |body, chance| {
        let is_there = chance.bool();
        let volumes = json!([{"name": "v", "emptyDir": {"medium": "", "sizeLimit": "1024Mi"}}]);
        let mounts = json!([{"name": "v", "mountPath": "/v", "readOnly": chance.bool()}]);
        set_or_remove(
            pod(body),
            "volumes",
            &[volumes][..usize::from(is_there)],
            &mut Rng::with_seed(0),
        );
        let has = pod(body).get("volumes").is_some();
        container(body)
            .as_object_mut()
            .unwrap()
            .remove("volumeMounts");
        if has {
            container(body)["volumeMounts"] = mounts;
        }
    }),
    ("spread constraints", |body, chance| {
        let labels = json!({"matchLabels": {"a": "b"}});
        let of = |key: &str, skew: u8| {
            json!({
                "maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": labels,
            })
        };
        let values = [
            json!([of("zone", 1)]),
            json!([of("host", 2), of("zone", 1)]),
        ];
        set_or_remove(pod(body), "topologySpreadConstraints", &values, chance);
    }),
    ("pull secrets", |body, chance| {
        let values = [
            json!([{"name": "a"}]),
            json!([{"name": "b"}, {"name": "a"}]),
        ];
        set_or_remove(pod(body), "imagePullSecrets", &values, chance);
    }),
    ("what is false or zero", |body, chance| {
        set_or_remove(pod(body), "hostNetwork", &[json!(false)], chance);
        set_or_remove(
            pod(body),
            "automountServiceAccountToken",
            &[json!(false)],
            chance,
        );
        set_or_remove(
            &mut body["spec"],
            "minReadySeconds",
            &[json!(0), json!(30)],
            chance,
        );
        let values = [json!({}), json!({"privileged": false})];
        set_or_remove(container(body), "securityContext", &values, chance);
    }),
    ("account and node selector", |body, chance| {
        let values = [json!("default"), json!("other")];
        set_or_remove(pod(body), "serviceAccountName", &values, chance);
        let values = [json!({"a": "b"}), json!({"c": "d"}), json!({})];
        set_or_remove(pod(body), "nodeSelector", &values, chance);
    }),
    ("grace and a second container", |body, chance| {
        set_or_remove(
            pod(body),
            "terminationGracePeriodSeconds",
            &[json!(5)],
            chance,
        );
        let containers = pod(body)["containers"].as_array_mut().unwrap();
        containers.truncate(1);
        if chance.bool() {
            containers.push(json!({"name": "second", "image": "registry.example/second"}));
        }
    }),
];

/// What a ReplicaSet is refused for.
pub(super) const REPLICA_SET_FAULTS: [(&str, Mutation); 16] = [
    FAULTS[0],
    FAULTS[1],
    ("FAULT unknown field", |body, _| {
        container(body)["imagePullPolcy"] = json!("Always");
    }),
    ("FAULT variable twice", |body, _| {
        let env = env(body);
        let first = env[0].clone();
        env.push(first);
    }),
    ("FAULT number for text", |body, _| {
        env(body)[0]["value"] = json!(1);
    }),
    ("FAULT text for number", |body, _| {
        body["spec"]["replicas"] = json!("three");
    }),
    ("FAULT object for list", |body, _| {
        container(body)["command"] = json!({});
    }),
    ("FAULT list for object", |body, _| {
        container(body)["resources"] = json!([]);
    }),
    ("FAULT item without key", |body, _| {
        env(body).push(json!({"value": "x"}));
    }),
    ("FAULT no quantity", |body, _| {
        container(body)["resources"]["limits"]["cpu"] = json!("many");
    }),
    ("FAULT request over limit", |body, _| {
        container(body)["resources"] = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}});
    }),
    ("FAULT other selector", |body, _| {
        body["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
        body["spec"]["template"]["metadata"]["labels"]["app"] = json!("other");
    }),
    ("FAULT labels do not match", |body, _| {
        body["spec"]["template"]["metadata"]["labels"]["app"] = json!("other");
    }),
    ("FAULT negative replicas", |body, _| {
        body["spec"]["replicas"] = json!(-1);
    }),
    ("FAULT bad variable name", |body, _| {
        env(body)[0]["name"] = json!("a=b");
    }),
    ("FAULT unknown policy", |body, _| {
        pod(body)["dnsPolicy"] = json!("Sometimes");
    }),
];

/// What any object is refused for.
pub(super) const FAULTS: [(&str, Mutation); 2] = [
    ("FAULT bad label", |body, _| {
        body["metadata"]["labels"]["a"] = json!("not a label!");
    }),
    ("FAULT other version", |body, _| {
        body["apiVersion"] = json!("apps/v9");
    }),
];

/// Other things to want of a policy.
pub(super) const POLICY: [(&str, Mutation); 6] = [
    ANY[0],
    ANY[1],
    ANY[2],
    ("ports", |body, chance| {
        let port = ["8080", "22", "443"][chance.usize(..3)];
        body["spec"]["ingress"][0]["toPorts"] = json!([{"ports": [{"port": port}]}]);
    }),
    ("egress", |body, chance| {
        let values = [json!([]), json!([{"toEntities": ["world"]}])];
        set_or_remove(&mut body["spec"], "egress", &values, chance);
    }),
    ("description", |body, chance| {
        let values = [json!(""), json!("a policy")];
        set_or_remove(&mut body["spec"], "description", &values, chance);
    }),
];

/// What a policy is refused for.
pub(super) const POLICY_FAULTS: [(&str, Mutation); 5] = [
    FAULTS[0],
    FAULTS[1],
    ("FAULT number for text", |body, _| {
        body["spec"]["ingress"][0]["toPorts"] = json!([{"ports": [{"port": 8080}]}]);
    }),
    ("FAULT unknown field", |body, _| {
        body["spec"]["ingres"] = json!([]);
    }),
    ("FAULT unknown protocol", |body, _| {
        let ports = json!([{"port": "1", "protocol": "QUIC"}]);
        body["spec"]["ingress"][0]["toPorts"] = json!([{"ports": ports}]);
    }),
];
