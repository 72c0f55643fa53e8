//! Keys whose calls take long, and the others (F32, D49).

use super::*;

const LANES: usize = 8;

/// All of these keys had a lane, and a call of this length in it.
fn had_calls_of(backlog: &mut Backlog, names: &[&str], took: Duration) {
    // Newer than all others: they would always go first.
    for (version, name) in (100..).zip(names) {
        backlog.receive(wants(name, version), at(0));
    }
    while let Some(task) = backlog.next(at(0)) {
        backlog.note_longest_call(&task.key, took);
        backlog.finish(&task.key, trouble(TroubleKind::Transient), at(0), 1.0);
    }
    backlog.wake_due(at(1));
}

fn begun(backlog: &mut Backlog) -> Vec<String> {
    let next = || Some(name_of(&backlog.next_for(LANES, at(1))?));
    std::iter::from_fn(next).collect()
}

const SLOW: [&str; 9] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];

#[test]
fn slow_keys_hold_a_quarter_of_the_lanes_while_others_wait() {
    let mut backlog = Backlog::default();
    had_calls_of(&mut backlog, &SLOW, Duration::from_secs(6));
    for version in 0..20 {
        backlog.receive(wants(&format!("q{version}"), 1 + version), at(1));
    }
    let mut quick = 0;
    // Lanes of slow keys never end here, those of the others at once.
    while quick < 20 {
        let task = backlog.next_for(LANES, at(40)).expect("a lane");
        if name_of(&task).starts_with('q') {
            quick += 1;
            backlog.finish(&task.key, DONE, at(40), 0.0);
        }
        assert!(backlog.in_flight() <= LANES / 4, "after {quick}");
    }
}

#[test]
fn slow_keys_hold_all_lanes_while_nothing_else_waits() {
    let mut backlog = Backlog::default();
    had_calls_of(&mut backlog, &SLOW, Duration::from_secs(6));
    assert_eq!(begun(&mut backlog).len(), LANES);
    assert_eq!(backlog.in_flight(), LANES);
}

#[test]
fn a_key_is_slow_until_its_calls_are_quick_again() {
    let mut backlog = Backlog::default();
    had_calls_of(&mut backlog, &SLOW, Duration::from_secs(6));
    for _ in 0..2 {
        let task = backlog.next_for(LANES, at(1)).expect("a lane");
        backlog.note_longest_call(&task.key, SLOW_CALL);
        backlog.finish(&task.key, trouble(TroubleKind::Transient), at(1), 0.0);
    }
    backlog.wake_due(at(10));
    backlog.receive(wants("quick", 1), at(10));
    let first: BTreeSet<String> = begun(&mut backlog).into_iter().take(5).collect();
    // Two whose calls are quick again and the new one, beside a quarter of the lanes.
    assert!(
        ["s9", "s8", "quick"]
            .iter()
            .all(|name| first.contains(*name)),
        "{first:?}"
    );
}

/// What the Scheduler API may not have does not wait in the way of what could go on.
#[test]
fn lanes_are_not_kept_free_for_calls_that_may_not_have_them() {
    let mut backlog = Backlog::default();
    had_calls_of(&mut backlog, &SLOW, Duration::from_secs(6));
    for number in 0..20 {
        backlog.call(&key(&format!("c{number}")), Change::Delete, 10, at(1));
    }
    let begun = begun(&mut backlog);
    assert_eq!(begun.len(), LANES);
    let called = begun.iter().filter(|name| name.starts_with('c')).count();
    assert_eq!(called, LANES - LANES / 4);
}

/// A lane that was lost with its reconciler no longer counts.
#[test]
fn lost_lanes_of_slow_keys_hold_nothing() {
    let mut backlog = Backlog::default();
    had_calls_of(&mut backlog, &SLOW, Duration::from_secs(6));
    begun(&mut backlog);
    backlog.abandon_lanes(at(1));
    assert_eq!(backlog.in_flight(), 0);
    backlog.receive(wants("quick", 99), at(1));
    assert_eq!(begun(&mut backlog).len(), LANES);
}
