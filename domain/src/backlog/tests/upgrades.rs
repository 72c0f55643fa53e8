//! What only looks older is last in line (D44).

use super::*;

const DEFERRED: Outcome = Outcome::Deferred { wrote: false };

/// So many objects of which a first lane has found that they only look older.
fn deferred(count: u64) -> Backlog {
    let mut backlog = Backlog::default();
    for version in 1..=count {
        backlog.receive(wants(&format!("old{version}"), version), at(0));
        let task = backlog.next(at(0)).expect("it is ready");
        assert!(!task.writes_older);
        backlog.finish(&task.key, DEFERRED, at(0), 0.5);
    }
    backlog
}

#[test]
fn a_state_of_which_something_only_looks_older_is_not_applied() {
    let mut backlog = deferred(1);
    assert_eq!((backlog.cursor(), backlog.deferred()), (0, 1));
    assert_eq!(backlog.bytes(), 0, "the stream does not wait for it");
    let task = backlog.next(at(1)).expect("nothing else waits");
    assert!(task.writes_older && !task.was_settled);
    assert_eq!((backlog.deferred(), backlog.in_flight()), (0, 1));
    backlog.finish(&task.key, DONE, at(1), 0.5);
    assert_eq!((backlog.cursor(), backlog.in_flight()), (1, 0));
    backlog.look(&task.key, at(2));
    assert!(backlog.next(at(2)).expect("a look").writes_older, "drift");
}

#[test]
fn upgrades_have_a_quarter_of_the_lanes_and_one_at_least() {
    for (lanes, most) in [(1, 1), (3, 1), (8, 2), (32, 8)] {
        let mut backlog = deferred(20);
        let mut running = 0;
        while backlog.next_for(lanes, at(0)).is_some() {
            running += 1;
        }
        assert_eq!(running, most, "of {lanes}");
        backlog.receive(wants("live", 100), at(0));
        let next = backlog.next_for(lanes, at(0)).map(|task| name_of(&task));
        let has_room = lanes > most;
        assert_eq!(next.as_deref(), has_room.then_some("live"));
    }
}

/// Not even what waited for long goes before them.
#[test]
fn live_changes_and_repairs_overtake_upgrades_however_long_those_wait() {
    let mut backlog = deferred(20);
    backlog.receive(wants("repaired", 50), at(0));
    let task = backlog.next(at(0)).expect("a change");
    backlog.finish(&task.key, DONE, at(0), 0.5);
    let late = at(0) + 10 * FAIRNESS;
    backlog.look(&work("repaired"), late);
    backlog.receive(wants("live", 100), late);
    backlog.receive(unwants("gone", 99), late);
    let names: Vec<String> = std::iter::from_fn(|| backlog.next_for(24, late))
        .map(|task| name_of(&task))
        .collect();
    assert_eq!(names[..3], ["gone", "repaired", "live"]);
    assert_eq!(names.len(), 3 + 6);
}

/// Otherwise it would wait behind everything that looks older, for it may look so, too.
#[test]
fn a_change_of_what_was_wanted_is_written_whatever_it_looks_like() {
    let mut backlog = deferred(2);
    backlog.receive(wants("old1", 10), at(0));
    let task = backlog.next(at(0)).expect("a change");
    assert_eq!(name_of(&task), "old1");
    assert!(task.writes_older);
    backlog.finish(&task.key, DONE, at(0), 0.5);
    // One that the process sees for the first time, after everything was replayed.
    backlog.receive(wants("new", 11), at(0));
    backlog.mark_change(&key("new"));
    assert!(backlog.next(at(0)).expect("a change").writes_older);
}

#[test]
fn a_look_at_what_waits_in_the_last_line_comes_at_once() {
    let mut backlog = deferred(3);
    backlog.receive(wants("live", 10), at(0));
    assert!(backlog.look(&work("old2"), at(1)));
    assert_eq!(backlog.deferred(), 2);
    let mut next = || {
        backlog
            .next_for(4, at(1))
            .map(|task| (name_of(&task), task.writes_older))
    };
    assert_eq!(next(), Some(("live".to_owned(), false)));
    assert_eq!(
        next(),
        Some(("old2".to_owned(), false)),
        "it is judged anew"
    );
}

/// A shared object is as urgent as whoever needs it.
#[test]
fn a_shared_object_that_only_looks_older_waits_until_somebody_needs_it_written() {
    let namespace = SharedKey::Namespace("ns".into());
    let shared = WorkKey::Shared(namespace.clone());
    let mut backlog = deferred(1);
    backlog.look(&shared, at(0));
    let task = backlog.next(at(0)).expect("a look");
    assert!(!task.writes_older);
    backlog.finish(&shared, DEFERRED, at(0), 0.5);
    assert_eq!(backlog.deferred(), 2);

    backlog.receive(wants("live", 10), at(0));
    backlog.mark_change(&key("live"));
    let task = backlog.next(at(0)).expect("a change");
    let blocked = Outcome::Blocked([namespace.clone()].into());
    backlog.finish(&task.key, blocked, at(0), 0.5);
    assert_eq!(backlog.deferred(), 1, "it has left the last line");
    backlog.look(&shared, at(0));
    let task = backlog.next(at(0)).expect("it is needed");
    assert_eq!((&task.key, task.writes_older), (&shared, true));
    backlog.finish(&shared, DONE, at(0), 0.5);
    backlog.unblock(&namespace, at(0));
    assert_eq!(name_of(&backlog.next(at(0)).expect("it goes on")), "live");
}

#[test]
fn lanes_that_were_lost_leave_room_in_the_quarter() {
    let mut backlog = deferred(8);
    assert!(backlog.next_for(4, at(0)).is_some());
    assert!(backlog.next_for(4, at(0)).is_none());
    backlog.abandon_lanes(at(0));
    assert_eq!(backlog.in_flight(), 0);
    assert!(backlog.next_for(4, at(0)).is_some());
}

/// Somebody may have deleted it meanwhile: a repair does not stand behind all upgrades.
#[test]
fn what_changed_while_its_upgrade_failed_or_was_blocked_is_no_upgrade_any_more() {
    let namespace = SharedKey::Namespace("ns".into());
    let trouble = Trouble::new(TroubleKind::Transient, "the API server is busy");
    for ended in [
        Outcome::Trouble(trouble),
        Outcome::Blocked([namespace.clone()].into()),
    ] {
        let mut backlog = deferred(3);
        let task = backlog.next(at(0)).expect("nothing else waits");
        backlog.finish(&task.key, ended, at(0), 0.5);
        backlog.look(&task.key, at(1));
        backlog.unblock(&namespace, at(2));
        backlog.retry_transient(at(2));
        assert_eq!(backlog.deferred(), 2);
        let next = backlog.next_for(4, at(2)).map(|task| task.key);
        assert_eq!(next, Some(task.key));
    }
    // Or while its upgrade is under way, which then fails.
    let mut backlog = deferred(3);
    let task = backlog.next(at(0)).expect("nothing else waits");
    backlog.look(&task.key, at(1));
    let trouble = Trouble::new(TroubleKind::Transient, "the API server is busy");
    backlog.finish(&task.key, Outcome::Trouble(trouble), at(1), 0.5);
    backlog.retry_transient(at(2));
    let next = backlog.next_for(4, at(2)).map(|task| task.key);
    assert_eq!(next, Some(task.key));
}
