use std::collections::BTreeSet;
use std::time::Duration;

use super::{
    AnswerReceipt, Backlog, FAIRNESS, Outcome, Receipt, SLOW_CALL, Task, Trouble, TroubleKind,
};
use crate::desired::{Change, State};
use crate::ids::{Moment, ObjectKey, SharedKey, WorkKey};
use crate::invalid::Invalid;
use crate::replay::Age;

mod calls;
mod property;
mod slow;
mod stages;
mod terms;
mod turns;
mod upgrades;

const DONE: Outcome = Outcome::Done {
    live: Some(1),
    wrote: true,
    repaired: None,
};

impl Backlog {
    /// The next work, with any number of lanes.
    pub(super) fn next(&mut self, now: Moment) -> Option<Task> {
        self.next_for(usize::MAX, now)
    }
}

fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn work(name: &str) -> WorkKey {
    WorkKey::Workload(key(name))
}

/// A state that wants something; its content is told apart by its version.
fn wants(name: &str, version: u64) -> State {
    let change = Err(Invalid::new("image", format!("version {version}"), "none"));
    State {
        key: key(name),
        version,
        change,
        size: 10,
    }
}

fn unwants(name: &str, version: u64) -> State {
    State {
        change: Ok(Change::Delete),
        ..wants(name, version)
    }
}

fn name_of(task: &Task) -> String {
    match &task.key {
        WorkKey::Workload(key) => key.name.to_string(),
        WorkKey::Shared(shared) => shared.to_string(),
    }
}

fn trouble(kind: TroubleKind) -> Outcome {
    Outcome::Trouble(Trouble::new(kind, "as the test wants it"))
}

/// It was taken for unknown, and then refused as stale: nobody ever adopted it.
#[test]
fn what_was_forgotten_is_older_than_known_in_a_lower_version_and_news_in_the_version_it_had() {
    let mut backlog = Backlog::default();
    assert_eq!(backlog.age(&wants("a", 1)), Age::Newer);
    backlog.receive(wants("a", 7), at(0));
    let receipt = backlog.answer(&key("a"), Ok(Change::Delete), at(5), at(6));
    assert_eq!(receipt, AnswerReceipt::Adopted);
    assert_eq!(backlog.age(&wants("a", 6)), Age::Older);
    assert_eq!(backlog.age(&wants("a", 7)), Age::Newer);
}

/// After a restore the control plane gives its numbers a second time. What was deleted under such
/// a number is asked about by nobody, and was never wanted again.
#[test]
fn another_state_under_a_known_version_is_doubtful_unless_an_answer_made_the_difference() {
    let mut backlog = Backlog::default();
    backlog.receive(unwants("a", 7), at(0));
    assert_eq!(backlog.age(&unwants("a", 7)), Age::Known);
    assert_eq!(backlog.age(&wants("a", 7)), Age::Older);
    backlog.receive(unwants("b", 8), at(0));
    backlog.answer(&key("b"), wants("b", 8).change, at(5), at(6));
    assert_eq!(backlog.age(&unwants("b", 8)), Age::Known);
    backlog.receive(unwants("b", 9), at(7));
    assert_eq!(backlog.age(&wants("b", 9)), Age::Older);
}

/// Enough bad states would stop the stream for good if they filled the backlog.
#[test]
fn states_that_no_waiting_helps_do_not_fill_the_backlog() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("invalid", 1), at(0));
    assert_eq!(backlog.bytes(), 0);
    backlog.receive(unwants("refused", 2), at(0));
    assert_eq!(backlog.bytes(), 10);
    for (kind, bytes) in [
        (TroubleKind::Transient, 10),
        (TroubleKind::Quarantined, 0),
        (TroubleKind::Transient, 10),
        (TroubleKind::Misconfigured, 0),
        (TroubleKind::Waiting, 0),
        (TroubleKind::Held, 0),
    ] {
        backlog.wake_due(at(100_000));
        while let Some(task) = backlog.next(at(100_000)) {
            backlog.finish(&task.key, trouble(kind), at(0), 0.0);
        }
        assert_eq!(backlog.bytes(), bytes, "{kind:?}");
    }
    backlog.receive(unwants("refused", 3), at(0));
    assert_eq!(backlog.bytes(), 10, "a newer state waits its turn");
    while let Some(task) = backlog.next(at(0)) {
        backlog.receive(unwants("refused", 4), at(0));
        backlog.finish(&task.key, DONE, at(0), 0.0);
        backlog.wake_due(at(0));
        if backlog.bytes() == 0 {
            return;
        }
    }
    panic!("{} bytes are left", backlog.bytes());
}

