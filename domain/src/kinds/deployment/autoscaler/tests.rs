use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{dependants, reference, unneeded};
use crate::drift::{Decision, decide};
use crate::kinds::deployment::{
    AutoscalingInput, DeploymentInput, DesiredDeployment, render, validate,
};
use crate::kinds::{Keep, Rules, WantedKind};
use crate::object::{LiveObject, Rendered, Resource};
use crate::testing::{applied, applied_json, minimal_input, valid_input};

const NOW: u64 = 1_800_000_000;

fn desired(input: DeploymentInput) -> DesiredDeployment {
    validate(input, &Rules::default()).unwrap_or_else(|invalid| panic!("{invalid}"))
}

/// A workload of so many pods, scaled between these bounds when there are any.
fn sample(replicas: i32, bounds: Option<(u32, u32)>) -> DesiredDeployment {
    desired(DeploymentInput {
        replicas,
        autoscaling: bounds.map(|(min_replicas, max_replicas)| AutoscalingInput {
            min_replicas,
            max_replicas,
            ..AutoscalingInput::default()
        }),
        ..minimal_input()
    })
}

fn rendered(desired: &DesiredDeployment, live: Option<&LiveObject>) -> Rendered {
    render(desired, &Rules::default(), live)
}

/// Somebody who sets the number of pods.
#[derive(Clone, Copy)]
struct Scaled {
    to: u32,
    subresource: &'static str,
}

impl Scaled {
    const fn to(to: u32) -> Self {
        Self {
            to,
            subresource: "scale",
        }
    }
}

/// The live ReplicaSet after krane's apply, and after somebody then set the number of pods.
fn live(of: &Rendered, scaled: Option<Scaled>) -> LiveObject {
    let mut object = applied_json(of, "uid-1", 7);
    if let Some(scaled) = scaled {
        object["spec"]["replicas"] = json!(scaled.to);
        let fields = object.pointer_mut("/metadata/managedFields/0/fieldsV1/f:spec");
        if let Some(fields) = fields.and_then(Value::as_object_mut) {
            fields.remove("f:replicas");
        }
        let entry = json!({
            "manager": "someone", "operation": "Update", "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "subresource": scaled.subresource,
            "fieldsV1": { "f:spec": { "f:replicas": {} } },
        });
        let entries = object.pointer_mut("/metadata/managedFields");
        if let Some(entries) = entries.and_then(Value::as_array_mut) {
            entries.push(entry);
        }
    }
    LiveObject::from_json(Resource::ReplicaSet, object).unwrap_or_else(|error| panic!("{error}"))
}

fn replicas(of: &Rendered) -> Option<u64> {
    of.body["spec"]["replicas"].as_u64()
}

#[test]
fn the_first_create_has_at_least_the_minimum_of_the_policy() {
    for (count, bounds, expected) in [
        (7, (3, 20), 7),
        (7, (9, 20), 9),
        (0, (1, 1), 1),
        (7, (1, 5), 7),
    ] {
        let first = rendered(&sample(count, Some(bounds)), None);
        assert_eq!(replicas(&first), Some(expected));
        assert_eq!(first.made_for, None);
    }
    let fixed = rendered(&sample(0, None), None);
    assert_eq!(replicas(&fixed), Some(0));
}

/// D11c: the API server sets a number that krane owns and leaves out to 1.
#[test]
fn while_krane_owns_the_number_the_live_one_is_rendered_for_exactly_that_version() {
    let live = live(&rendered(&sample(6, None), None), None);
    let switched = rendered(&sample(2, Some((2, 9))), Some(&live));
    assert_eq!(replicas(&switched), Some(6));
    assert_eq!(switched.made_for, Some(7));
    assert_eq!(decide(&switched, Some(&live), None, NOW), Decision::InPlace);
}

#[test]
fn once_the_autoscaler_owns_the_number_it_is_left_out() {
    let wanted = sample(2, Some((2, 9)));
    let live = live(&rendered(&wanted, None), Some(Scaled::to(5)));
    let next = rendered(&wanted, Some(&live));
    assert_eq!(replicas(&next), None);
    // Whether to leave it out was read from that version as well.
    assert_eq!(next.made_for, Some(7));
    assert_eq!(decide(&next, Some(&live), None, NOW), Decision::InPlace);
}

#[test]
fn without_a_policy_the_wanted_number_is_enforced_whoever_owns_it() {
    let live = live(
        &rendered(&sample(2, Some((2, 9))), None),
        Some(Scaled::to(5)),
    );
    let next = rendered(&sample(2, None), Some(&live));
    assert_eq!(replicas(&next), Some(2));
    assert_eq!(next.made_for, None);
    let decision = decide(&next, Some(&live), None, NOW);
    assert!(matches!(decision, Decision::Update { .. }), "{decision:?}");
}

