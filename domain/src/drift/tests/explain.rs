use serde_json::{Value, json};

use super::{NOW, in_place, kept, own_entry, secret, workload};
use crate::drift::{Decision, explain, owners_of};
use crate::testing::{fields_of, full_input};

/// The live object after `manager` changed a field: it owns it, and krane does not any more.
fn edited(pointer: &str, value: Value, manager: &str) -> (crate::object::Rendered, Value) {
    let rendered = workload(full_input());
    let mut live = in_place(&rendered);
    *live.pointer_mut(pointer).expect("a field") = value.clone();
    let mut owned = rendered.body.clone();
    let (parent, name) = pointer.rsplit_once('/').expect("a path");
    owned
        .pointer_mut(parent)
        .and_then(Value::as_object_mut)
        .expect("a parent")
        .remove(name);
    let mut own = own_entry(&rendered);
    own["fieldsV1"] = fields_of(&owned);
    let mut change = value;
    for key in pointer
        .split('/')
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        change = json!({ key: change });
    }
    let theirs = json!({
        "manager": manager,
        "operation": "Update",
        "apiVersion": rendered.reference.resource.api_version(),
        "fieldsV1": fields_of(&change),
    });
    live["metadata"]["managedFields"] = json!([own, theirs]);
    (rendered, live)
}

/// argoproj/argo-cd#23927: nobody says who owns a field that differs.
#[test]
fn a_field_that_differs_names_who_owns_it_and_both_values() {
    let (rendered, live) = edited("/spec/replicas", json!(7), "kubectl-scale");
    let live = kept(&rendered, live);
    let found = explain(&rendered, Some(&live), None, NOW);
    assert!(matches!(found.decision, Decision::Update { .. }));
    let [one] = found.differences.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(one.difference.path, "spec.replicas");
    assert_eq!(one.difference.live.as_deref(), Some("7"));
    assert!(one.difference.wanted.is_some());
    assert_eq!(one.owners, ["kubectl-scale"]);
    let differences = [one.difference.clone()];
    assert_eq!(owners_of(&differences, &live), ["kubectl-scale"]);
}

#[test]
fn what_a_person_holds_is_explained_all_the_same() {
    let (rendered, mut live) = edited("/spec/replicas", json!(7), "kubectl-edit");
    live["metadata"]["annotations"]["krane.unkey.com/hold"] = json!("2027-01-15T09:00:00Z");
    let live = kept(&rendered, live);
    let found = explain(&rendered, Some(&live), None, NOW);
    assert!(matches!(found.decision, Decision::Held { .. }), "{found:?}");
    let paths = found
        .differences
        .iter()
        .map(|it| it.difference.path.as_str());
    assert_eq!(paths.collect::<Vec<_>>(), ["spec.replicas"]);
    assert_eq!(found.differences[0].owners, ["kubectl-edit"]);
}

#[test]
fn what_krane_wants_anew_has_no_other_owner() {
    let rendered = workload(full_input());
    let mut wanted = rendered.clone();
    wanted.body["spec"]["replicas"] = json!(9);
    let live = kept(&rendered, in_place(&rendered));
    let found = explain(&wanted, Some(&live), None, NOW);
    assert_eq!(found.differences.len(), 1);
    assert_eq!(found.differences[0].owners, [""; 0]);
}

#[test]
fn nothing_of_a_secret_is_shown_in_any_explanation() {
    let rendered = secret();
    let mut live = in_place(&rendered);
    live["data"][".dockerconfigjson"] = json!("aHVudGVyMg==");
    let live = kept(&rendered, live);
    let found = explain(&rendered, Some(&live), None, NOW);
    assert!(!found.differences.is_empty());
    for one in &found.differences {
        assert_eq!(
            (&one.difference.wanted, &one.difference.live),
            (&None, &None)
        );
    }
}

#[test]
fn what_is_absent_or_somebody_elses_is_not_compared() {
    let rendered = workload(full_input());
    let absent = explain(&rendered, None, None, NOW);
    assert_eq!(absent.decision, Decision::Create);
    assert!(absent.differences.is_empty());
    let mut live = in_place(&rendered);
    live["metadata"]["labels"] = json!({});
    let foreign = explain(&rendered, Some(&kept(&rendered, live)), None, NOW);
    assert_eq!(foreign.decision, Decision::NotOurs);
    assert!(foreign.differences.is_empty());
}
