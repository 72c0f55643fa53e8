//! Pods and their templates.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cluster::quantity;
use crate::cluster::refusals::Broken;

/// What is wrong with the specification of a pod.
pub(super) fn pod_spec(path: &str, spec: &Value, broken: &mut Vec<Broken>) {
    let containers = spec["containers"].as_array().map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        broken.push(Broken::required(format!("{path}.containers"), ""));
    }
    let volumes: BTreeSet<&str> = spec["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    let inits = spec["initContainers"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    for (list, containers) in [("initContainers", inits), ("containers", containers)] {
        let names = containers.iter().map(|each| &each["name"]);
        unique(&format!("{path}.{list}"), "name", names, broken);
        for (index, each) in containers.iter().enumerate() {
            container(&format!("{path}.{list}[{index}]"), each, &volumes, broken);
        }
    }
    let names = spec["volumes"].as_array().into_iter().flatten();
    let names = names.map(|volume| &volume["name"]);
    unique(&format!("{path}.volumes"), "name", names, broken);
    let policies = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    one_of(
        format!("{path}.dnsPolicy"),
        &spec["dnsPolicy"],
        &policies,
        broken,
    );
    let policies = ["Always", "OnFailure", "Never"];
    one_of(
        format!("{path}.restartPolicy"),
        &spec["restartPolicy"],
        &policies,
        broken,
    );
    at_least_zero(path, spec, "terminationGracePeriodSeconds", broken);
    let spreads = spec["topologySpreadConstraints"].as_array();
    for (index, spread) in spreads.into_iter().flatten().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{index}]");
        if spread["maxSkew"].as_i64().is_none_or(|skew| skew < 1) {
            let text = "must be greater than zero";
            broken.push(Broken::invalid(
                format!("{path}.maxSkew"),
                &spread["maxSkew"],
                text,
            ));
        }
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        let field = format!("{path}.whenUnsatisfiable");
        one_of(field, &spread["whenUnsatisfiable"], &known, broken);
    }
    for (index, toleration) in spec["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = format!("{path}.tolerations[{index}]");
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        one_of(
            format!("{path}.effect"),
            &toleration["effect"],
            &effects,
            broken,
        );
        if toleration["key"].is_null() && toleration["operator"] != "Exists" {
            let text = "operator must be Exists when `key` is empty, which means \"match all \
                        values and all keys\"";
            let field = format!("{path}.operator");
            broken.push(Broken::invalid(field, &toleration["operator"], text));
        }
    }
}

