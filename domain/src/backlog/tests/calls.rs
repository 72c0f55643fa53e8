//! Calls of the scheduler beside states of the control plane (D32).

use proptest::prelude::*;

use super::{DONE, at, key, trouble, unwants, wants, work};
use crate::backlog::{AnswerReceipt, Backlog, Claim, Receipt, TroubleKind};
use crate::desired::Change;
use crate::ids::WorkKey;
use crate::invalid::Invalid;
use crate::kinds::deployment::validate;
use crate::kinds::{Desired, Rules};
use crate::replay::Age;
use crate::testing::minimal_input;

pub(super) fn apply() -> Change {
    let desired = validate(minimal_input(), &Rules::default());
    let desired = desired.unwrap_or_else(|invalid| panic!("{invalid}"));
    Change::Apply(Desired::Deployment(Box::new(desired)))
}

fn run_all(backlog: &mut Backlog, seconds: u64) -> Vec<WorkKey> {
    std::iter::from_fn(|| {
        let task = backlog.next(at(seconds))?;
        backlog.finish(&task.key, DONE, at(seconds), 0.5);
        Some(task.key)
    })
    .collect()
}

#[test]
fn a_call_moves_no_cursor_and_holds_none_back() {
    let mut backlog = Backlog::default();
    assert!(backlog.call(&key("a"), apply(), 10, at(0)));
    let task = backlog.next(at(0)).expect("a task");
    backlog.receive(unwants("b", 7), at(0));
    backlog.finish(&task.key, trouble(TroubleKind::Quarantined), at(0), 0.5);
    run_all(&mut backlog, 0);
    assert_eq!((backlog.cursor(), backlog.unapplied()), (7, 0));
    assert_eq!(backlog.in_trouble().next().map(|it| it.version), Some(0));
}

#[test]
fn somebody_waits_for_a_call_so_it_goes_before_what_was_replayed() {
    let mut backlog = Backlog::default();
    for version in 1..=5 {
        backlog.receive(wants(&format!("d{version}"), version), at(0));
    }
    backlog.call(&key("called"), apply(), 10, at(0));
    assert_eq!(run_all(&mut backlog, 0).first(), Some(&work("called")));
}

#[test]
fn what_the_control_plane_spoke_of_is_not_the_schedulers_to_change() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("wanted", 1), at(0));
    backlog.receive(unwants("unwanted", 2), at(0));
    run_all(&mut backlog, 0);
    let answer = Err(Invalid::new("image", "of an answer", "none"));
    backlog.answer(&key("answered"), answer, at(0), at(1));
    for name in ["wanted", "unwanted", "answered"] {
        assert_eq!(backlog.claim(&key(name)), Claim::ControlPlane, "{name}");
        assert!(!backlog.call(&key(name), apply(), 10, at(1)), "{name}");
        assert!(
            !backlog.call(&key(name), Change::Delete, 10, at(1)),
            "{name}"
        );
    }
    // As long as it is remembered.
    backlog.forget_gone(at(100));
    assert!(backlog.call(&key("unwanted"), apply(), 10, at(100)));
}

#[test]
fn what_the_control_plane_does_not_know_is_free() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 3), at(0));
    run_all(&mut backlog, 0);
    let receipt = backlog.answer(&key("a"), Ok(Change::Delete), at(1), at(1));
    assert_eq!(receipt, AnswerReceipt::Adopted);
    assert_eq!(backlog.claim(&key("a")), Claim::Nobody);
    assert!(backlog.call(&key("a"), apply(), 10, at(2)));
    // Named again in the version it had (D7).
    assert_eq!(backlog.age(&wants("a", 3)), Age::Newer);
    assert_eq!(backlog.receive(wants("a", 3), at(3)), Receipt::Accepted);
    assert_eq!(backlog.claim(&key("a")), Claim::ControlPlane);
}

#[test]
fn a_state_takes_over_what_a_call_wanted_also_while_its_lane_runs() {
    for state in [wants("a", 9), unwants("a", 9)] {
        let mut backlog = Backlog::default();
        backlog.call(&key("a"), apply(), 10, at(0));
        let task = backlog.next(at(0)).expect("a task");
        assert_eq!(backlog.receive(state.clone(), at(0)), Receipt::Accepted);
        assert!(backlog.next(at(0)).is_none(), "one lane");
        backlog.finish(&task.key, DONE, at(0), 0.5);
        assert_eq!(backlog.cursor(), 8, "the lane of a call applied no state");
        let task = backlog.next(at(0)).expect("the state's turn");
        assert_eq!(task.state.as_deref(), Some(&state));
        backlog.finish(&task.key, DONE, at(0), 0.5);
        assert_eq!(backlog.cursor(), 9);
        assert_eq!(backlog.claim(&key("a")), Claim::ControlPlane);
    }
}

