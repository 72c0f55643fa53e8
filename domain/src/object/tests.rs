use proptest::prelude::*;
use serde_json::{Value, json};

use super::{LiveObject, Resource};
use crate::ids::SharedKey;
use crate::kinds::deployment::{DeploymentInput, validate};
use crate::kinds::{Desired, Member, Password, PullSecret, Rules, render_shared};
use crate::testing::{Edit, applied_json, full_input, list_at, minimal_input};

fn replica_set() -> Value {
    replica_set_of(full_input())
}

fn replica_set_of(input: DeploymentInput) -> Value {
    let rules = Rules::default();
    let desired = validate(input, &rules).unwrap_or_else(|invalid| panic!("{invalid}"));
    let rendered = Desired::Deployment(Box::new(desired)).render(&rules, None);
    applied_json(&rendered, "uid-1", 7)
}

fn read(resource: Resource, value: Value) -> LiveObject {
    LiveObject::from_json(resource, value).unwrap_or_else(|error| panic!("{error}"))
}

fn fingerprint(change: impl FnOnce(&mut Value)) -> u64 {
    let mut value = replica_set();
    change(&mut value);
    read(Resource::ReplicaSet, value).fingerprint
}

#[test]
fn what_is_compared_and_reported_is_kept() {
    let live = read(Resource::ReplicaSet, replica_set());
    assert_eq!(
        live.reference.to_string(),
        "ReplicaSet wsnamespace/odd-name"
    );
    assert_eq!((&*live.uid, live.resource_version), ("uid-1", 7));
    assert!(live.is_ours() && !live.is_terminating);
    assert_eq!(live.label("unkey.com/deployment.id"), Some("d_Odd"));
    let (kept, whole) = (live.value(), replica_set());
    assert_eq!(kept["spec"], whole["spec"]);
    assert_eq!(kept["metadata"]["labels"], whole["metadata"]["labels"]);
    assert_eq!(
        kept["status"],
        json!({ "observedGeneration": 1, "replicas": 0 })
    );
}

#[test]
fn noise_is_cut_out() {
    let mut value = replica_set();
    let noise = json!({
        "manager": "kube-controller-manager", "operation": "Update", "subresource": "status",
        "fieldsV1": { "f:status": {} },
    });
    list_at(&mut value, "/metadata/managedFields").push(noise);
    let copy = "kubectl.kubernetes.io/last-applied-configuration";
    value["metadata"]["annotations"][copy] = json!("{\"canary\":1}");
    value["metadata"]["selfLink"] = json!("/canary");
    let live = read(Resource::ReplicaSet, value);
    for noise in [
        "canary",
        "kube-controller-manager",
        "\"time\"",
        "fieldsType",
        "apps/v1\",\"kind",
    ] {
        assert!(!live.content.contains(noise), "{noise}");
    }
}

/// Thousands are kept, so a ReplicaSet stays in the order of 4 kB (7 kB with every field set).
#[test]
fn a_kept_replica_set_is_small() {
    let full = read(Resource::ReplicaSet, replica_set_of(full_input()));
    let minimal = read(Resource::ReplicaSet, replica_set_of(minimal_input()));
    let sizes = [full.content.len(), minimal.content.len()];
    assert!(sizes[0] < 7_000 && sizes[1] < 5_000, "{sizes:?} bytes");
}

#[test]
fn the_fingerprint_sees_what_matters_and_nothing_else() {
    let base = fingerprint(|_| {});
    let same: [Edit; 5] = [
        |value| value["metadata"]["resourceVersion"] = json!("8"),
        |value| value["metadata"]["generation"] = json!(2),
        |value| value["status"] = json!({ "replicas": 7, "readyReplicas": 7 }),
        |value| value["metadata"]["managedFields"][0]["time"] = json!("2026-02-02T00:00:00Z"),
        |value| {
            let status = json!({ "manager": "x", "subresource": "status", "fieldsV1": {} });
            list_at(value, "/metadata/managedFields").push(status);
        },
    ];
    for (index, change) in same.into_iter().enumerate() {
        assert_eq!(fingerprint(change), base, "change {index}");
    }
    let other: [Edit; 9] = [
        |value| value["metadata"]["uid"] = json!("uid-2"),
        |value| value["metadata"]["labels"]["a"] = json!("b"),
        |value| value["metadata"]["annotations"] = json!({}),
        |value| value["metadata"]["finalizers"] = json!(["x"]),
        |value| value["metadata"]["ownerReferences"] = json!([{ "uid": "x" }]),
        |value| value["metadata"]["deletionTimestamp"] = json!("2026-02-02T00:00:00Z"),
        |value| value["metadata"]["managedFields"][0]["manager"] = json!("other"),
        |value| value["spec"]["replicas"] = json!(8),
        |value| value["spec"]["template"]["spec"]["hostNetwork"] = json!(true),
    ];
    let prints: Vec<u64> = other.into_iter().map(fingerprint).chain([base]).collect();
    for (index, print) in prints.iter().enumerate() {
        assert!(!prints[..index].contains(print), "change {index}");
    }
}