/// D3: garbage with a version at the end of the numbers would leave nothing to be heard.
#[test]
fn a_version_out_of_reach_in_a_bad_message_moves_no_cursor() {
    let mut backlog = Backlog::default();
    backlog.pass(u64::MAX);
    assert_eq!((backlog.cursor(), backlog.highest()), (0, 0));
    backlog.pass(7);
    backlog.pass(7 + (1 << 33));
    assert_eq!((backlog.cursor(), backlog.highest()), (7, 7));
    // Bad states that name their object: they hold the cursor, and a real version ends that.
    assert_eq!(
        backlog.receive(wants("bad", u64::MAX), at(0)),
        Receipt::Accepted
    );
    assert_eq!((backlog.cursor(), backlog.highest()), (7, 7));
    assert_eq!(backlog.receive(unwants("bad", 8), at(0)), Receipt::Accepted);
    let task = backlog.next(at(0)).expect("it is ready");
    backlog.finish(&task.key, DONE, at(0), 0.0);
    assert_eq!(backlog.cursor(), 8);
}

#[test]
fn the_newest_version_goes_first_and_deletes_and_shared_objects_overtake() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("old", 1), at(0));
    backlog.receive(wants("new", 3), at(0));
    backlog.receive(unwants("gone", 2), at(0));
    let shared = SharedKey::Namespace("ns".into());
    backlog.look(&WorkKey::Shared(shared.clone()), at(0));
    let order: Vec<String> =
        std::iter::from_fn(|| backlog.next(at(0)).map(|task| name_of(&task))).collect();
    assert_eq!(order, [shared.to_string().as_str(), "gone", "new", "old"]);
}

#[test]
fn whoever_waited_long_enough_goes_before_all() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("old", 1), at(0));
    let late = FAIRNESS + at(1);
    backlog.receive(wants("new", 2), late);
    assert_eq!(
        backlog.next(late).map(|task| name_of(&task)).as_deref(),
        Some("old")
    );
}

#[test]
fn one_key_is_never_in_two_lanes() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    assert!(backlog.next(at(0)).is_some());
    backlog.receive(wants("a", 2), at(0));
    backlog.look(&work("a"), at(0));
    assert!(backlog.next(at(0)).is_none());
    backlog.finish(&work("a"), DONE, at(1), 0.0);
    let task = backlog.next(at(1)).expect("the newer state waits");
    assert_eq!(task.state.map(|state| state.version), Some(2));
}

#[test]
fn trouble_of_a_replaced_state_does_not_hold_up_its_successor() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    backlog.next(at(0));
    backlog.receive(wants("a", 2), at(0));
    backlog.finish(&work("a"), trouble(TroubleKind::Quarantined), at(1), 0.0);
    assert!(backlog.next(at(1)).is_some(), "at once");
    assert_eq!(backlog.in_trouble().count(), 0);
}

#[test]
fn retries_grow_are_capped_and_end_with_a_newer_state() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        backlog.wake_due(now);
        backlog.next(now).expect("due");
        backlog.finish(&work("a"), trouble(TroubleKind::Quarantined), now, 1.0);
        let next = backlog.next_timer().expect("a retry");
        pauses.push(next.saturating_sub(now));
        now = next;
    }
    assert!(pauses.is_sorted(), "{pauses:?}");
    assert_eq!(pauses.last(), Some(&at(600)));
    assert_eq!(
        backlog.in_trouble().next().map(|entry| entry.attempts),
        Some(12)
    );
    backlog.receive(wants("a", 2), now);
    assert!(backlog.next(now).is_some());
}

