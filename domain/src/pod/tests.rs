use proptest::prelude::*;
use serde_json::{Value, json};

use super::{PodDigest, PodPhase};
use crate::testing::Edit;

/// A pod as the API server sends it, cut to what could matter and some of what does not.
fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "dep-1-abcde",
            "generateName": "dep-1-",
            "namespace": "ns",
            "uid": "pod-uid",
            "resourceVersion": "123",
            "labels": { "app.kubernetes.io/managed-by": "krane" },
            "annotations": { "krane.unkey.com/template": "0123", "other": "x" },
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [
                { "kind": "Node", "uid": "node-uid" },
                { "kind": "ReplicaSet", "uid": "rs-uid", "controller": true },
            ],
            "managedFields": [{ "manager": "kubelet", "fieldsV1": { "f:status": {} } }],
        },
        "spec": { "containers": [
            { "name": "deployment", "resources": {
                "limits": { "cpu": "500m", "memory": "256Mi" },
                "requests": { "cpu": "1m", "memory": "1Mi" },
            } },
            { "name": "second", "resources": { "limits": { "cpu": "9", "memory": "9Gi" } } },
        ] },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.5",
            "podIPs": [{ "ip": "10.0.0.5" }],
            "conditions": [
                { "type": "Initialized", "status": "True" },
                { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                { "type": "ContainersReady", "status": "True" },
            ],
        },
    })
}

