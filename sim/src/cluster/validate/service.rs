//! What Services and disruption budgets have to be like.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::metadata;
use crate::cluster::refusals::Broken;
use crate::cluster::services::has_address;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const LONGEST_NAME: usize = 63;

/// What is wrong with a Service.
pub(super) fn service(object: &Value, broken: &mut Vec<Broken>) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name.len() > LONGEST_NAME || name.contains('.') {
        let text = "must be no more than 63 characters, without dots";
        let value = &object["metadata"]["name"];
        broken.push(Broken::invalid("metadata.name", value, text));
    }
    let spec = &object["spec"];
    one_of("spec.type", &spec["type"], &TYPES, broken);
    let affinities = ["ClientIP", "None"];
    one_of(
        "spec.sessionAffinity",
        &spec["sessionAffinity"],
        &affinities,
        broken,
    );
    for field in ["internalTrafficPolicy", "externalTrafficPolicy"] {
        let known = ["Cluster", "Local"];
        one_of(&format!("spec.{field}"), &spec[field], &known, broken);
    }
    let known = ["PreferClose", "PreferSameNode", "PreferSameZone"];
    let distribution = &spec["trafficDistribution"];
    one_of("spec.trafficDistribution", distribution, &known, broken);
    addresses(spec, broken);
    ports(spec, broken);
    metadata::labels("spec.selector", &spec["selector"], broken);
    for (index, address) in items(&spec["externalIPs"]).enumerate() {
        if !is_address(address) {
            let field = format!("spec.externalIPs[{index}]");
            broken.push(Broken::invalid(
                field,
                address,
                "must be a valid IP address",
            ));
        }
    }
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIPs"][0] == "None"
}

fn addresses(spec: &Value, broken: &mut Vec<Broken>) {
    let list = &spec["clusterIPs"];
    if !has_address(spec) {
        for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if !spec[field].is_null() {
                let text = "may not be set for ExternalName services";
                broken.push(Broken::forbidden(format!("spec.{field}"), text));
            }
        }
        if spec["externalName"].as_str().unwrap_or_default().is_empty() {
            broken.push(Broken::required("spec.externalName", ""));
        }
        return;
    }
    if list[0] != spec["clusterIP"] {
        let text = "first value must match `clusterIP`";
        broken.push(Broken::invalid("spec.clusterIPs", list, text));
    }
    if is_headless(spec) {
        if spec["type"] != "ClusterIP" {
            let text = "may not be set to 'None' for services of this type";
            broken.push(Broken::invalid("spec.clusterIPs[0]", &list[0], text));
        }
    } else if !items(list).all(is_address) {
        let text = "must be a valid IP address";
        broken.push(Broken::invalid("spec.clusterIPs", list, text));
    }
}

/// Several ports need names of their own, and each number and protocol is there once.
fn ports(spec: &Value, broken: &mut Vec<Broken>) {
    let count = items(&spec["ports"]).count();
    if count == 0 && !is_headless(spec) && has_address(spec) {
        broken.push(Broken::required("spec.ports", ""));
    }
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in items(&spec["ports"]).enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            if count > 1 {
                broken.push(Broken::required(field("name"), ""));
            }
        } else if !is_label(name) {
            let text = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                        characters or '-'";
            broken.push(Broken::invalid(field("name"), &port["name"], text));
        } else if !names.insert(name) {
            broken.push(duplicate(field("name"), &port["name"]));
        }
        for (name, is_named) in [("port", false), ("targetPort", true)] {
            let number = &port[name];
            let fits = match number.as_i64() {
                Some(number) => (1..=65535).contains(&number),
                None => is_named && number.as_str().is_some_and(is_label),
            };
            if !fits {
                let text = "must be between 1 and 65535, inclusive";
                broken.push(Broken::invalid(field(name), number, text));
            }
        }
        one_of(&field("protocol"), &port["protocol"], &PROTOCOLS, broken);
        let key = (port["port"].to_string(), port["protocol"].to_string());
        if !numbers.insert(key) {
            broken.push(duplicate(format!("spec.ports[{index}]"), port));
        }
    }
}