fn container(path: &str, container: &Value, volumes: &BTreeSet<&str>, broken: &mut Vec<Broken>) {
    let name = container["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        broken.push(Broken::required(format!("{path}.name"), ""));
    } else if !is_label(name) {
        let text = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                    or '-', and must start and end with an alphanumeric character";
        broken.push(Broken::invalid(
            format!("{path}.name"),
            &container["name"],
            text,
        ));
    }
    if container["image"].as_str().is_none_or(str::is_empty) {
        broken.push(Broken::required(format!("{path}.image"), ""));
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    let field = format!("{path}.imagePullPolicy");
    one_of(field, &container["imagePullPolicy"], &policies, broken);
    for (index, port) in container["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let number = &port["containerPort"];
        if number
            .as_i64()
            .is_none_or(|number| !(1..=65535).contains(&number))
        {
            let text = "must be between 1 and 65535, inclusive";
            let field = format!("{path}.ports[{index}].containerPort");
            broken.push(Broken::invalid(field, number, text));
        }
    }
    for (index, variable) in container["env"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = format!("{path}.env[{index}]");
        let name = variable["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            broken.push(Broken::required(format!("{path}.name"), ""));
        } else if name
            .bytes()
            .any(|c| !(b' '..=b'~').contains(&c) || c == b'=')
        {
            let text = "a valid environment variable name must consist only of printable ASCII \
                        characters other than '='";
            broken.push(Broken::invalid(
                format!("{path}.name"),
                &variable["name"],
                text,
            ));
        }
        let has_value = variable["value"]
            .as_str()
            .is_some_and(|value| !value.is_empty());
        if has_value && variable.get("valueFrom").is_some() {
            let text = "may not be specified when `value` is not empty";
            let field = format!("{path}.valueFrom");
            broken.push(Broken::invalid(field, &Value::from(""), text));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let field = format!("{path}.{probe}");
        for number in [
            "periodSeconds",
            "timeoutSeconds",
            "initialDelaySeconds",
            "failureThreshold",
        ] {
            at_least_zero(&field, &container[probe], number, broken);
        }
        handler(&field, &container[probe], broken);
    }
    for hook in ["postStart", "preStop"] {
        let field = format!("{path}.lifecycle.{hook}");
        handler(&field, &container["lifecycle"][hook], broken);
    }
    resources(path, &container["resources"], broken);
    let mounts = container["volumeMounts"].as_array();
    for (index, mount) in mounts.into_iter().flatten().enumerate() {
        let name = mount["name"].as_str().unwrap_or_default();
        if !volumes.contains(name) {
            let field = format!("{path}.volumeMounts[{index}].name");
            broken.push(Broken {
                reason: "FieldValueNotFound",
                field,
                text: format!("Not found: {}", mount["name"]),
            });
        }
    }
}

/// A probe or hook does exactly one thing.
fn handler(path: &str, handler: &Value, broken: &mut Vec<Broken>) {
    let mut given = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"]
        .into_iter()
        .filter(|known| handler.get(known).is_some());
    if !handler.is_null() && given.next().is_none() {
        broken.push(Broken::required(path, "must specify a handler type"));
    }
    for other in given {
        let text = "may not specify more than 1 handler type";
        broken.push(Broken::forbidden(format!("{path}.{other}"), text));
    }
}

fn resources(path: &str, resources: &Value, broken: &mut Vec<Broken>) {
    for part in ["limits", "requests"] {
        for (name, amount) in resources[part].as_object().into_iter().flatten() {
            if amount
                .as_str()
                .is_some_and(|amount| amount.starts_with('-'))
            {
                let field = format!("{path}.resources.{part}[{name}]");
                broken.push(Broken::invalid(
                    field,
                    amount,
                    "must be greater than or equal to 0",
                ));
            }
            let limit = &resources["limits"][name];
            if part == "requests"
                && let (Some(request), Some(limit)) = (amount.as_str(), limit.as_str())
                && quantity::is_more(request, limit)
            {
                let text = format!("must be less than or equal to {name} limit of {limit}");
                let field = format!("{path}.resources.requests");
                broken.push(Broken::invalid(field, amount, &text));
            }
        }
    }
}

/// No two items of a list have the same name.
fn unique<'a>(
    path: &str,
    field: &str,
    names: impl Iterator<Item = &'a Value>,
    broken: &mut Vec<Broken>,
) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name.to_string()) {
            broken.push(Broken {
                reason: "FieldValueDuplicate",
                field: format!("{path}[{index}].{field}"),
                text: format!("Duplicate value: {name}"),
            });
        }
    }
}

fn one_of(field: String, value: &Value, known: &[&str], broken: &mut Vec<Broken>) {
    if value.as_str().is_some_and(|found| !known.contains(&found)) {
        broken.push(Broken::unsupported(field, value, known));
    }
}

fn at_least_zero(path: &str, object: &Value, field: &str, broken: &mut Vec<Broken>) {
    if object[field].as_i64().is_some_and(|number| number < 0) {
        let text = "must be greater than or equal to 0";
        broken.push(Broken::invalid(
            format!("{path}.{field}"),
            &object[field],
            text,
        ));
    }
}

fn is_label(name: &str) -> bool {
    name.len() <= 63
        && name
            .bytes()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}
