//! What differs only because an earlier krane or another agent rendered it (D44).
//!
//! It is written like everything else, and last in line: a new version of krane that renders
//! something differently must not hold up what the control plane wants meanwhile. One thing is not
//! written before its turn: the pod template of a Deployment, for its pods would roll. Of those one
//! is let go at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::backlog::Outcome;
use crate::drift::{self, Difference};
use crate::ids::{Moment, ObjectKey};
use crate::kinds::{RENDERER, is_from_state};
use crate::labels;
use crate::object::{LiveObject, Resource};

/// Whether what differs in a live object seems to say only that another krane rendered it. That is
/// a guess, for a field may be there or not for either reason: it decides what goes first, never
/// what is written.
pub fn is_older_rendering(live: &LiveObject, differences: &[Difference]) -> bool {
    let renderer = live
        .value()
        .pointer("/metadata/annotations")
        .and_then(|annotations| Some(annotations.get(labels::RENDERER_ANNOTATION)? == RENDERER));
    let resource = live.reference.resource;
    // Of a template that differs in form alone nothing is left to differ: it is kept.
    let is_content = |difference: &Difference| {
        is_from_state(resource, difference)
            || resource == Resource::Deployment && difference.path.starts_with("spec.template")
    };
    renderer != Some(true)
        && !differences.iter().any(is_content)
        && drift::owners_of(differences, live).is_empty()
}

/// After a start nobody knows which workload was let go last. One that was, and is not available by
/// then, has exceeded the progress deadline that Deployments have by default.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// Workloads whose pod template waits for its turn, because all of its pods roll with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rolls {
    waiting: BTreeSet<ObjectKey>,
    turn: Option<Turn>,
    /// Had its turn, and may not be available yet.
    last: Option<ObjectKey>,
    /// When the first turn was asked for.
    asked_at: Option<Moment>,
    /// Had a turn once; what was only rehearsed waits again.
    tried: BTreeSet<ObjectKey>,
}

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Turn {
    key: ObjectKey,
    /// Whether a lane has taken it.
    is_taken: bool,
}

impl Rolls {
    /// Whether the template of this workload was kept as it runs when it was last looked at.
    pub fn note(&mut self, key: &ObjectKey, is_kept: bool) {
        if is_kept {
            self.waiting.insert(key.clone());
        } else {
            self.waiting.remove(key);
        }
    }

    /// A lane begins to work on this workload: whether it may roll.
    pub fn take_turn(&mut self, key: &ObjectKey) -> bool {
        let turn = self.turn.as_mut().filter(|turn| turn.key == *key);
        turn.is_some_and(|turn| {
            turn.is_taken = true;
            true
        })
    }

    /// The lane of this workload ended. One that did not get there gives its turn to the next, also
    /// when its lane did not come as far as taking it: no lane may look at it soon.
    pub fn lane_ended(&mut self, key: &ObjectKey, outcome: &Outcome) {
        match outcome {
            Outcome::Done { .. } => self.end_turn(key, true),
            Outcome::Deferred { .. } => self.end_turn(key, false),
            Outcome::Blocked(_) | Outcome::Trouble(_) => self.give_back(key),
        }
    }

    fn end_turn(&mut self, key: &ObjectKey, is_done: bool) {
        let is_over = |turn: &mut Turn| turn.key == *key && turn.is_taken;
        if let Some(turn) = self.turn.take_if(is_over)
            && is_done
        {
            self.last = Some(turn.key);
        }
    }

    /// No lane will look at this workload now: its turn goes to the next.
    pub fn give_back(&mut self, key: &ObjectKey) {
        self.turn.take_if(|turn| turn.key == *key);
    }

    /// Whose turn it is next of those in no trouble, if it is anybody's: the one before is
    /// available, or gone. One that had no turn yet goes first.
    pub fn next(
        &mut self,
        is_well: impl Fn(&ObjectKey) -> bool,
        is_rolled_out: impl Fn(&ObjectKey) -> bool,
        others: impl IntoIterator<Item = ObjectKey>,
        now: Moment,
    ) -> Option<ObjectKey> {
        let mut untried = self.waiting.difference(&self.tried);
        let untried = untried.find(|key| is_well(key));
        let any = || self.waiting.iter().find(|key| is_well(key));
        let key = untried.or_else(any)?.clone();
        let asked_at = *self.asked_at.get_or_insert(now);
        let is_free = match &self.last {
            Some(last) => is_rolled_out(last),
            None if asked_at + FORGOTTEN <= now => true,
            None => {
                let mut others = others.into_iter();
                others.all(|other| self.waiting.contains(&other) || is_rolled_out(&other))
            }
        };
        if !is_free || self.turn.is_some() {
            return None;
        }
        self.tried.insert(key.clone());
        self.turn = Some(Turn {
            key: key.clone(),
            is_taken: false,
        });
        Some(key)
    }