/// Stored fingerprints and template hashes must mean the same after an update of krane.
#[test]
fn the_fingerprint_is_the_same_on_every_machine() {
    let value = json!({ "metadata": {
        "name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "1",
    } });
    assert_eq!(
        read(Resource::ReplicaSet, value).fingerprint,
        0x12bf_f81a_0a3c_b8e0
    );
}

#[test]
fn what_identifies_an_object_must_be_there() {
    let rows: [(&str, Edit); 6] = [
        ("no name", |value| value["metadata"]["name"] = json!("")),
        ("no namespace", |value| {
            value["metadata"]["namespace"] = Value::Null;
        }),
        ("no uid", |value| value["metadata"]["uid"] = json!(5)),
        ("no resourceVersion", |value| {
            value["metadata"]["resourceVersion"] = json!("x");
        }),
        ("no name", |value| value["metadata"] = json!([])),
        ("no name", |value| *value = json!("text")),
    ];
    for (reason, change) in rows {
        let mut value = replica_set();
        change(&mut value);
        let result = LiveObject::from_json(Resource::ReplicaSet, value).map(|live| live.uid);
        assert_eq!(result.map_err(|error| error.reason), Err(reason.to_owned()));
    }
    let namespace = json!({ "metadata": { "name": "x", "uid": "u", "resourceVersion": "1" } });
    assert!(LiveObject::from_json(Resource::Namespace, namespace).is_ok());
}

#[test]
fn values_of_a_secret_are_kept_as_hashes() {
    let rules = Rules {
        pull_secret: Some(PullSecret {
            url: "r".to_owned(),
            username: "u".to_owned(),
            password: Password::new("p"),
        }),
        ..Rules::default()
    };
    let member = Member::isolated("w", "e", 1);
    let key = SharedKey::PullSecret("ns".into());
    let rendered = render_shared(&key, &[member], &rules).unwrap_or_else(|| panic!("renders"));
    let mut value = applied_json(&rendered, "uid-1", 7);
    value["stringData"] = json!({ "a": "canary" });
    let data = value["data"][".dockerconfigjson"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let live = read(Resource::Secret, value.clone());
    assert!(!live.content.contains(&data) && !live.content.contains("canary"));
    let hash = live.value()["data"][".dockerconfigjson"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(hash.starts_with("sha256:"), "{hash}");
    value["data"][".dockerconfigjson"] = json!("b3RoZXI=");
    assert_ne!(read(Resource::Secret, value).fingerprint, live.fingerprint);
}

#[test]
fn an_unreadable_object_tells_its_place_and_not_its_content() {
    let error = LiveObject::from_slice(Resource::Secret, b"{\"data\": canary}");
    let text = error
        .map(|live| live.uid)
        .map_err(|error| error.to_string());
    assert_eq!(
        text,
        Err("Secret of unknown name: not readable at line 1 column 10".to_owned())
    );
}

proptest! {
    #[test]
    fn no_json_makes_decoding_panic(text in "[\\[\\]{}\":,a-z0-9 ]{0,60}", name in "[a-z]{1,5}") {
        for resource in [Resource::ReplicaSet, Resource::Secret, Resource::Namespace] {
            let _ = LiveObject::from_slice(resource, text.as_bytes());
            let object = format!("{{\"metadata\":{{\"name\":\"{name}\",\"labels\":{text}}}}}");
            let _ = LiveObject::from_slice(resource, object.as_bytes());
        }
    }
}