/// What is wrong with a change of addresses: an address is for life, unless the type changes.
pub(super) fn service_change(new: &Value, old: &Value, broken: &mut Vec<Broken>) {
    let (new, old) = (&new["spec"], &old["spec"]);
    if has_address(new) && has_address(old) && new["clusterIPs"] != old["clusterIPs"] {
        let text = "may not change once set";
        let field = "spec.clusterIPs[0]";
        broken.push(Broken::invalid(field, &new["clusterIPs"], text));
    }
}

/// What is wrong with a disruption budget.
pub(super) fn disruption_budget(object: &Value, broken: &mut Vec<Broken>) {
    let spec = &object["spec"];
    let halves = ["minAvailable", "maxUnavailable"];
    if halves.iter().all(|half| !spec[*half].is_null()) {
        let text = "minAvailable and maxUnavailable cannot be both set";
        broken.push(Broken::invalid("spec", spec, text));
    }
    for half in halves.into_iter().filter(|half| !spec[*half].is_null()) {
        number_or_percent(&format!("spec.{half}"), &spec[half], broken);
    }
    label_selector("spec.selector", &spec["selector"], broken);
    let known = ["AlwaysAllow", "IfHealthyBudget"];
    let policy = &spec["unhealthyPodEvictionPolicy"];
    one_of("spec.unhealthyPodEvictionPolicy", policy, &known, broken);
}

/// What is wrong with how a Deployment rolls its pods.
pub(super) fn rollout(object: &Value, broken: &mut Vec<Broken>) {
    let spec = &object["spec"];
    let strategy = &spec["strategy"];
    let rolling = &strategy["rollingUpdate"];
    let known = ["Recreate", "RollingUpdate"];
    one_of("spec.strategy.type", &strategy["type"], &known, broken);
    if strategy["type"] == "Recreate" && !rolling.is_null() {
        let text = "may not be specified when strategy `type` is 'Recreate'";
        broken.push(Broken::forbidden("spec.strategy.rollingUpdate", text));
    }
    if strategy["type"] == "RollingUpdate" {
        let field = |name: &str| format!("spec.strategy.rollingUpdate.{name}");
        for name in ["maxUnavailable", "maxSurge"] {
            number_or_percent(&field(name), &rolling[name], broken);
        }
        let is_none = |name: &str| rolling[name] == 0 || rolling[name] == "0%";
        if is_none("maxUnavailable") && is_none("maxSurge") {
            let text = "may not be 0 when `maxSurge` is 0";
            let value = &rolling["maxUnavailable"];
            broken.push(Broken::invalid(field("maxUnavailable"), value, text));
        }
    }
    let deadline = &spec["progressDeadlineSeconds"];
    let least = spec["minReadySeconds"].as_i64().unwrap_or_default();
    if deadline.as_i64().is_some_and(|deadline| deadline <= least) {
        let text = "must be greater than minReadySeconds";
        broken.push(Broken::invalid(
            "spec.progressDeadlineSeconds",
            deadline,
            text,
        ));
    }
    let limit = &spec["revisionHistoryLimit"];
    if limit.as_i64().is_some_and(|limit| limit < 0) {
        let text = "must be greater than or equal to 0";
        broken.push(Broken::invalid("spec.revisionHistoryLimit", limit, text));
    }
}

fn label_selector(field: &str, selector: &Value, broken: &mut Vec<Broken>) {
    let field = format!("{field}.matchLabels");
    metadata::labels(&field, &selector["matchLabels"], broken);
}

fn number_or_percent(field: &str, value: &Value, broken: &mut Vec<Broken>) {
    let fits = match value.as_str() {
        Some(text) => {
            let number = text.strip_suffix('%');
            number.is_some_and(|number| number.parse::<u8>().is_ok_and(|number| number <= 100))
        }
        None => value.as_i64().is_some_and(|number| number >= 0),
    };
    if !fits {
        let text = "must be a whole number, or a percentage of at most 100%";
        broken.push(Broken::invalid(field, value, text));
    }
}

fn one_of(field: &str, value: &Value, known: &[&str], broken: &mut Vec<Broken>) {
    if value.as_str().is_some_and(|value| !known.contains(&value)) {
        broken.push(Broken::unsupported(field, value, known));
    }
}

fn duplicate(field: String, value: &Value) -> Broken {
    Broken {
        reason: "FieldValueDuplicate",
        field,
        text: format!("Duplicate value: {value}"),
    }
}

fn is_label(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && text.chars().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_address(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.parse::<IpAddr>().is_ok())
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
