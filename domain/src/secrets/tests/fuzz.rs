//! Whatever stands in a blob or in a pod, it is read or refused.

use krane_testfuzz::Fuzz;
use serde_json::json;

use super::{
    BLOB, CLAIM, PodIdentity, identify, labels, owner, parse_blob, pod_json, prove, review,
};

#[test]
fn a_blob_that_is_read_is_read_the_same_when_written_again() {
    let fuzz = Fuzz::new("secrets blob")
        .document(BLOB)
        .document(r#"{"secrets":{"A":"eA==","B":"","C":"\u00fc\ud83d\ude00"},"more":[1,null]}"#)
        .words([
            "null",
            "\"secrets\"",
            "{}",
            ":",
            ",",
            "\\u0000",
            "\\ud800",
            "1e999",
            "-0",
        ]);
    fuzz.run(|input| {
        let Ok(variables) = parse_blob(input) else {
            return;
        };
        let again = json!({ "secrets": variables }).to_string();
        assert_eq!(parse_blob(again.as_bytes()).as_ref(), Ok(&variables));
    });
}

/// A pod that was altered on the way is refused, or it is still the pod that asks.
#[test]
fn no_pod_that_can_be_read_gets_past_the_checks_without_its_ids() {
    let fuzz = Fuzz::new("pod").document(pod_json().to_string()).words([
        "null",
        "true",
        "\"\"",
        "[]",
        "{}",
        "\"d_1\"",
        "\"d_2\"",
        "\"env_2\"",
        "\"Failed\"",
    ]);
    let who = identify(&review(), None).unwrap();
    fuzz.run(|input| {
        let Ok(pod) = PodIdentity::from_slice(input) else {
            return;
        };
        if prove(&who, Some(&pod), Some(&owner()), CLAIM).is_ok() {
            assert_eq!(pod.uid, "uid-pod");
            assert!(!pod.is_terminating && !pod.is_finished);
            for (id, own) in [
                (labels::DEPLOYMENT_ID, "d_1"),
                (labels::ENVIRONMENT_ID, "env_1"),
            ] {
                assert_eq!(pod.labels[id], own);
                assert!(pod.annotations.get(id).is_none_or(|it| it == own));
            }
        }
    });
}
