//! Objects that differ only because an earlier krane rendered them (D16).
//!
//! A new version of krane that renders something differently must not rewrite a whole cluster at
//! once: such objects count as in place, and are rewritten one after the other when nothing else is
//! to be done.

use std::collections::BTreeSet;

use crate::drift::Difference;
use crate::ids::WorkKey;
use crate::kinds::{RENDERER, is_from_state};
use crate::labels;
use crate::object::LiveObject;

/// Whether what differs in a live object says only that another krane rendered it.
pub fn is_older_rendering(live: &LiveObject, differences: &[Difference]) -> bool {
    let renderer = live
        .value()
        .pointer("/metadata/annotations")
        .and_then(|annotations| Some(annotations.get(labels::RENDERER_ANNOTATION)? == RENDERER));
    let resource = live.reference.resource;
    renderer != Some(true)
        && !differences
            .iter()
            .any(|difference| is_from_state(resource, difference))
}

/// Which keys wait to be rendered anew, and which may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upgrades {
    waiting: BTreeSet<WorkKey>,
    let_go: BTreeSet<WorkKey>,
    /// Had their turn once; what was only rehearsed waits again.
    tried: BTreeSet<WorkKey>,
}

impl Upgrades {
    /// Whether one object of this key may be rewritten now; if not, it waits from here on. Each
    /// object asks for itself: several may hang together.
    pub fn ask(&mut self, key: WorkKey) -> bool {
        let may = self.let_go.remove(&key);
        if !may {
            self.waiting.insert(key);
        }
        may
    }

    /// Lets the next one go, and one that had no turn yet before those that had.
    pub fn let_next_go(&mut self) -> Option<WorkKey> {
        let untried = self.waiting.difference(&self.tried).next();
        let key = untried.or_else(|| self.waiting.first())?.clone();
        self.waiting.remove(&key);
        self.tried.insert(key.clone());
        self.let_go.insert(key.clone());
        Some(key)
    }

    /// The key is in place, however that came about.
    pub fn done(&mut self, key: &WorkKey) {
        self.let_go.remove(key);
    }

    /// Keys that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Keys that wait and had no turn yet.
    pub fn untried(&self) -> usize {
        self.waiting.difference(&self.tried).count()
    }

    /// Forgets keys of which this is not true.
    pub fn retain(&mut self, is_known: impl Fn(&WorkKey) -> bool) {
        self.waiting.retain(&is_known);
        self.let_go.retain(&is_known);
        self.tried.retain(&is_known);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_older_rendering;
    use crate::drift::{Decision, decide};
    use crate::kinds::deployment::{DeploymentInput, validate};
    use crate::kinds::{Desired, Rules};
    use crate::object::{LiveObject, Resource};
    use crate::testing::{applied_json, minimal_input};

    type Change = fn(&mut Value);

    /// Whether what differs from the live object is its rendering alone.
    fn verdict(input: DeploymentInput, rendered: Change, live: Change) -> bool {
        let desired = validate(minimal_input(), &Rules::default()).expect("valid");
        let mut before = Desired::Deployment(Box::new(desired)).render(&Rules::default(), None);
        rendered(&mut before.body);
        let mut json = applied_json(&before, "u", 1);
        live(&mut json);
        let live = LiveObject::from_json(Resource::ReplicaSet, json).expect("decodes");
        let desired = validate(input, &Rules::default()).expect("valid");
        let wanted = Desired::Deployment(Box::new(desired)).render(&Rules::default(), Some(&live));
        let decision = decide(&wanted, Some(&live), None, 0);
        let Decision::Update { differences, .. } = decision else {
            panic!("{decision:?}");
        };
        is_older_rendering(&live, &differences)
    }

    fn older(body: &mut Value) {
        body["metadata"]["annotations"]["krane.unkey.com/renderer"] = json!("0");
        body["spec"]["minReadySeconds"] = json!(10);
    }

    #[test]
    fn what_an_earlier_krane_rendered_otherwise_is_no_change_of_the_state() {
        assert!(verdict(minimal_input(), older, |_| ()));
        let other_agents: Change = |body| {
            older(body);
            body["metadata"]["annotations"] = json!({ "theirs": "x" });
            body["spec"]["template"]["spec"]["containers"][0]["env"] = json!([]);
        };
        assert!(
            verdict(minimal_input(), other_agents, |_| ()),
            "of no krane"
        );
    }

    #[test]
    fn what_the_state_says_is_its_change_whoever_rendered_it_before() {
        let newer = DeploymentInput {
            image: "nginx:2".to_owned(),
            ..minimal_input()
        };
        assert!(!verdict(newer, older, |_| ()));
        let scaled = DeploymentInput {
            replicas: 5,
            ..minimal_input()
        };
        assert!(!verdict(scaled, older, |_| ()));
    }

    #[test]
    fn a_difference_under_the_present_number_is_drift() {
        let edit: Change = |json| json["spec"]["minReadySeconds"] = json!(10);
        assert!(!verdict(minimal_input(), |_| (), edit));
    }
}
