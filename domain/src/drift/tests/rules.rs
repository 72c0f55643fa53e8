//! Rules of policies are replaced as a whole: whatever a newer one leaves out has to go.

use serde_json::{Value, json};

use super::{found, made};
use crate::drift::DifferenceKind;
use crate::object::Resource;

/// What is found where the live object is an apply of `old` and `new` is wanted; the ownership is
/// that of a real API server, to which a rule is one value.
fn differences(resource: Resource, old: &Value, new: &Value) -> Vec<(String, DifferenceKind)> {
    let (_, mut live) = made(resource, json!({ "spec": old }));
    let fields: serde_json::Map<String, Value> = old
        .as_object()
        .expect("an object")
        .keys()
        .map(|key| (format!("f:{key}"), json!({})))
        .collect();
    live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"] = Value::Object(fields);
    let (wanted, _) = made(resource, json!({ "spec": new }));
    found(&wanted, live)
}

fn policy(old: &Value, new: &Value) -> Vec<(String, DifferenceKind)> {
    differences(Resource::CiliumNetworkPolicy, old, new)
}

#[test]
fn a_rule_that_becomes_narrower_or_wider_by_leaving_something_out_is_a_difference() {
    let port = |port: Value| json!([{ "toPorts": [{ "ports": [port] }] }]);
    let all_pods = json!({ "matchLabels": { "dep": "d", "env": "e" } });
    for (field, old, new) in [
        (
            "ingress",
            port(json!({ "port": "8000", "endPort": 9000 })),
            port(json!({ "port": "8000" })),
        ),
        (
            "ingress",
            json!([{ "toPorts": [{ "ports": [{ "port": "80" }] }] }]),
            json!([{ "fromEndpoints": [], "toPorts": [{ "ports": [{ "port": "80" }] }] }]),
        ),
        (
            "endpointSelector",
            all_pods.clone(),
            json!({ "matchLabels": { "env": "e" } }),
        ),
        ("endpointSelector", all_pods, json!({})),
        (
            "ingressDeny",
            json!([{ "fromEntities": ["world"], "toPorts": [{ "ports": [{ "port": "22" }] }] }]),
            json!([{ "fromEntities": ["world"] }]),
        ),
        (
            "enableDefaultDeny",
            json!({ "ingress": false, "egress": false }),
            json!({ "ingress": false }),
        ),
        (
            "egress",
            json!([{ "toCIDRSet": [{ "cidr": "a", "except": ["b"] }] }]),
            json!([{ "toCIDRSet": [{ "cidr": "a" }] }]),
        ),
    ] {
        let (before, after) = (json!({ field: old }), json!({ field: new }));
        assert_ne!(policy(&before, &after), [], "{before} and then {after}");
        assert_eq!(policy(&before, &before), [], "{before}");
        assert_eq!(policy(&after, &after), [], "{after}");
    }
}

/// The one default that Cilium's kinds have, as measured.
#[test]
fn the_family_of_an_icmp_rule_is_the_api_servers() {
    let rule = |field: Value| json!({ "ingress": [{ "icmps": [{ "fields": [field] }] }] });
    let (wanted, live) = (
        rule(json!({ "type": 8 })),
        rule(json!({ "type": 8, "family": "IPv4" })),
    );
    assert_eq!(policy(&live, &wanted), []);
    let other = rule(json!({ "type": 8, "family": "IPv6" }));
    assert_ne!(policy(&other, &wanted), []);
}

#[test]
fn a_selector_of_any_kind_that_selects_less_is_a_difference() {
    let old = json!({ "selector": { "a": "1", "b": "2" } });
    let new = json!({ "selector": { "a": "1" } });
    assert_ne!(differences(Resource::Service, &old, &new), []);
    assert_eq!(differences(Resource::Service, &old, &old), []);
}