/// Nobody is fought over the number, whichever way it was set: krane takes the field over with
/// the value it has.
#[test]
fn a_number_edited_in_the_object_itself_is_taken_over_as_it_is() {
    let wanted = sample(2, Some((2, 9)));
    let edit = Scaled {
        to: 5,
        subresource: "",
    };
    let live = live(&rendered(&wanted, None), Some(edit));
    let next = rendered(&wanted, Some(&live));
    assert_eq!(replicas(&next), None);
    let decision = decide(&next, Some(&live), None, NOW);
    assert!(matches!(decision, Decision::Adopt { .. }), "{decision:?}");
}

/// An autoscaler does nothing for a target without pods.
#[test]
fn a_workload_that_had_no_pods_gets_its_first_ones_from_krane() {
    let live = live(&rendered(&sample(0, None), None), None);
    let switched = rendered(&sample(0, Some((3, 9))), Some(&live));
    assert_eq!(replicas(&switched), Some(3));
}

/// (F31, D38b) An autoscaler that krane may not see may have decided on the number.
#[test]
fn with_autoscalers_unknown_a_number_that_another_manager_owns_stays() {
    let (unknown, known) = (
        BTreeSet::from([Resource::HorizontalPodAutoscaler]),
        BTreeSet::new(),
    );
    let unsure = |desired: &DesiredDeployment, live: &LiveObject, unknown: &BTreeSet<Resource>| {
        WantedKind::render_unsure(
            desired,
            &Rules::default(),
            Some(live),
            Keep::EqualState,
            unknown,
        )
    };
    let first = rendered(&sample(2, None), None);
    let next = sample(5, None);
    let scaled = live(&first, Some(Scaled::to(7)));
    let kept = unsure(&next, &scaled, &unknown);
    assert_eq!(replicas(&kept), None);
    assert_eq!(kept.made_for, Some(scaled.resource_version));
    assert_eq!(replicas(&unsure(&next, &scaled, &known)), Some(5));
    let own = live(&first, None);
    assert_eq!(replicas(&unsure(&next, &own, &unknown)), Some(5));
    let fresh =
        WantedKind::render_unsure(&next, &Rules::default(), None, Keep::EqualState, &unknown);
    assert_eq!(replicas(&fresh), Some(5), "nobody else has decided yet");
}

#[test]
fn an_autoscaler_hangs_on_the_live_workload_and_is_unneeded_without_a_policy() {
    let (scaled, fixed) = (sample(2, Some((2, 9))), sample(2, None));
    let owner = live(&rendered(&scaled, None), None);
    let autoscalers = dependants(&scaled, &owner);
    assert_eq!(autoscalers.len(), 1);
    assert_eq!(autoscalers[0].reference, reference(&scaled));
    let live = applied(&autoscalers[0], "uid-2", 8).unwrap_or_else(|error| panic!("{error}"));
    assert!(live.is_ours() && live.is_owned_by("uid-1") && !live.is_owned_by("uid-2"));
    assert_eq!(unneeded(&scaled), []);
    assert_eq!(dependants(&fixed, &owner), []);
    assert_eq!(unneeded(&fixed), [reference(&fixed)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is wanted after whatever there was: a policy takes no pods away, and what is
    /// applied is in place.
    #[test]
    fn from_any_state_to_any_other_the_plan_ends(
        before in valid_input(), after in valid_input(),
        scaled in prop::option::of(0..2000_u32),
    ) {
        let before = desired(before);
        let after = desired(DeploymentInput {
            k8s_namespace: before.key.namespace.to_string(),
            k8s_name: before.key.name.to_string(),
            deployment_id: before.deployment_id.to_string(),
            ..after
        });
        let there = live(&rendered(&before, None), scaled.map(Scaled::to));
        let count = there.value()["spec"]["replicas"].as_u64();
        let next = rendered(&after, Some(&there));
        let expected = match (after.autoscaling, scaled) {
            (Some(_), Some(_)) => None,
            (Some(_), None) if count > Some(0) => count,
            (Some(policy), None) => Some(after.replicas.max(policy.min_replicas).into()),
            (None, _) => Some(after.replicas.into()),
        };
        prop_assert_eq!(replicas(&next), expected);
        if expected.is_some() {
            let then = live(&next, None);
            let again = rendered(&after, Some(&then));
            prop_assert_eq!(&again.body, &next.body);
            prop_assert_eq!(decide(&again, Some(&then), None, NOW), Decision::InPlace);
        }
        for autoscaler in dependants(&after, &there) {
            let then = applied(&autoscaler, "uid-2", 9).unwrap_or_else(|error| panic!("{error}"));
            prop_assert_eq!(decide(&autoscaler, Some(&then), None, NOW), Decision::InPlace);
        }
    }
}
