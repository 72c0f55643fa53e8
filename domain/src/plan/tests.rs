use std::collections::BTreeSet;

use serde_json::json;

use super::{Leftover, Part, Plan, Role, Unseen, deletion, leftover};
use crate::ids::{Controller, ObjectKey};
use crate::kinds::{Desired, Rules, deployment, sentinel};
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::testing::{applied, applied_json, minimal_input, scaled_input, sentinel_input};
use crate::view::View;

/// 2026-01-31T12:00:00Z.
const NOW: u64 = 1_769_860_800;

fn workload(is_scaled: bool) -> Desired {
    let input = if is_scaled {
        scaled_input()
    } else {
        minimal_input()
    };
    let desired = deployment::validate(input, &Rules::default());
    Desired::Deployment(Box::new(
        desired.unwrap_or_else(|invalid| panic!("{invalid}")),
    ))
}

fn proxy(rules: &Rules) -> Desired {
    let desired = sentinel::validate(sentinel_input(), rules);
    Desired::Sentinel(Box::new(
        desired.unwrap_or_else(|invalid| panic!("{invalid}")),
    ))
}

fn live(rendered: &Rendered) -> LiveObject {
    applied(rendered, "uid-1", 7).unwrap_or_else(|error| panic!("{error}"))
}

fn roles_and_kinds(parts: &[Part]) -> Vec<(Role, Resource)> {
    let parts = parts.iter();
    parts
        .map(|part| (part.role(), part.reference().resource))
        .collect()
}

#[test]
fn shared_objects_come_first_then_what_goes_then_the_workload_then_what_hangs_on_it() {
    let (rules, unseen) = (Rules::default(), Unseen::default());
    let of = |desired: &Desired| {
        let plan = Plan {
            desired,
            rules: &rules,
            unseen: &unseen,
        };
        let before = roles_and_kinds(&plan.parts(None));
        let primary = live(&desired.render(&rules, None));
        (before, roles_and_kinds(&plan.parts(Some(&primary))))
    };
    let shared = [
        (Role::Shared, Resource::Namespace),
        (Role::Shared, Resource::CiliumNetworkPolicy),
    ];
    let autoscaler = Resource::HorizontalPodAutoscaler;
    let primary = (Role::Primary, Resource::ReplicaSet);
    let (before, after) = of(&workload(false));
    assert_eq!(
        after,
        [shared[0], shared[1], (Role::Unneeded, autoscaler), primary]
    );
    assert_eq!(before, after, "nothing hangs on it");
    let (before, after) = of(&workload(true));
    assert_eq!(before, [shared[0], shared[1], primary]);
    assert_eq!(
        after,
        [shared[0], shared[1], primary, (Role::Dependant, autoscaler)]
    );
    let (_, after) = of(&proxy(&rules));
    assert_eq!(
        after,
        [
            (Role::Shared, Resource::Namespace),
            (Role::Primary, Resource::Deployment),
            (Role::Dependant, Resource::Service),
            (Role::Dependant, Resource::PodDisruptionBudget),
            (Role::Dependant, Resource::Service),
            (Role::Dependant, Resource::CiliumNetworkPolicy),
        ]
    );
}

/// D18, D38b.
#[test]
fn what_hangs_on_a_workload_is_left_out_only_where_its_kind_may_be_lacking() {
    let policy = BTreeSet::from([Resource::CiliumNetworkPolicy]);
    let away = Unseen {
        missing: policy.clone(),
        ..Unseen::default()
    };
    let forbidden = Unseen {
        unknown: policy,
        ..Unseen::default()
    };
    for is_cilium_required in [true, false] {
        let rules = Rules {
            is_cilium_required,
            ..Rules::default()
        };
        let desired = proxy(&rules);
        let owner = live(&desired.render(&rules, None));
        let count = |unseen: &Unseen| {
            let plan = Plan {
                desired: &desired,
                rules: &rules,
                unseen,
            };
            (plan.dependants(&owner).len(), plan.blocked_by().is_some())
        };
        assert_eq!(count(&Unseen::default()), (4, false));
        let expected = if is_cilium_required { 4 } else { 3 };
        assert_eq!(count(&away), (expected, false));
        assert_eq!(count(&forbidden), (expected, is_cilium_required));
    }
}

/// What may be left of an earlier state goes only if it is krane's, of this workload, and free.
#[test]
fn only_what_hangs_on_the_live_workload_goes_and_not_while_it_is_held() {
    let rules = Rules::default();
    let scaled = workload(true);
    let owner = live(&scaled.render(&rules, None));
    let unseen = Unseen::default();
    let plan = Plan {
        desired: &scaled,
        rules: &rules,
        unseen: &unseen,
    };
    let rendered = plan.dependants(&owner).remove(0);
    let found = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut json = applied_json(&rendered, "uid-2", 9);
        edit(&mut json);
        LiveObject::from_json(Resource::HorizontalPodAutoscaler, json)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let verdict = |found: &LiveObject| leftover(Some(found), Some(&owner), NOW);
    assert_eq!(verdict(&found(&|_| {})), Leftover::Goes);
    let held = found(&|json| {
        json["metadata"]["annotations"] =
            json!({ labels::HOLD_ANNOTATION: "2026-01-31T13:00:00Z" });
    });
    assert_eq!(verdict(&held), Leftover::Held(NOW + 3_600));
    let edits: [&dyn Fn(&mut serde_json::Value); 3] = [
        &|json| json["metadata"]["labels"] = json!({}),
        &|json| json["metadata"]["ownerReferences"][0]["uid"] = json!("uid-of-a-former-one"),
        &|json| json["metadata"]["deletionTimestamp"] = json!("2026-01-31T11:59:00Z"),
    ];
    for edit in edits {
        assert_eq!(verdict(&found(edit)), Leftover::Stays);
    }
    assert_eq!(leftover(None, Some(&owner), NOW), Leftover::Stays);
    assert_eq!(leftover(Some(&found(&|_| {})), None, NOW), Leftover::Stays);
}

fn found(reference: &ObjectRef) -> LiveObject {
    let json = json!({
        "metadata": {
            "name": &*reference.name,
            "namespace": &*reference.namespace,
            "uid": "uid-3",
            "resourceVersion": "11",
            "labels": { labels::MANAGED_BY: labels::MANAGER },
        },
    });
    LiveObject::from_json(reference.resource, json).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_delete_state_removes_the_workload_last() {
    let key = ObjectKey::new("tenant-0", "app-0");
    for controller in Controller::ALL {
        let mut view = View::new(controller);
        for part in controller.deleted_first(&key) {
            view.insert(found(&part));
        }
        let parts = deletion(&view, &key);
        let (last, before) = parts.split_last().unwrap_or_else(|| panic!("no part"));
        assert_eq!(
            (last.role, last.reference.resource),
            (Role::Primary, controller.primary())
        );
        assert!(last.live.is_none());
        assert_eq!(before.len(), controller.deleted_first(&key).len());
        assert!(
            before
                .iter()
                .all(|it| it.role == Role::Dependant && it.live.is_some())
        );
        // Whether an object of a kind that may not be listed is there is unknown.
        for part in controller.deleted_first(&key) {
            view.set_unknown(part.resource, true);
        }
        assert_eq!(deletion(&view, &key).len(), 1);
    }
}
