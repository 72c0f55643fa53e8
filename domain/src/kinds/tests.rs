use std::collections::BTreeSet;

use serde_json::json;

use super::deployment::{DeploymentInput, validate};
use super::{
    Desired, Password, PullSecret, Rules, can_do_without, question_id, render_shared, sentinel,
    shared_keys,
};
use crate::ids::{Controller, ObjectKey, SharedKey};
use crate::object::{LiveObject, Resource};
use crate::plan::{Plan, Unseen};
use crate::testing::{applied, applied_json, minimal_input, sentinel_input};

fn desired(rules: &Rules) -> Desired {
    let input = DeploymentInput {
        port: 3000,
        ..minimal_input()
    };
    let desired = validate(input, rules).unwrap_or_else(|invalid| panic!("{invalid}"));
    Desired::Deployment(Box::new(desired))
}

fn with_registry() -> Rules {
    let credentials = PullSecret {
        url: "r".to_owned(),
        username: "u".to_owned(),
        password: Password::new("p"),
    };
    Rules {
        pull_secret: Some(credentials),
        ..Rules::default()
    }
}

/// unkeyed/unkey 1ca1128c6a, PR #5309 (A15): everything a pod names must exist before its
/// workload.
#[test]
fn a_workload_needs_its_namespace_policy_and_with_a_registry_its_pull_secret() {
    let namespace = SharedKey::Namespace("abcdefgh".into());
    let policy = SharedKey::IsolationPolicy {
        namespace: "abcdefgh".into(),
        environment: "env_1".into(),
    };
    let rules = Rules::default();
    assert_eq!(
        desired(&rules).needs(&rules),
        [namespace.clone(), policy.clone()]
    );
    let rules = with_registry();
    let secret = SharedKey::PullSecret("abcdefgh".into());
    assert_eq!(desired(&rules).needs(&rules), [namespace, policy, secret]);
}

#[test]
fn everything_needed_can_be_rendered_from_the_one_who_needs_it() {
    let rules = with_registry();
    let desired = desired(&rules);
    for key in desired.needs(&rules) {
        assert!(
            render_shared(&key, &[desired.member()], &rules).is_some(),
            "{key}"
        );
    }
}

#[test]
fn wanted_and_live_workloads_are_members_of_the_same_keys() {
    let rules = with_registry();
    let desired = desired(&rules);
    let rendered = desired.render(&rules, None);
    let live = applied(&rendered, "uid", 1).unwrap_or_else(|error| panic!("{error}"));
    let member = Controller::Deployments
        .member_of_live(&live)
        .unwrap_or_else(|| panic!("labels are there"));
    assert_eq!(member, desired.member());
    let keys = shared_keys(&live.reference.namespace, &member, &rules);
    assert_eq!(keys, desired.needs(&rules));
    assert_eq!(*desired.key(), ObjectKey::new("abcdefgh", "dep-1"));
}

#[test]
fn only_the_policy_can_be_done_without_and_only_if_cilium_is_not_required() {
    let rules = with_registry();
    let loose = Rules {
        is_cilium_required: false,
        ..rules.clone()
    };
    for key in desired(&rules).needs(&rules) {
        let is_policy = matches!(key, SharedKey::IsolationPolicy { .. });
        assert!(!can_do_without(&key, &rules));
        assert_eq!(can_do_without(&key, &loose), is_policy);
    }
}

/// unkeyed/unkey 36b5384c3a (A30): an empty id in a question or report claims or wipes others.
#[test]
fn an_object_without_id_is_never_asked_about() {
    let rules = Rules::default();
    let rendered = desired(&rules).render(&rules, None);
    let with = |id: Option<&str>| {
        let mut json = applied_json(&rendered, "uid", 1);
        match id {
            Some(id) => json["metadata"]["labels"]["unkey.com/deployment.id"] = json!(id),
            None => json["metadata"]["labels"] = json!({}),
        }
        let live = LiveObject::from_json(Resource::ReplicaSet, json);
        question_id(
            Controller::Deployments,
            &live.unwrap_or_else(|error| panic!("{error}")),
        )
    };
    assert_eq!(with(None), None);
    assert_eq!(with(Some("")), None);
    assert_eq!(with(Some("d_1")).as_deref(), Some("d_1"));
}

#[test]
fn the_primary_kind_is_watched_first() {
    let controller = Controller::Deployments;
    let watches = controller.watches(&Rules::default());
    assert_eq!(
        watches.first().map(|spec| spec.resource),
        Some(controller.primary())
    );
    assert!(controller.has_reports());
}

/// (F31, D38b) What a state needs to be known, and what a delete would leave behind.
#[test]
fn a_state_is_blocked_by_the_kinds_it_is_made_of_and_by_no_other() {
    let (strict, loose) = (
        Rules::default(),
        Rules {
            is_cilium_required: false,
            ..Rules::default()
        },
    );
    let unknown = |kind| BTreeSet::from([kind]);
    let blocked_by = |desired: &Desired, rules: &Rules, unknown: &BTreeSet<Resource>| {
        let unseen = Unseen {
            unknown: unknown.clone(),
            ..Unseen::default()
        };
        let plan = Plan {
            desired,
            rules,
            unseen: &unseen,
        };
        plan.blocked_by()
    };
    let sentinel =
        sentinel::validate(sentinel_input(), &strict).unwrap_or_else(|invalid| panic!("{invalid}"));
    let sentinel = Desired::Sentinel(Box::new(sentinel));
    let key = sentinel.key().clone();
    for kind in [Resource::Service, Resource::PodDisruptionBudget] {
        for rules in [&strict, &loose] {
            assert_eq!(blocked_by(&sentinel, rules, &unknown(kind)), Some(kind));
            let delete = Controller::Sentinels.delete_blocked_by(&key, rules, &unknown(kind));
            assert_eq!(delete, Some(kind));
        }
    }
    let policies = unknown(Resource::CiliumNetworkPolicy);
    let policy = Some(Resource::CiliumNetworkPolicy);
    assert_eq!(blocked_by(&sentinel, &strict, &policies), policy);
    assert_eq!(blocked_by(&sentinel, &loose, &policies), None);
    assert_eq!(
        blocked_by(
            &sentinel,
            &strict,
            &unknown(Resource::HorizontalPodAutoscaler)
        ),
        None
    );
    let autoscalers = unknown(Resource::HorizontalPodAutoscaler);
    let delete = Controller::Deployments.delete_blocked_by(&key, &strict, &autoscalers);
    assert_eq!(delete, None, "it goes with its workload");
    for controller in Controller::ALL {
        assert!(controller.is_essential(controller.primary()));
        assert!(!controller.is_essential(Resource::Namespace));
    }
}