    /// Whether this workload waits for its turn.
    pub fn waits(&self, key: &ObjectKey) -> bool {
        self.waiting.contains(key)
    }

    /// Workloads that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Workloads that wait and had no turn yet.
    pub fn untried(&self) -> usize {
        self.waiting.difference(&self.tried).count()
    }

    /// Forgets workloads of which this is not true.
    pub fn retain(&mut self, is_known: impl Fn(&ObjectKey) -> bool) {
        self.waiting.retain(&is_known);
        self.tried.retain(&is_known);
        self.turn.take_if(|turn| !is_known(&turn.key));
        self.last.take_if(|last| !is_known(last));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::{FORGOTTEN, Rolls, is_older_rendering};
    use crate::backlog::{Outcome, Trouble, TroubleKind};
    use crate::drift::{Decision, decide};
    use crate::ids::{Moment, ObjectKey};
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

    const NOW: Moment = Duration::from_secs(5);

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("sentinel", name)
    }

    fn waiting(names: &[&str]) -> Rolls {
        let mut rolls = Rolls::default();
        for name in names {
            rolls.note(&key(name), true);
        }
        rolls
    }

    /// Whose turn it is while these are not available.
    fn next(rolls: &mut Rolls, unavailable: &[&str], now: Moment) -> Option<String> {
        let unavailable: BTreeSet<ObjectKey> = unavailable.iter().map(|name| key(name)).collect();
        let is_rolled_out = |key: &ObjectKey| !unavailable.contains(key);
        let next = rolls.next(|_| true, is_rolled_out, unavailable.clone(), now);
        next.map(|key| key.name.to_string())
    }

    /// Its lane rolls it.
    fn rolls_out(rolls: &mut Rolls, name: &str) {
        assert!(rolls.take_turn(&key(name)));
        rolls.note(&key(name), false);
        rolls.end_turn(&key(name), true);
    }

    #[test]
    fn the_next_rolls_when_the_last_is_available_however_long_that_takes() {
        let mut rolls = waiting(&["a", "b", "c"]);
        assert_eq!(next(&mut rolls, &[], NOW).as_deref(), Some("a"));
        assert_eq!(next(&mut rolls, &[], NOW), None, "a has the turn");
        assert!(!rolls.take_turn(&key("b")));
        rolls_out(&mut rolls, "a");
        assert_eq!(rolls.waiting(), 2);
        assert_eq!(next(&mut rolls, &["a"], NOW), None);
        assert_eq!(next(&mut rolls, &["a"], NOW + 9 * FORGOTTEN), None);
        let others = next(&mut rolls, &["x"], NOW);
        assert_eq!(others.as_deref(), Some("b"), "x is none of the rolls");
    }

    #[test]
    fn one_that_does_not_get_there_gives_its_turn_to_the_next() {
        let mut rolls = waiting(&["a", "b"]);
        assert_eq!(next(&mut rolls, &[], NOW).as_deref(), Some("a"));
        // A lane that began before the turn ends.
        rolls.end_turn(&key("a"), true);
        assert_eq!(next(&mut rolls, &[], NOW), None);
        assert!(rolls.take_turn(&key("a")));
        rolls.end_turn(&key("a"), false);
        assert_eq!(next(&mut rolls, &[], NOW).as_deref(), Some("b"));
        rolls_out(&mut rolls, "b");
        assert_eq!(next(&mut rolls, &[], NOW).as_deref(), Some("a"));
        rolls.give_back(&key("a"));
        let is_well = |_: &ObjectKey| false;
        assert_eq!(rolls.next(is_well, |_| true, [], NOW), None, "in trouble");
        assert_eq!(next(&mut rolls, &[], NOW).as_deref(), Some("a"));
        // Its lane never came as far as its template.
        rolls.lane_ended(&key("a"), &Outcome::Blocked(BTreeSet::new()));
        assert_eq!(next(&mut rolls, &[], NOW).as_deref(), Some("a"));
        let trouble = Trouble::new(TroubleKind::Quarantined, "the state is invalid");
        rolls.lane_ended(&key("a"), &Outcome::Trouble(trouble));
        assert!(next(&mut rolls, &[], NOW).is_some(), "the turn is free");
        rolls.give_back(&key("a"));
        rolls.retain(|_| false);
        assert_eq!(
            rolls,
            Rolls {
                asked_at: Some(NOW),
                ..Rolls::default()
            }
        );
    }

    /// Another process may have let one roll, or krane that was restarted.
    #[test]
    fn after_a_start_the_first_waits_for_whatever_rolls_but_not_for_ever() {
        let mut rolls = waiting(&["a", "b"]);
        assert_eq!(next(&mut rolls, &["z"], NOW), None);
        let of_those_that_wait = next(&mut rolls.clone(), &["b"], NOW);
        assert_eq!(of_those_that_wait.as_deref(), Some("a"));
        let late = NOW + FORGOTTEN;
        assert_eq!(next(&mut rolls, &["z"], late).as_deref(), Some("a"));
    }
}
