//! Who is given secrets, and everybody who is not.

mod fuzz;
mod owner;
mod workloads;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Claim, Denial, Identity, PodIdentity, Review, identify, is_same_pod, parse_blob, prove,
};
use crate::labels;
use crate::object::Metadata;

const BLOB: &[u8] = br#"{"secrets":{"A":"eA=="}}"#;
const CLAIM: Claim<'static> = Claim {
    deployment_id: "d_1",
    environment_id: "env_1",
};

fn review() -> Review {
    let extra = |key: &str, value: &str| {
        let key = format!("authentication.kubernetes.io/{key}");
        (key, vec![value.to_owned()])
    };
    Review {
        authenticated: Some(true),
        audiences: vec!["https://kubernetes".to_owned()],
        username: "system:serviceaccount:tenant:default".to_owned(),
        groups: vec!["system:serviceaccounts:tenant".to_owned()],
        extra: BTreeMap::from([
            extra("pod-name", "app-x"),
            extra("pod-uid", "uid-pod"),
            extra("node-name", "node-1"),
            extra("credential-id", "JTI=1"),
        ]),
        ..Review::default()
    }
}

fn pod_json() -> Value {
    json!({
        "metadata": {
            "uid": "uid-pod",
            "labels": {
                labels::MANAGED_BY: "krane", labels::COMPONENT: "deployment",
                labels::DEPLOYMENT_ID: "d_1", labels::ENVIRONMENT_ID: "env_1",
            },
            "annotations": {labels::DEPLOYMENT_ID: "d_1", labels::ENVIRONMENT_ID: "env_1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "uid-set",
                "controller": true,
            }],
        },
        "spec": {
            "serviceAccountName": "default", "nodeName": "node-1",
            "containers": [{"env": [{"name": "UNKEY_ENCRYPTED_ENV", "value": STANDARD.encode(BLOB)}]}],
        },
        "status": {"phase": "Running"},
    })
}

fn owner() -> Metadata {
    let labels = [
        (labels::MANAGED_BY, "krane"),
        (labels::COMPONENT, "deployment"),
        (labels::DEPLOYMENT_ID, "d_1"),
        (labels::ENVIRONMENT_ID, "env_1"),
    ];
    Metadata {
        uid: "uid-set".into(),
        labels: labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        is_terminating: false,
    }
}

fn decode(pod: &Value) -> PodIdentity {
    PodIdentity::from_slice(pod.to_string().as_bytes()).unwrap()
}

fn identity() -> Identity {
    identify(&review(), None).unwrap()
}

/// The whole check as a caller does it.
fn check(
    pod: &Value,
    owner: Option<&Metadata>,
    claim: Claim<'_>,
    blob: &[u8],
) -> Result<String, Denial> {
    let (identity, pod) = (identity(), decode(pod));
    let proof = prove(&identity, Some(&pod), owner, claim)?;
    proof.covers(blob)?;
    Ok(proof.key_ring.to_owned())
}

#[test]
fn a_pod_of_krane_with_its_own_blob_proves_its_environment_as_the_key_ring() {
    assert_eq!(
        check(&pod_json(), Some(&owner()), CLAIM, BLOB),
        Ok("env_1".to_owned())
    );
    let identity = identity();
    assert_eq!(identity.namespace, "tenant");
    assert_eq!(identity.credential.as_deref(), Some("JTI=1"));
}

