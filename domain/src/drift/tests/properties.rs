use proptest::prelude::*;
use serde_json::Value;

use super::{NOW, decision, in_place, kept, workload};
use crate::drift::{Decision, FuseMemory, decide, own_part};
use crate::ids::SharedKey;
use crate::kinds::{Member, Rules, render_shared};
use crate::testing::valid_input;

/// The same tree, the keys of all objects inserted the other way round.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .rev()
            .map(|(key, value)| (key.clone(), reversed(value)))
            .collect(),
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Applying what was decided leaves nothing to decide.
    #[test]
    fn whatever_is_applied_is_in_place(input in valid_input()) {
        let rendered = workload(input);
        prop_assert_eq!(decision(&rendered, in_place(&rendered)), Decision::InPlace);
    }

    /// What krane owns of an object is what it would have to apply to leave it as it is.
    #[test]
    fn applying_what_is_owned_changes_nothing(input in valid_input()) {
        let mut rendered = workload(input);
        let live = in_place(&rendered);
        let own = own_part(&live, "apps/v1", &["spec", "template"]);
        rendered.body["spec"]["template"] = own.unwrap_or_default();
        prop_assert_eq!(decision(&rendered, live), Decision::InPlace);
        let fields = &rendered.body["spec"]["template"];
        prop_assert!(fields.get("creationTimestamp").is_none() && fields["spec"].get("dnsPolicy").is_none());
    }

    #[test]
    fn a_policy_of_any_members_is_in_place(
        members in prop::collection::vec(("ws_[a-c]", any::<u16>()), 1..100),
    ) {
        let member = |(workspace, port): (String, u16)| Member::isolated(workspace, "env_1", port);
        let members: Vec<Member> = members.into_iter().map(member).collect();
        let namespace = "ns".into();
        let key = SharedKey::IsolationPolicy { namespace, environment: "env_1".into() };
        let rendered = render_shared(&key, &members, &Rules::default());
        let rendered = rendered.unwrap_or_else(|| panic!("there are members"));
        prop_assert_eq!(decision(&rendered, in_place(&rendered)), Decision::InPlace);
    }

    /// Two states are told apart exactly when they render differently.
    #[test]
    fn another_state_is_a_difference(one in valid_input(), other in valid_input()) {
        let wanted = workload(one);
        let mut live = workload(other);
        live.body["metadata"] = wanted.body["metadata"].clone();
        live.body["spec"]["selector"] = wanted.body["spec"]["selector"].clone();
        let is_in_place = decision(&wanted, in_place(&live)) == Decision::InPlace;
        prop_assert_eq!(is_in_place, wanted.body["spec"] == live.body["spec"]);
    }

    #[test]
    fn the_order_of_keys_decides_nothing(one in valid_input(), other in valid_input()) {
        let wanted = workload(one);
        let mut live = workload(other);
        live.body["metadata"] = wanted.body["metadata"].clone();
        let tree = in_place(&live);
        prop_assert_eq!(decision(&wanted, tree.clone()), decision(&wanted, reversed(&tree)));
        let (left, right) = (kept(&wanted, tree.clone()), kept(&wanted, reversed(&tree)));
        prop_assert_eq!(left.fingerprint, right.fingerprint);
    }

    /// An apply that did not take is not repeated, whatever was left.
    #[test]
    fn the_fuse_stops_any_repetition(one in valid_input(), other in valid_input()) {
        let wanted = workload(one);
        let mut live = workload(other);
        live.body["metadata"] = wanted.body["metadata"].clone();
        live.body["spec"]["selector"] = wanted.body["spec"]["selector"].clone();
        let answer = kept(&wanted, in_place(&live));
        let fuse = FuseMemory::after_apply(&wanted, &answer);
        let again = decide(&wanted, Some(&answer), fuse.as_ref(), NOW);
        prop_assert_eq!(again, Decision::InPlace);
    }
}