#[test]
fn the_server_is_given_the_time_it_asked_for() {
    let mut wish = Trouble::new(TroubleKind::Transient, "429");
    wish.retry_after = Some(at(17));
    assert_eq!(wish.delay(1, 0.0), at(17));
}

#[test]
fn whatever_failed_for_a_passing_reason_is_tried_at_once_when_the_cluster_is_back() {
    let mut backlog = Backlog::default();
    for (name, kind) in [
        ("a", TroubleKind::Transient),
        ("b", TroubleKind::Quarantined),
    ] {
        backlog.receive(wants(name, 1), at(0));
        backlog.next(at(0));
        backlog.finish(&work(name), trouble(kind), at(0), 1.0);
    }
    backlog.retry_transient(at(0));
    assert_eq!(
        backlog.next(at(0)).map(|task| name_of(&task)).as_deref(),
        Some("a")
    );
    assert!(backlog.next(at(0)).is_none());
}

/// D22a: a watch that works again is no reason to be deaf to `Retry-After`.
#[test]
fn the_wait_a_server_asked_for_is_kept_when_the_cluster_is_back() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    let mut now = at(0);
    // Late attempts wait longer than they were asked to: those are cut short, but not below that.
    for _ in 0..8 {
        backlog.next(now).expect("it is due");
        let mut asked_to_wait = Trouble::new(TroubleKind::Transient, "too many requests");
        asked_to_wait.retry_after = Some(at(2));
        backlog.finish(&work("a"), Outcome::Trouble(asked_to_wait), now, 1.0);
        backlog.retry_transient(now + at(1));
        assert!(backlog.next(now + at(1)).is_none());
        assert_eq!(backlog.next_timer(), Some(now + at(2)));
        now += at(2);
        backlog.wake_due(now);
    }
}

#[test]
fn a_blocked_key_waits_for_all_it_needs() {
    let mut backlog = Backlog::default();
    let needs = [
        SharedKey::Namespace("ns".into()),
        SharedKey::PullSecret("ns".into()),
    ];
    backlog.receive(wants("a", 1), at(0));
    backlog.next(at(0));
    backlog.finish(
        &work("a"),
        Outcome::Blocked(needs.clone().into()),
        at(0),
        0.0,
    );
    backlog.unblock(&needs[0], at(1));
    assert!(backlog.next(at(1)).is_none());
    backlog.unblock(&needs[1], at(2));
    assert!(backlog.next(at(2)).is_some());
}

#[test]
fn views_that_disagree_about_a_shared_object_make_no_hot_loop() {
    let mut backlog = Backlog::default();
    let need = SharedKey::Namespace("ns".into());
    backlog.receive(wants("a", 1), at(0));
    let mut rounds = 0;
    while backlog.next(at(0)).is_some() {
        rounds += 1;
        let blocked = Outcome::Blocked(BTreeSet::from([need.clone()]));
        backlog.finish(&work("a"), blocked, at(0), 0.0);
        backlog.unblock(&need, at(0));
        assert!(rounds < 20);
    }
    assert!(backlog.next_timer().is_some(), "tried again later");
}

#[test]
fn an_answer_older_than_the_stream_is_dropped() {
    let mut backlog = Backlog::default();
    backlog.receive(unwants("a", 11), at(5));
    let change = wants("a", 0).change;
    assert_eq!(
        backlog.answer(&key("a"), change.clone(), at(4), at(8)),
        AnswerReceipt::Dropped
    );
    assert_eq!(
        backlog.answer(&key("a"), change.clone(), at(6), at(8)),
        AnswerReceipt::Adopted
    );
    assert_eq!(
        backlog.answer(&key("a"), change, at(9), at(9)),
        AnswerReceipt::Unchanged
    );
}