/// kubernetes/kubernetes#62692 (B45): absent is not true, an error counts, names are exact.
#[test]
fn a_review_that_does_not_clearly_name_one_pod_is_denied() {
    type Case = (&'static str, fn(&mut Review), Denial);
    let cases: Vec<Case> = vec![
        (
            "nothing said",
            |r| *r = Review::default(),
            Denial::NotAuthenticated,
        ),
        (
            "absent",
            |r| r.authenticated = None,
            Denial::NotAuthenticated,
        ),
        (
            "false",
            |r| r.authenticated = Some(false),
            Denial::NotAuthenticated,
        ),
        (
            "an error beside true",
            |r| r.error = "expired".into(),
            Denial::NotAuthenticated,
        ),
        (
            "three parts",
            |r| r.username = "system:serviceaccount:a".into(),
            Denial::NotAServiceAccount,
        ),
        (
            "five parts",
            |r| r.username = "system:serviceaccount:tenant:a:b".into(),
            Denial::NotAServiceAccount,
        ),
        (
            "no name",
            |r| r.username = "system:serviceaccount:tenant:".into(),
            Denial::NotAServiceAccount,
        ),
        (
            "no namespace",
            |r| {
                r.username = "system:serviceaccount::default".into();
                r.groups = vec!["system:serviceaccounts:".into()];
            },
            Denial::NotAServiceAccount,
        ),
        (
            "a node",
            |r| r.username = "system:node:x".into(),
            Denial::NotAServiceAccount,
        ),
        (
            "a person",
            |r| r.username = "jane".into(),
            Denial::NotAServiceAccount,
        ),
        (
            "anonymous",
            |r| r.username = "system:anonymous".into(),
            Denial::NotAServiceAccount,
        ),
        (
            "other case",
            |r| r.username = "System:serviceaccount:tenant:default".into(),
            Denial::NotAServiceAccount,
        ),
        (
            "not in the group",
            |r| r.groups = vec!["system:serviceaccounts:other".into()],
            Denial::NotAServiceAccount,
        ),
        (
            "no pod",
            |r| {
                r.extra.remove("authentication.kubernetes.io/pod-name");
            },
            Denial::NotBoundToAPod,
        ),
        (
            "no uid",
            |r| {
                r.extra.remove("authentication.kubernetes.io/pod-uid");
            },
            Denial::NotBoundToAPod,
        ),
        (
            "two pods",
            |r| {
                let pods = r
                    .extra
                    .get_mut("authentication.kubernetes.io/pod-name")
                    .unwrap();
                pods.push("another".into());
            },
            Denial::NotBoundToAPod,
        ),
        (
            "two uids",
            |r| {
                let uids = r
                    .extra
                    .get_mut("authentication.kubernetes.io/pod-uid")
                    .unwrap();
                uids.push("another".into());
            },
            Denial::NotBoundToAPod,
        ),
        (
            "an empty uid",
            |r| {
                let uids = r
                    .extra
                    .get_mut("authentication.kubernetes.io/pod-uid")
                    .unwrap();
                *uids = vec![String::new()];
            },
            Denial::NotBoundToAPod,
        ),
        (
            "two nodes",
            |r| {
                let nodes = r
                    .extra
                    .get_mut("authentication.kubernetes.io/node-name")
                    .unwrap();
                nodes.push("another".into());
            },
            Denial::NotBoundToAPod,
        ),
    ];
    for (name, change, denial) in cases {
        let mut review = review();
        change(&mut review);
        assert_eq!(identify(&review, None), Err(denial), "{name}");
    }
}

#[test]
fn with_an_audience_it_must_be_among_those_that_the_api_server_confirms() {
    let with = |audiences: &[&str]| Review {
        audiences: audiences.iter().map(|&each| each.to_owned()).collect(),
        ..review()
    };
    assert!(identify(&with(&["krane"]), Some("krane")).is_ok());
    assert!(identify(&with(&["other", "krane"]), Some("krane")).is_ok());
    for wrong in [&[][..], &["other"], &["Krane"], &["krane "], &[""]] {
        let result = identify(&with(wrong), Some("krane"));
        assert_eq!(result, Err(Denial::WrongAudience), "{wrong:?}");
    }
    assert!(identify(&with(&["https://kubernetes"]), None).is_ok());
    assert_eq!(identify(&with(&[]), None), Err(Denial::WrongAudience));
}

#[test]
fn a_pod_that_is_another_or_ending_is_denied_also_at_the_last_look() {
    let at = |path: &str, value: Value| {
        let mut pod = pod_json();
        *pod.pointer_mut(path).unwrap() = value;
        pod
    };
    let mut deleting = pod_json();
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let cases = [
        (at("/metadata/uid", json!("uid-other")), Denial::AnotherPod),
        (deleting, Denial::PodEnding),
        (at("/status/phase", json!("Succeeded")), Denial::PodEnding),
        (at("/status/phase", json!("Failed")), Denial::PodEnding),
    ];
    for (pod, denial) in cases {
        assert_eq!(check(&pod, Some(&owner()), CLAIM, BLOB), Err(denial));
        assert_eq!(is_same_pod(&identity(), Some(&decode(&pod))), Err(denial));
    }
    assert_eq!(is_same_pod(&identity(), None), Err(Denial::PodGone));
    assert_eq!(
        prove(&identity(), None, Some(&owner()), CLAIM).err(),
        Some(Denial::PodGone)
    );
}

/// Every fact of the pod counts: changed or taken away, it gives the denial that names it.
#[test]
fn a_pod_that_lacks_any_proof_is_denied() {
    let label = |key: &str| format!("/metadata/labels/{}", key.replace('/', "~1"));
    let note = |key: &str| format!("/metadata/annotations/{}", key.replace('/', "~1"));
    let cases = [
        (
            "/spec/serviceAccountName".to_owned(),
            Denial::AnotherAccount,
        ),
        ("/spec/nodeName".to_owned(), Denial::AnotherNode),
        (label(labels::MANAGED_BY), Denial::NotOurs),
        (label(labels::COMPONENT), Denial::NotOurs),
        (label(labels::DEPLOYMENT_ID), Denial::AnotherDeployment),
        (label(labels::ENVIRONMENT_ID), Denial::AnotherEnvironment),
        (note(labels::DEPLOYMENT_ID), Denial::AnotherDeployment),
        (note(labels::ENVIRONMENT_ID), Denial::AnotherEnvironment),
        (
            "/metadata/ownerReferences/0/kind".to_owned(),
            Denial::NotOfAReplicaSet,
        ),
        (
            "/metadata/ownerReferences/0/apiVersion".to_owned(),
            Denial::NotOfAReplicaSet,
        ),
        (
            "/metadata/ownerReferences/0/uid".to_owned(),
            Denial::NotOfAReplicaSet,
        ),
        (
            "/spec/containers/0/env/0/value".to_owned(),
            Denial::AnotherBlob,
        ),
        (
            "/spec/containers/0/env/0/name".to_owned(),
            Denial::AnotherBlob,
        ),
    ];
    for (path, denial) in cases {
        for value in ["other", ""] {
            let mut pod = pod_json();
            *pod.pointer_mut(&path).unwrap() = json!(value);
            let result = check(&pod, Some(&owner()), CLAIM, BLOB);
            assert_eq!(result, Err(denial), "{path} = {value:?}");
        }
    }
    for controller in [json!(false), Value::Null] {
        let mut pod = pod_json();
        pod["metadata"]["ownerReferences"][0]["controller"] = controller;
        let result = check(&pod, Some(&owner()), CLAIM, BLOB);
        assert_eq!(result, Err(Denial::NotOfAReplicaSet));
    }
}

#[test]
fn a_claim_on_another_deployment_environment_or_blob_is_denied() {
    let claim = |deployment_id, environment_id| Claim {
        deployment_id,
        environment_id,
    };
    let of = |claim, blob| check(&pod_json(), Some(&owner()), claim, blob);
    assert_eq!(
        of(claim("d_2", "env_1"), BLOB),
        Err(Denial::AnotherDeployment)
    );
    assert_eq!(of(claim("", "env_1"), BLOB), Err(Denial::AnotherDeployment));
    assert_eq!(
        of(claim("d_1", "env_2"), BLOB),
        Err(Denial::AnotherEnvironment)
    );
    assert_eq!(of(claim("d_1", ""), BLOB), Err(Denial::AnotherEnvironment));
    assert_eq!(of(CLAIM, b"{}"), Err(Denial::AnotherBlob));
    assert_eq!(of(CLAIM, b""), Err(Denial::AnotherBlob));
}

#[test]
fn a_pod_with_two_encrypted_variables_has_no_blob_of_its_own() {
    let mut pod = pod_json();
    let same = pod["spec"]["containers"][0].clone();
    pod["spec"]["initContainers"] = json!([same]);
    assert_eq!(
        check(&pod, Some(&owner()), CLAIM, BLOB),
        Err(Denial::AnotherBlob)
    );
}

#[test]
fn two_controllers_are_no_controller() {
    let mut pod = pod_json();
    let owners = pod["metadata"]["ownerReferences"].as_array_mut().unwrap();
    owners.push(owners[0].clone());
    assert_eq!(decode(&pod).replica_set(), None);
    assert_eq!(
        check(&pod, Some(&owner()), CLAIM, BLOB),
        Err(Denial::NotOfAReplicaSet)
    );
}

/// unkeyed/unkey 3a360d289d, PR #4706 (A56): the blob is JSON, only its values are encrypted; what
/// is no blob is an error without its content.
#[test]
fn a_blob_is_read_as_strictly_as_protojson_and_an_error_quotes_nothing() {
    let read = |text: &str| parse_blob(text.as_bytes());
    let names = |text| read(text).unwrap().into_keys().collect::<Vec<_>>();
    assert_eq!(names(r#"{"secrets":{"B":"x","A":"y"}}"#), ["A", "B"]);
    assert_eq!(names(r#" { "secrets" : { } } "#), [""; 0]);
    assert_eq!(names("{}"), [""; 0]);
    assert_eq!(names(r#"{"secrets":null}"#), [""; 0]);
    for wrong in [
        "",
        "canary",
        "null",
        "[]",
        "7",
        r#""canary""#,
        "{",
        r#"{"secrets":[]}"#,
        r#"{"secrets":{"canary":null}}"#,
        r#"{"secrets":{"canary":1}}"#,
        r#"{"secrets":{"canary":{}}}"#,
        r#"{"secrets":{},"canary":1}"#,
        r#"{"secrets":{},"secrets":{}}"#,
        r#"{"secrets":{"canary":"a","canary":"b"}}"#,
        r#"{"secrets":{}} canary"#,
        "{\"secrets\":{\"a\":\"\u{1}canary\"}}",
    ] {
        let problem = read(wrong).expect_err(wrong);
        assert!(!problem.to_string().contains("canary"), "{problem}");
    }
    assert!(parse_blob(&[0xff, 0xfe]).is_err());
    let deep = "[".repeat(200_000);
    assert!(read(&format!(r#"{{"secrets":{deep}"#)).is_err());
}

#[test]
fn an_answer_that_is_no_pod_is_an_error_that_quotes_nothing() {
    for wrong in [
        "",
        "canary",
        "{}",
        r#"{"metadata":{"uid":"canary"}}"#,
        r#"{"metadata":{"uid":7},"spec":{}}"#,
        r#"{"metadata":{"uid":"u","labels":{"canary":7}},"spec":{}}"#,
    ] {
        let problem = PodIdentity::from_slice(wrong.as_bytes()).expect_err(wrong);
        assert!(!problem.to_string().contains("canary"), "{problem}");
    }
}

#[test]
fn names_of_denials_are_distinct() {
    let names: std::collections::BTreeSet<_> = Denial::ALL.iter().map(|each| each.name()).collect();
    assert_eq!(names.len(), Denial::ALL.len());
}

proptest! {
    #[test]
    fn no_bytes_make_the_readers_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse_blob(&bytes);
        let _ = PodIdentity::from_slice(&bytes);
    }

    #[test]
    fn only_the_very_bytes_of_the_pod_are_its_blob(
        own in proptest::collection::vec(any::<u8>(), 1..60),
        sent in proptest::collection::vec(any::<u8>(), 1..60),
    ) {
        let mut pod = pod_json();
        pod["spec"]["containers"][0]["env"][0]["value"] = json!(STANDARD.encode(&own));
        let is_covered = |blob: &[u8]| check(&pod, Some(&owner()), CLAIM, blob).is_ok();
        prop_assert!(is_covered(&own));
        prop_assert_eq!(is_covered(&sent), own == sent);
    }
}