fn digest_of(value: &Value) -> PodDigest {
    PodDigest::from_slice(value.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn digest(change: impl FnOnce(&mut Value)) -> PodDigest {
    let mut value = pod();
    change(&mut value);
    digest_of(&value)
}

#[test]
fn a_pod_is_cut_down_to_what_is_reported() {
    let expected = PodDigest {
        namespace: "ns".into(),
        name: "dep-1-abcde".into(),
        uid: "pod-uid".into(),
        resource_version: 123,
        created_at: 1_767_225_600,
        owner: Some("rs-uid".into()),
        phase: PodPhase::Running,
        is_ready: true,
        is_terminating: false,
        ip: Some("10.0.0.5".into()),
        cpu_millicores: 500,
        memory_mib: 256,
        template: Some("0123".into()),
        sentinel_id: None,
        config_error: None,
    };
    assert_eq!(digest_of(&pod()), expected);
}

/// unkeyed/unkey 5084861c76, PR #5214; 0fee273ab0 (A33): limits were read where they never are,
/// and a pod without any crashed the agent. Of several containers the first counts.
#[test]
fn limits_are_those_of_the_first_container() {
    let limits = |cpu: Value, memory: Value| {
        let digest = digest(|pod| {
            pod["spec"]["containers"][0]["resources"]["limits"] =
                json!({ "cpu": cpu, "memory": memory });
        });
        (digest.cpu_millicores, digest.memory_mib)
    };
    assert_eq!(limits(json!("500m"), json!("256Mi")), (500, 256));
    assert_eq!(limits(json!("0.5"), json!("268435456")), (500, 256));
    assert_eq!(limits(json!("1"), json!("1Gi")), (1000, 1024));
    assert_eq!(limits(json!(1), json!(268_435_456)), (1000, 256));
    assert_eq!(limits(json!("much"), Value::Null), (0, 0));
    for spec in [
        json!({}),
        json!({ "containers": [] }),
        json!({ "containers": [{}] }),
        Value::Null,
    ] {
        let digest = digest(|pod| pod["spec"] = spec);
        assert_eq!((digest.cpu_millicores, digest.memory_mib), (0, 0));
    }
}

/// unkeyed/unkey fb7501c734, PR #5833 (A26); the service mesh and the kubelet disagree at times.
#[test]
fn running_and_ready_needs_phase_both_conditions_and_no_deletion() {
    assert!(digest_of(&pod()).is_running_and_ready());
    let changes: [Edit; 8] = [
        |pod| pod["status"]["conditions"][1]["status"] = json!("False"),
        |pod| pod["status"]["conditions"][2]["status"] = json!("Unknown"),
        |pod| pod["status"]["conditions"] = json!([]),
        |pod| pod["status"]["conditions"] = Value::Null,
        |pod| pod["status"]["phase"] = json!("Pending"),
        |pod| pod["status"]["phase"] = json!("Succeeded"),
        |pod| pod["status"]["phase"] = json!("Odd"),
        |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert!(!digest(change).is_running_and_ready(), "change {index}");
    }
}

#[test]
fn only_a_controlling_owner_owns() {
    let owner = |owners: Value| digest(|pod| pod["metadata"]["ownerReferences"] = owners).owner;
    assert_eq!(
        owner(json!([{ "uid": "a" }, { "uid": "b", "controller": false }])),
        None
    );
    assert_eq!(owner(json!([{ "controller": true }])), None);
    assert_eq!(owner(Value::Null), None);
    assert_eq!(
        owner(json!([{ "uid": "a", "controller": true }])).as_deref(),
        Some("a")
    );
}

#[test]
fn an_unset_address_or_template_is_none() {
    let digest = digest(|pod| {
        pod["status"]["podIP"] = json!("");
        pod["metadata"]["annotations"] = json!({ "krane.unkey.com/template": 5 });
    });
    assert_eq!(digest.ip, None);
    assert_eq!(digest.template.as_deref(), Some("5"));
    let digest = digest_of(&json!({ "metadata": {
        "name": "a", "uid": "u", "resourceVersion": "1",
    } }));
    assert_eq!(
        (digest.ip, digest.template, digest.phase),
        (None, None, PodPhase::Unknown)
    );
}

#[test]
fn a_pod_that_cannot_be_told_from_others_is_refused_without_its_content() {
    let rows: [(&str, Edit); 4] = [
        ("Pod ns/: no name", |pod| {
            pod["metadata"]["name"] = Value::Null;
        }),
        ("Pod ns/dep-1-abcde: no uid", |pod| {
            pod["metadata"]["uid"] = json!("");
        }),
        ("Pod ns/dep-1-abcde: no resourceVersion", |pod| {
            pod["metadata"]["resourceVersion"] = json!("canary");
        }),
        ("Pod /: no name", |pod| *pod = json!("canary")),
    ];
    for (text, change) in rows {
        let mut value = pod();
        change(&mut value);
        let result = PodDigest::from_slice(value.to_string().as_bytes());
        assert_eq!(
            result.map_err(|error| error.to_string()),
            Err(text.to_owned())
        );
    }
    let error = PodDigest::from_slice(b"{\"metadata\": canary").map_err(|error| error.to_string());
    let text = "Pod of unknown name: not readable at line 1 column 14";
    assert_eq!(error, Err(text.to_owned()));
}

/// Every field replaced by every type of JSON, one at a time.
#[test]
fn no_odd_field_hides_a_pod() {
    fn places(value: &Value, at: &str, all: &mut Vec<String>) {
        let mut add = |key: String, value: &Value| {
            let place = format!("{at}/{key}");
            all.push(place.clone());
            places(value, &place, all);
        };
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                add(key.replace('~', "~0").replace('/', "~1"), value);
            }),
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, value)| add(index.to_string(), value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut all = Vec::new();
    places(&pod(), "", &mut all);
    let identity = [
        "/metadata",
        "/metadata/name",
        "/metadata/uid",
        "/metadata/resourceVersion",
    ];
    for place in all
        .iter()
        .filter(|place| !identity.contains(&place.as_str()))
    {
        for odd in [
            json!(null),
            json!(true),
            json!(-1),
            json!(1.5),
            json!("x"),
            json!([[]]),
            json!({ "x": {} }),
        ] {
            let digest = digest(|pod| {
                if let Some(value) = pod.pointer_mut(place) {
                    *value = odd;
                }
            });
            assert_eq!(&*digest.name, "dep-1-abcde", "{place}");
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = PodDigest::from_slice(&bytes);
    }
}
