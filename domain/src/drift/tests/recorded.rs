//! Answers of a real API server 1.36.3 (Cilium CRD 1.18.0) to the second apply of what krane
//! renders, as JSON files. A change of a rendering needs a new recording: apply the bodies of
//! [`recordings`] as manager krane, and keep the answers.

use serde_json::{Value, json};

use super::{decision, policy, secret, shared, workload};
use crate::drift::Decision;
use crate::ids::SharedKey;
use crate::kinds::deployment::DeploymentInput;
use crate::labels;
use crate::object::Rendered;
use crate::testing::{applied_json, full_input, minimal_input};

/// What was applied, and what the API server made of it.
fn recordings() -> Vec<(Rendered, Value)> {
    let in_ns = |input| DeploymentInput {
        k8s_namespace: "ns".to_owned(),
        ..input
    };
    let edge = DeploymentInput {
        k8s_name: "edge".to_owned(),
        replicas: 0,
        cpu_millicores: 1,
        memory_mib: 1,
        healthcheck: Some(br#"{"METHOD":"POST","Path":"ping","intervalSeconds":-3}"#.to_vec()),
        git_commit_message: Some(String::new()),
        ..minimal_input()
    };
    let round = DeploymentInput {
        k8s_name: "round".to_owned(),
        cpu_millicores: 2000,
        memory_mib: 2048,
        ..minimal_input()
    };
    [
        (
            shared(&SharedKey::Namespace("ns".into())),
            include_str!("recorded/namespace.json"),
        ),
        (policy(), include_str!("recorded/policy.json")),
        (secret(), include_str!("recorded/secret.json")),
        (
            workload(in_ns(full_input())),
            include_str!("recorded/full.json"),
        ),
        (workload(in_ns(edge)), include_str!("recorded/edge.json")),
        (workload(in_ns(round)), include_str!("recorded/round.json")),
    ]
    .into_iter()
    .map(|(mut rendered, json)| {
        let answer: Value = serde_json::from_str(json).unwrap_or_default();
        let number = |object: &Value| {
            let annotations = object.pointer("/metadata/annotations");
            annotations.and_then(|it| it.get(labels::RENDERER_ANNOTATION).cloned())
        };
        // The renderer's number is kept as it was sent, whichever it was then.
        if let Some(number) = number(&answer) {
            rendered.body["metadata"]["annotations"][labels::RENDERER_ANNOTATION] = number;
        }
        (rendered, answer)
    })
    .collect()
}

/// Altinity/clickhouse-operator#1904 (B27): `2048Mi` came back as `2Gi`, among others.
#[test]
fn what_a_real_server_stored_is_in_place() {
    for (rendered, answer) in recordings() {
        assert_eq!(
            decision(&rendered, answer),
            Decision::InPlace,
            "{}",
            rendered.reference
        );
    }
}

#[test]
fn the_model_answers_as_the_real_server_did() {
    for (rendered, mut answer) in recordings() {
        let mut model = applied_json(&rendered, "", 0);
        for object in [&mut answer, &mut model] {
            for volatile in ["uid", "resourceVersion", "creationTimestamp"] {
                object["metadata"][volatile] = Value::Null;
            }
            object["metadata"]["managedFields"][0]["time"] = Value::Null;
            // Of the controllers, none ran.
            object["status"] = json!({});
        }
        assert_eq!(answer, model, "{}", rendered.reference);
    }
}