fn repairs_of(edits: impl Iterator<Item = u64>) -> usize {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    backlog.next(at(0));
    backlog.finish(&work("a"), DONE, at(0), 0.0);
    let mut repairs = 0;
    for (second, edit) in edits.enumerate() {
        let now = at(second as u64);
        backlog.wake_due(now);
        backlog.look(&work("a"), now);
        if backlog.next(now).is_some() {
            repairs += 1;
            let repaired = Outcome::Done {
                live: Some(1),
                wrote: true,
                repaired: Some(edit),
            };
            backlog.finish(&work("a"), repaired, now, 0.0);
        }
    }
    repairs
}

#[test]
fn the_same_edit_again_and_again_is_undone_ever_more_rarely() {
    let repairs = repairs_of(std::iter::repeat_n(7, 600));
    assert!((6..20).contains(&repairs), "{repairs} in ten minutes");
}

#[test]
fn edits_that_differ_are_all_undone_at_once() {
    assert_eq!(repairs_of(0..100), 100);
}

#[test]
fn a_deleted_object_is_remembered_long_enough_and_not_for_ever() {
    let mut backlog = Backlog::default();
    for round in 0..1_000u64 {
        let now = at(round * 10);
        let name = format!("d{round}");
        backlog.receive(unwants(&name, round + 1), now);
        backlog.next(now);
        backlog.finish(&work(&name), Outcome::NOTHING_TO_DO, now, 0.0);
        backlog.forget_gone(now.saturating_sub(at(1200)));
    }
    assert_eq!(
        backlog.receive(wants("d990", 5), at(10_000)),
        Receipt::Stale
    );
    assert!(backlog.states().count() <= 122);
}

/// D7: what went on `not_found` comes back when the control plane names it again, in a replay with
/// the version it had.
#[test]
fn an_object_deleted_because_it_was_unknown_is_wanted_again_when_it_is_named() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 7), at(0));
    backlog.next(at(0));
    backlog.finish(&work("a"), DONE, at(1), 0.0);
    let unknown = backlog.answer(&key("a"), Ok(Change::Delete), at(5), at(6));
    assert_eq!(unknown, AnswerReceipt::Adopted);
    backlog.next(at(6));
    backlog.finish(&work("a"), Outcome::NOTHING_TO_DO, at(7), 0.0);
    assert_eq!(backlog.receive(wants("a", 7), at(600)), Receipt::Accepted);
    let task = backlog.next(at(600)).expect("it is wanted");
    backlog.finish(&task.key, DONE, at(601), 0.0);
    assert_eq!((backlog.cursor(), backlog.unapplied()), (7, 0));
}

#[test]
fn shared_objects_that_nobody_needs_are_forgotten() {
    let mut backlog = Backlog::default();
    let shared = |name: &str| SharedKey::Namespace(name.into());
    for name in ["needed", "unneeded", "ready"] {
        backlog.look(&WorkKey::Shared(shared(name)), at(0));
    }
    for name in ["needed", "unneeded"] {
        let key = WorkKey::Shared(shared(name));
        while backlog.next(at(0)).is_some() {}
        backlog.finish(&key, DONE, at(0), 0.0);
    }
    backlog.look(&WorkKey::Shared(shared("ready")), at(0));
    backlog.retain_shared(|key| *key == shared("needed"));
    let known = |name| backlog.settled(&WorkKey::Shared(shared(name))).is_some();
    assert!(known("needed") && !known("unneeded"));
}

#[test]
fn lanes_lost_with_their_reconciler_are_worked_on_again() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    backlog.next(at(0));
    backlog.abandon_lanes(at(1));
    assert_eq!(backlog.in_flight(), 0);
    assert_eq!(backlog.cursor(), 0);
    assert!(backlog.next(at(1)).is_some());
}
