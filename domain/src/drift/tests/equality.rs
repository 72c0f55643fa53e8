//! What a comparison of texts would take for drift: each spelling that the API server turns into
//! another one must not cost a write, and each real difference must.

use serde_json::{Value, json};

use super::{all_kinds, differences, found, in_place, made};
use crate::drift::DifferenceKind;
use crate::object::Resource;
use crate::testing::list_at;

/// Whether a value at a place under `spec` counts as in place when the server stored another.
fn is_equal(place: &str, wanted: &Value, live: Option<&Value>) -> bool {
    let mut body = json!({ "spec": {} });
    let keys: Vec<&str> = place.split('/').collect();
    let (last, parents) = keys
        .split_last()
        .unwrap_or_else(|| panic!("a place has a key"));
    let parent = parents.iter().fold(&mut body["spec"], |value, key| {
        value[*key] = json!({});
        &mut value[*key]
    });
    parent[*last] = wanted.clone();
    let (rendered, mut stored) = made(Resource::ReplicaSet, body);
    let parent = parents
        .iter()
        .fold(&mut stored["spec"], |value, key| &mut value[*key]);
    match live {
        Some(live) => parent[*last] = live.clone(),
        None => {
            parent.as_object_mut().map(|parent| parent.remove(*last));
        }
    }
    differences(&rendered, stored).is_empty()
}

#[test]
fn everything_just_applied_is_in_place() {
    for rendered in all_kinds() {
        assert_eq!(
            found(&rendered, in_place(&rendered)),
            [],
            "{}",
            rendered.reference
        );
    }
}

/// Altinity/clickhouse-operator#1904 (B27): `2048Mi` and `2Gi` compared as text.
#[test]
fn quantities_are_compared_by_value_where_quantities_are() {
    for place in [
        "limits/cpu",
        "requests/memory",
        "emptyDir/sizeLimit",
        "resourceFieldRef/divisor",
        "target/averageValue",
        "resources/requests/storage",
    ] {
        for (wanted, live) in [
            (json!("1000m"), json!("1")),
            (json!("0.5"), json!("500m")),
            (json!(0.25), json!("250m")),
            (json!("0m"), json!("0")),
            (json!(2), json!("2")),
            (json!("2048Mi"), json!("2Gi")),
            (json!("1.5Gi"), json!("1536Mi")),
            (json!("1000M"), json!("1G")),
            (json!(1_073_741_824), json!("1073741824")),
            (json!("1e9"), json!("1e9")),
        ] {
            assert!(
                is_equal(place, &wanted, Some(&live)),
                "{place}: {wanted} as {live}"
            );
        }
        assert!(
            !is_equal(place, &json!("1Gi"), Some(&json!("1G"))),
            "{place}"
        );
        assert!(
            !is_equal(place, &json!("250m"), Some(&json!("251m"))),
            "{place}"
        );
    }
    for place in [
        "labels/limits",
        "annotations/storage",
        "image",
        "matchLabels/requests",
    ] {
        assert!(
            !is_equal(place, &json!("1000m"), Some(&json!("1"))),
            "{place} is text"
        );
    }
}

#[test]
fn what_is_empty_may_be_dropped() {
    for wanted in [json!(""), json!(0), json!(false), json!({}), json!([])] {
        assert!(is_equal("field", &wanted, None), "{wanted}");
        assert!(is_equal("field", &wanted, Some(&Value::Null)), "{wanted}");
    }
    for wanted in [
        json!("x"),
        json!(1),
        json!(true),
        json!({ "a": "x" }),
        json!(["x"]),
    ] {
        assert!(!is_equal("field", &wanted, None), "{wanted}");
    }
    // Zero that became a default is another value.
    assert!(!is_equal("periodSeconds", &json!(0), Some(&json!(10))));
    assert!(!is_equal("privileged", &json!(false), Some(&json!(true))));
}

#[test]
fn numbers_are_compared_by_value_and_with_text_only_where_both_are_allowed() {
    assert!(is_equal("endPort", &json!(8090.0), Some(&json!(8090))));
    assert!(!is_equal("endPort", &json!(8090), Some(&json!(8091))));
    for place in [
        "httpGet/port",
        "tcpSocket/port",
        "targetPort",
        "maxUnavailable",
        "minAvailable",
    ] {
        assert!(is_equal(place, &json!(80), Some(&json!("80"))), "{place}");
        assert!(is_equal(place, &json!("80"), Some(&json!(80))), "{place}");
        assert!(
            !is_equal(place, &json!("http"), Some(&json!(80))),
            "{place}"
        );
    }
    for place in ["replicas", "toPorts/port"] {
        assert!(!is_equal(place, &json!("80"), Some(&json!(80))), "{place}");
    }
}

