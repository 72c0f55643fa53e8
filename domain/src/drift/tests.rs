mod decisions;
mod edits;
mod equality;
mod explain;
mod properties;
mod recorded;
mod rules;

use serde_json::{Value, json};

use super::{Decision, Difference, DifferenceKind, decide};
use crate::ids::SharedKey;
use crate::kinds::deployment::{DeploymentInput, validate};
use crate::kinds::{Desired, Member, Password, PullSecret, Rules, render_shared};
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::testing::{applied_json, fields_of, full_input, scaled_input};

/// A moment for tests that hold nothing.
const NOW: u64 = 1_800_000_000;

fn rules() -> Rules {
    let credentials = PullSecret {
        url: "registry.example".to_owned(),
        username: "user".to_owned(),
        password: Password::new("password"),
    };
    Rules {
        pull_secret: Some(credentials),
        secrets_audience: Some("krane".into()),
        ..Rules::default()
    }
}

fn workload(input: DeploymentInput) -> Rendered {
    wanted(input).render(&rules(), None)
}

fn wanted(input: DeploymentInput) -> Desired {
    let desired = validate(input, &rules()).unwrap_or_else(|invalid| panic!("{invalid}"));
    Desired::Deployment(Box::new(desired))
}

/// The autoscaler of a workload that is there.
fn autoscaler(input: DeploymentInput) -> Rendered {
    let desired = wanted(input);
    let rendered = desired.render(&rules(), None);
    let mut dependants =
        desired.dependants(&Rules::default(), &kept(&rendered, in_place(&rendered)));
    assert_eq!(dependants.len(), 1);
    dependants.remove(0)
}

fn shared(key: &SharedKey) -> Rendered {
    let member = Member::isolated("ws_1", "env_1", 8080);
    render_shared(key, &[member], &rules()).unwrap_or_else(|| panic!("{key} renders"))
}

fn policy() -> Rendered {
    shared(&SharedKey::IsolationPolicy {
        namespace: "ns".into(),
        environment: "env_1".into(),
    })
}

fn secret() -> Rendered {
    shared(&SharedKey::PullSecret("ns".into()))
}

/// One object of each kind that krane writes.
fn all_kinds() -> Vec<Rendered> {
    let namespace = shared(&SharedKey::Namespace("ns".into()));
    vec![
        workload(full_input()),
        workload(scaled_input()),
        autoscaler(scaled_input()),
        namespace,
        policy(),
        secret(),
    ]
}

/// Any body, as the API server would keep it without further defaults.
fn made(resource: Resource, body: Value) -> (Rendered, Value) {
    let mut body = body;
    body["metadata"]["name"] = json!("x");
    body["metadata"]["namespace"] = json!("ns");
    body["metadata"]["labels"] = json!({ "app.kubernetes.io/managed-by": "krane" });
    let rendered = Rendered::new(ObjectRef::new(resource, "ns", "x"), body);
    let mut live = rendered.body.clone();
    live["metadata"]["uid"] = json!("uid-1");
    live["metadata"]["resourceVersion"] = json!("7");
    live["metadata"]["managedFields"] = json!([own_entry(&rendered)]);
    (rendered, live)
}

fn own_entry(rendered: &Rendered) -> Value {
    json!({
        "manager": "krane",
        "operation": "Apply",
        "apiVersion": rendered.reference.resource.api_version(),
        "fieldsV1": fields_of(&rendered.body),
    })
}

fn kept(rendered: &Rendered, live: Value) -> LiveObject {
    LiveObject::from_json(rendered.reference.resource, live)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn decision(rendered: &Rendered, live: Value) -> Decision {
    decide(rendered, Some(&kept(rendered, live)), None, NOW)
}

/// What an update would be for; empty when the object is in place.
fn differences(rendered: &Rendered, live: Value) -> Vec<Difference> {
    let decision = decision(rendered, live);
    if decision == Decision::InPlace {
        return Vec::new();
    }
    let Decision::Update { uid, differences } = decision else {
        panic!("{decision:?}")
    };
    assert!(uid.starts_with("uid-") && !differences.is_empty());
    differences
}

fn found(rendered: &Rendered, live: Value) -> Vec<(String, DifferenceKind)> {
    differences(rendered, live)
        .into_iter()
        .map(|found| (found.path, found.kind))
        .collect()
}

/// The live object after krane's first apply.
fn in_place(rendered: &Rendered) -> Value {
    applied_json(rendered, "uid-1", 7)
}