/// A message so broken that only a name can be read from it is no word of the control plane's.
#[test]
fn a_state_without_a_version_takes_nothing_over() {
    let mut backlog = Backlog::default();
    backlog.call(&key("a"), apply(), 10, at(0));
    assert_eq!(backlog.age(&wants("a", 0)), Age::Known);
    assert_eq!(backlog.receive(wants("a", 0), at(0)), Receipt::Stale);
    assert_eq!(backlog.claim(&key("a")), Claim::Scheduler);
}

#[test]
fn no_not_found_deletes_what_a_call_wants() {
    let mut backlog = Backlog::default();
    backlog.call(&key("a"), apply(), 10, at(5));
    for asked_at in [0, 5, 9] {
        let receipt = backlog.answer(&key("a"), Ok(Change::Delete), at(asked_at), at(10));
        assert_eq!(receipt, AnswerReceipt::Dropped, "{asked_at}");
    }
    // An answer that names it is a word of the control plane's, unless it may be older.
    let state = || Err(Invalid::new("image", "of an answer", "none"));
    let receipt = backlog.answer(&key("a"), state(), at(4), at(10));
    assert_eq!(receipt, AnswerReceipt::Dropped);
    let receipt = backlog.answer(&key("a"), state(), at(9), at(10));
    assert_eq!(receipt, AnswerReceipt::Adopted);
    assert_eq!(backlog.claim(&key("a")), Claim::ControlPlane);
}

#[test]
fn what_a_call_deleted_is_forgotten_in_time() {
    let mut backlog = Backlog::default();
    backlog.call(&key("a"), Change::Delete, 10, at(0));
    run_all(&mut backlog, 0);
    assert_eq!(backlog.claim(&key("a")), Claim::Scheduler);
    backlog.forget_gone(at(1));
    assert_eq!(backlog.claim(&key("a")), Claim::Nobody);
    assert_eq!(backlog.bytes(), 0);
}

proptest! {
    /// Calls and states of the same objects in any order, with lanes that end well or badly: the
    /// cursor moves as if no call had been, one lane works on an object, and the last word is the
    /// control plane's wherever it spoke.
    #[test]
    fn calls_and_states_never_get_into_each_others_way(
        steps in prop::collection::vec((0u8..6, 0u8..3, any::<bool>()), 0..150),
    ) {
        let mut backlog = Backlog::default();
        let mut without = Backlog::default();
        let mut version = 0;
        let mut seconds = 0;
        let mut running = Vec::new();
        let mut claimed = std::collections::BTreeSet::new();
        for (step, object, flag) in steps {
            let name = format!("k{object}");
            match step {
                0 => {
                    version += 1;
                    let state = if flag { wants(&name, version) } else { unwants(&name, version) };
                    prop_assert_eq!(backlog.receive(state.clone(), at(seconds)), Receipt::Accepted);
                    prop_assert_eq!(without.receive(state, at(seconds)), Receipt::Accepted);
                    claimed.insert(name);
                }
                1 | 2 => {
                    let change = if flag { apply() } else { Change::Delete };
                    let is_taken = backlog.call(&key(&name), change, 10, at(seconds));
                    prop_assert_eq!(is_taken, !claimed.contains(&name));
                }
                3 => if let Some(task) = backlog.next(at(seconds)) {
                    prop_assert!(!running.contains(&task.key), "two lanes");
                    running.push(task.key);
                },
                4 => if let Some(ended) = running.pop() {
                    let outcome = if flag { DONE } else { trouble(TroubleKind::Transient) };
                    backlog.finish(&ended, outcome, at(seconds), 0.5);
                },
                _ => {
                    seconds += 7;
                    backlog.wake_due(at(seconds));
                }
            }
            prop_assert!(backlog.cursor() <= version);
        }
        for ended in running {
            backlog.finish(&ended, DONE, at(seconds), 0.5);
        }
        for _ in 0..4 {
            seconds += 700;
            for backlog in [&mut backlog, &mut without] {
                backlog.wake_due(at(seconds));
                run_all(backlog, seconds);
            }
        }
        prop_assert_eq!(backlog.cursor(), without.cursor());
        prop_assert_eq!((backlog.bytes(), backlog.in_flight(), backlog.unapplied()), (0, 0, 0));
        for name in claimed {
            prop_assert_eq!(backlog.claim(&key(&name)), Claim::ControlPlane);
            prop_assert_eq!(backlog.state(&key(&name)), without.state(&key(&name)));
        }
    }
}