#[test]
fn defaults_inside_of_what_is_wanted_are_ignored() {
    let wanted = json!({ "httpGet": { "path": "/" } });
    let live = json!({ "httpGet": { "path": "/", "scheme": "HTTP" }, "successThreshold": 1 });
    assert!(is_equal("livenessProbe", &wanted, Some(&live)));
    let wanted = json!([{ "port": "80" }]);
    assert!(is_equal(
        "ingress",
        &wanted,
        Some(&json!([{ "port": "80", "protocol": "ANY" }]))
    ));
}

#[test]
fn other_lists_have_the_same_length_and_order() {
    for live in [
        json!(["a"]),
        json!(["b", "a"]),
        json!(["a", "b", "c"]),
        json!({}),
        json!("a"),
    ] {
        assert!(
            !is_equal("command", &json!(["a", "b"]), Some(&live)),
            "{live}"
        );
    }
}

/// kubernetes/kubernetes#131147 (B22): a port without protocol is a TCP port to the key.
#[test]
fn a_missing_protocol_reads_as_tcp() {
    let body = json!({ "spec": { "containers": [
        { "name": "a", "ports": [{ "containerPort": 80 }, { "containerPort": 80, "protocol": "UDP" }] },
    ] } });
    let (rendered, mut live) = made(Resource::ReplicaSet, body);
    live["spec"]["containers"][0]["ports"][0]["protocol"] = json!("TCP");
    assert_eq!(found(&rendered, live.clone()), []);

    let fields =
        "/metadata/managedFields/0/fieldsV1/f:spec/f:containers/k:{\"name\":\"a\"}/f:ports";
    let ports = live.pointer_mut(fields).and_then(Value::as_object_mut);
    let udp = "k:{\"containerPort\":80,\"protocol\":\"UDP\"}";
    assert!(
        ports.and_then(|ports| ports.remove(udp)).is_some(),
        "{udp} is owned"
    );
    let expected = (
        "spec.containers[name=a].ports[containerPort=80,protocol=UDP]".to_owned(),
        DifferenceKind::RenderedNotOwned,
    );
    assert_eq!(found(&rendered, live), [expected]);
}

#[test]
fn an_object_that_is_only_a_name_needs_no_owned_metadata() {
    let (mut rendered, mut live) = made(Resource::ReplicaSet, json!({ "spec": { "replicas": 1 } }));
    let metadata = rendered.body["metadata"].as_object_mut();
    metadata.map(|metadata| metadata.remove("labels"));
    live["metadata"]["managedFields"] = json!([super::own_entry(&rendered)]);
    let fields = &live["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(fields.get("f:metadata"), None);
    assert_eq!(found(&rendered, live), []);
}

#[test]
fn nulls_are_not_wanted() {
    let (mut rendered, live) = made(Resource::ReplicaSet, json!({ "spec": { "replicas": 1 } }));
    rendered.body["spec"]["paused"] = Value::Null;
    rendered.body["status"] = Value::Null;
    assert_eq!(found(&rendered, live), []);
}

#[test]
fn sets_are_compared_by_membership() {
    let body = json!({ "spec": { "set": ["a", "b"] } });
    let (rendered, mut live) = made(Resource::ReplicaSet, body);
    let own = |members: &[&str]| -> Value {
        members
            .iter()
            .map(|member| (format!("v:\"{member}\""), json!({})))
            .collect()
    };
    let fields = "/metadata/managedFields/0/fieldsV1/f:spec/f:set";
    let mut with = |members: &[&str]| {
        if let Some(set) = live.pointer_mut(fields) {
            *set = own(members);
        }
        found(&rendered, live.clone())
    };
    assert_eq!(with(&["a", "b"]), []);
    let path = |item| format!("spec.set[{item}]");
    assert_eq!(
        with(&["a"]),
        [(path("b"), DifferenceKind::RenderedNotOwned)]
    );
    assert_eq!(
        with(&["a", "b", "c"]),
        [(path("c"), DifferenceKind::OwnedNotRendered)]
    );
}

#[test]
fn the_entry_of_the_rendered_version_counts() {
    let (rendered, mut live) = made(Resource::ReplicaSet, json!({ "spec": { "replicas": 1 } }));
    let mut old = live["metadata"]["managedFields"][0].clone();
    old["apiVersion"] = json!("apps/v1beta2");
    old["fieldsV1"] = json!({ "f:spec": { "f:gone": {} } });
    list_at(&mut live, "/metadata/managedFields").insert(0, old);
    assert_eq!(found(&rendered, live), []);
}
