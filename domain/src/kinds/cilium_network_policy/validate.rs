//! Which policies can be applied at all.
//!
//! The API server checks the schema of what is left (strictly, so that a misspelt field is no
//! policy that does nothing); here is what it would let through.

use serde_json::{Map, Value};

use super::{DesiredPolicy, PolicyInput};
use crate::ids::ObjectKey;
use crate::invalid::Invalid;
use crate::kinds::sentinel::GOSSIP_SUFFIX;
use crate::kinds::shared::POLICY_PREFIX;
use crate::kinds::{Rules, validation};
use crate::labels;
use crate::object::Resource;

/// Largest policy in bytes of JSON.
const MAX_BYTES: usize = 256 * 1024;

/// Most objects and lists within one another.
const MAX_DEPTH: usize = 64;

/// Annotations of krane itself begin so.
const OWN_ANNOTATIONS: &str = "krane.unkey.com/";

/// Turns a message into a policy, or says why it can never be one.
pub fn validate(input: PolicyInput, rules: &Rules) -> Result<DesiredPolicy, Invalid> {
    validation::required([
        ("cilium_network_policy_id", &*input.cilium_network_policy_id),
        ("k8s_namespace", &input.k8s_namespace),
        ("k8s_name", &input.k8s_name),
    ])?;
    let key = validate_delete(&input.k8s_namespace, &input.k8s_name, rules)?;
    let policy_id =
        validation::label_value("cilium_network_policy_id", input.cilium_network_policy_id)?;
    let mut body = object(&input.policy)?;
    identity(&body)?;
    body.remove("apiVersion");
    body.remove("kind");
    body.remove("status");
    let annotations = annotations(body.remove("metadata"))?;
    body.values().try_for_each(selectors_of)?;
    without_nulls(&mut body);
    rules_of(&body)?;
    Ok(DesiredPolicy {
        key,
        policy_id: policy_id.into(),
        annotations,
        body,
    })
}

/// The object a delete state names, or why it names none.
pub fn validate_delete(namespace: &str, name: &str, rules: &Rules) -> Result<ObjectKey, Invalid> {
    validation::workload_namespace(namespace, rules)?;
    validation::dns_subdomain("k8s_name", name)?;
    let is_gossip = namespace == labels::SENTINEL_NAMESPACE && name.ends_with(GOSSIP_SUFFIX);
    if name.starts_with(POLICY_PREFIX) || is_gossip {
        return Err(Invalid::new(
            "k8s_name",
            format!("{} is a name krane gives itself", validation::quoted(name)),
            "use a name that does not begin with allow-sentinel-ingress-, and in the namespace \
             sentinel none that ends in -gossip-lan",
        ));
    }
    Ok(ObjectKey::new(namespace, name))
}

fn refused(problem: impl Into<String>, remedy: &str) -> Invalid {
    Invalid::new("policy", problem, remedy)
}

fn object(json: &[u8]) -> Result<Map<String, Value>, Invalid> {
    if json.len() > MAX_BYTES {
        return Err(refused(
            format!("has {} bytes, more than {MAX_BYTES}", json.len()),
            "send a smaller policy, or several",
        ));
    }
    let remedy = "send the JSON of one CiliumNetworkPolicy";
    let value: Value = serde_json::from_slice(json).map_err(|error| {
        // Its text may quote the content.
        let (line, column) = (error.line(), error.column());
        refused(format!("is no JSON at line {line} column {column}"), remedy)
    })?;
    if depth(&value) > MAX_DEPTH {
        return Err(refused(
            format!("is nested more than {MAX_DEPTH} deep"),
            "send a flatter policy",
        ));
    }
    match value {
        Value::Object(object) => Ok(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(refused("is no JSON object", remedy))
        }
    }
}

