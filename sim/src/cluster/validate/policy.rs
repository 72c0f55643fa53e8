//! What the definition of CiliumNetworkPolicy demands.

use serde_json::Value;

use crate::cluster::refusals::Broken;

const ENTITIES: [&str; 11] = [
    "all",
    "world",
    "cluster",
    "host",
    "init",
    "ingress",
    "unmanaged",
    "remote-node",
    "health",
    "none",
    "kube-apiserver",
];
const PROTOCOLS: [&str; 4] = ["TCP", "UDP", "SCTP", "ANY"];
const PORTS_PER_ENTRY: usize = 40;

/// What is wrong with a policy.
pub(super) fn broken(object: &Value, broken: &mut Vec<Broken>) {
    if let Some(spec) = object.get("spec") {
        rules("spec", spec, broken);
    }
    for (index, spec) in items(&object["specs"]).enumerate() {
        rules(&format!("specs[{index}]"), spec, broken);
    }
}

fn rules(path: &str, spec: &Value, broken: &mut Vec<Broken>) {
    let count = |names: &[&str]| {
        let given = names.iter().filter(|name| spec.get(**name).is_some());
        given.count()
    };
    if count(&["ingress", "ingressDeny", "egress", "egressDeny"]) == 0 {
        let text = format!("\"{path}\" must validate at least one schema (anyOf)");
        broken.push(Broken::invalid("<nil>", &Value::from(""), &text));
    }
    if count(&["endpointSelector", "nodeSelector"]) != 1 {
        let text = format!("\"{path}\" must validate one and only one schema (oneOf)");
        broken.push(Broken::invalid("<nil>", &Value::from(""), &text));
    }
    for (part, peers) in [
        ("ingress", "fromEntities"),
        ("ingressDeny", "fromEntities"),
        ("egress", "toEntities"),
        ("egressDeny", "toEntities"),
    ] {
        for (index, rule) in items(&spec[part]).enumerate() {
            let path = format!("{path}.{part}[{index}]");
            for (index, entity) in items(&rule[peers]).enumerate() {
                let is_known = entity.as_str().is_some_and(|name| ENTITIES.contains(&name));
                if !is_known {
                    let field = format!("{path}.{peers}[{index}]");
                    broken.push(Broken::unsupported(field, entity, &ENTITIES));
                }
            }
            for (index, entry) in items(&rule["toPorts"]).enumerate() {
                ports(
                    &format!("{path}.toPorts[{index}].ports"),
                    &entry["ports"],
                    broken,
                );
            }
        }
    }
}

fn ports(path: &str, ports: &Value, broken: &mut Vec<Broken>) {
    let count = items(ports).count();
    if count > PORTS_PER_ENTRY {
        broken.push(Broken {
            reason: "FieldValueTooMany",
            field: path.to_owned(),
            text: format!("Too many: {count}: must have at most {PORTS_PER_ENTRY} items"),
        });
    }
    for (index, each) in items(ports).enumerate() {
        let path = format!("{path}[{index}]");
        let port = &each["port"];
        match port.as_str() {
            None => broken.push(Broken::required(format!("{path}.port"), "")),
            Some(text) if is_port(text) => {}
            Some(_) => {
                let text = "should match the pattern of a port's number or name";
                broken.push(Broken::invalid(format!("{path}.port"), port, text));
            }
        }
        let protocol = &each["protocol"];
        if protocol
            .as_str()
            .is_some_and(|name| !PROTOCOLS.contains(&name))
        {
            broken.push(Broken::unsupported(
                format!("{path}.protocol"),
                protocol,
                &PROTOCOLS,
            ));
        }
    }
}

/// The pattern is bound at one end only: whatever begins with a digit or ends like a name fits.
fn is_port(text: &str) -> bool {
    let name = text
        .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .next();
    let ends_like_a_name = name
        .is_some_and(|name| !name.ends_with('-') && name.bytes().any(|c| c.is_ascii_alphabetic()));
    text.starts_with(|c: char| c.is_ascii_digit()) || ends_like_a_name
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