fn depth(value: &Value) -> usize {
    let deepest =
        |values: &mut dyn Iterator<Item = &Value>| 1 + values.map(depth).max().unwrap_or(0);
    match value {
        Value::Array(items) => deepest(&mut items.iter()),
        Value::Object(members) => deepest(&mut members.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// It says to be a namespaced policy of Cilium, or nothing about it.
fn identity(object: &Map<String, Value>) -> Result<(), Invalid> {
    let resource = Resource::CiliumNetworkPolicy;
    let is_said = |key: &str, is_right: &dyn Fn(&str) -> bool| match object.get(key) {
        None | Some(Value::Null) => true,
        Some(value) => value.as_str().is_some_and(is_right),
    };
    let group = format!("{}/", resource.group());
    if is_said("kind", &|kind| kind == resource.kind())
        && is_said("apiVersion", &|version| version.starts_with(&group))
    {
        return Ok(());
    }
    Err(refused(
        "is of another kind",
        "send kind CiliumNetworkPolicy of cilium.io; policies of the whole cluster are not \
         krane's to make",
    ))
}

/// Of the metadata only annotations are the control plane's to choose.
fn annotations(metadata: Option<Value>) -> Result<Map<String, Value>, Invalid> {
    let annotations = match metadata {
        None | Some(Value::Null) => return Ok(Map::new()),
        Some(Value::Object(mut metadata)) => metadata.remove("annotations"),
        Some(_) => return Err(refused("has metadata that is no object", "send an object")),
    };
    let Some(Value::Object(mut annotations)) = annotations else {
        return match annotations {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(_) => Err(refused(
                "has annotations that are no object",
                "send an object",
            )),
        };
    };
    annotations.retain(|key, _| !key.starts_with(OWN_ANNOTATIONS));
    if annotations.values().any(|value| !value.is_string()) {
        return Err(refused("has an annotation that is no text", "send texts"));
    }
    Ok(annotations)
}

/// A label that is asked for and is null is a mistake of the sender's, which the API server refuses.
/// Without it the selector would select more.
fn selectors_of(value: &Value) -> Result<(), Invalid> {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter().try_for_each(selectors_of),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
    };
    let labels = members.get("matchLabels").and_then(Value::as_object);
    if labels.is_some_and(|labels| labels.values().any(Value::is_null)) {
        return Err(refused(
            "has a selector with a label that is null",
            "send the label's value; without it the policy would be about more pods",
        ));
    }
    members.values().try_for_each(selectors_of)
}

/// Members that are null say the same as none, and an apply of them would differ for ever.
fn without_nulls(object: &mut Map<String, Value>) {
    object.retain(|_, value| !value.is_null());
    for value in object.values_mut() {
        clean(value);
    }
}

fn clean(value: &mut Value) {
    match value {
        Value::Object(object) => without_nulls(object),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What the schema allows and Cilium does not: such a policy would be stored and do nothing.
fn rules_of(body: &Map<String, Value>) -> Result<(), Invalid> {
    let several = body.get("specs").and_then(Value::as_array);
    let rules: Vec<&Value> = body
        .get("spec")
        .into_iter()
        .chain(several.into_iter().flatten())
        .collect();
    if rules.is_empty() {
        return Err(refused(
            "has neither spec nor specs",
            "send at least one rule",
        ));
    }
    for rule in rules {
        if rule.get("nodeSelector").is_some() {
            return Err(refused(
                "selects nodes, which only a policy of the whole cluster may",
                "use endpointSelector",
            ));
        }
        if let Some(port) = ports(rule).find(|port| !is_port(port)) {
            return Err(refused(
                format!("has the port {}", validation::quoted(&port)),
                "send one number from 0 to 65535 or one name as text; a range has endPort",
            ));
        }
    }
    Ok(())
}

/// Every port a rule names, as text.
fn ports(rule: &Value) -> impl Iterator<Item = String> + '_ {
    let directions = ["ingress", "ingressDeny", "egress", "egressDeny"];
    let list = |value: &Value, key: &str| {
        let items = value.get(key).and_then(Value::as_array);
        items.into_iter().flatten().cloned().collect::<Vec<_>>()
    };
    directions
        .into_iter()
        .flat_map(move |direction| list(rule, direction))
        .flat_map(move |entry| list(&entry, "toPorts"))
        .flat_map(move |entry| list(&entry, "ports"))
        .filter_map(|port| {
            let port = port.get("port")?;
            let text = port.as_str().map(str::to_owned);
            Some(text.unwrap_or_else(|| port.to_string()))
        })
}

/// A number, or the name of a container's port.
fn is_port(text: &str) -> bool {
    if text.chars().all(|c| c.is_ascii_digit()) {
        return text.parse::<u16>().is_ok();
    }
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.len() <= 63
        && text.chars().all(is_inner)
        && text.chars().any(|c| c.is_ascii_alphabetic())
        && !text.starts_with('-')
        && !text.ends_with('-')
}
