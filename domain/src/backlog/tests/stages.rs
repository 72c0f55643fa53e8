//! The times of one version.

use super::{DONE, at, key, trouble, unwants, wants, work};
use crate::backlog::{Backlog, Outcome, Stages, TroubleKind};
use crate::trace::TraceContext;

const IN_PLACE: Outcome = Outcome::Done {
    live: Some(1),
    wrote: false,
    repaired: None,
};

#[test]
fn a_version_is_received_started_applied_and_reported_once_each() {
    let mut backlog = Backlog::default();
    backlog.receive(unwants("a", 7), at(1));
    let task = backlog.next(at(3)).expect("ready");
    assert_eq!((task.waited, task.received_ago), (at(2), Some(at(2))));
    let failed = trouble(TroubleKind::Transient);
    assert_eq!(backlog.finish(&work("a"), failed, at(4), 1.0), None);
    backlog.wake_due(at(9));
    let task = backlog.next(at(10)).expect("retried");
    assert_eq!((task.waited, task.received_ago), (at(1), None));
    assert_eq!(
        backlog.reported(&key("a"), at(10), at(10)),
        None,
        "not yet applied"
    );
    assert_eq!(backlog.finish(&work("a"), DONE, at(12), 0.0), Some(at(9)));
    assert_eq!(
        backlog.reported(&key("a"), at(2), at(13)),
        None,
        "true before it"
    );
    assert_eq!(backlog.reported(&key("a"), at(12), at(15)), Some(at(3)));
    assert_eq!(backlog.reported(&key("a"), at(16), at(17)), None, "once");
    let expected = Stages {
        version: 7,
        received: at(1),
        started: Some(at(3)),
        applied: Some(at(12)),
        reported: Some(at(15)),
        wrote: true,
    };
    assert_eq!(backlog.stages(&key("a")), Some(expected));

    backlog.look(&work("a"), at(20));
    let task = backlog.next(at(20)).expect("looked at again");
    assert_eq!(task.received_ago, None);
    assert_eq!(
        backlog.finish(&work("a"), DONE, at(21), 0.0),
        None,
        "a repair is no apply"
    );
    assert_eq!(backlog.stages(&key("a")), Some(expected));
}

#[test]
fn a_newer_version_has_times_of_its_own() {
    let mut backlog = Backlog::default();
    backlog.receive(unwants("a", 7), at(1));
    backlog.next(at(1)).expect("ready");
    backlog.receive(unwants("a", 8), at(2));
    assert_eq!(
        backlog.finish(&work("a"), DONE, at(3), 0.0),
        None,
        "of the version before"
    );
    assert_eq!(backlog.stages(&key("a")), Some(Stages::received(8, at(2))));
    let task = backlog.next(at(5)).expect("the newer one");
    assert_eq!((task.waited, task.received_ago), (at(2), Some(at(3))));
}

#[test]
fn what_needed_no_write_awaits_no_report_and_a_late_one_tells_of_something_else() {
    for (outcome, reported_at) in [(IN_PLACE, 3), (DONE, 603)] {
        let mut backlog = Backlog::default();
        backlog.receive(unwants("a", 7), at(1));
        backlog.next(at(1)).expect("ready");
        backlog.finish(&work("a"), outcome, at(2), 0.0);
        let reported_at = at(reported_at);
        assert_eq!(backlog.reported(&key("a"), reported_at, reported_at), None);
    }
}

#[test]
fn times_are_kept_as_long_as_the_object() {
    let mut backlog = Backlog::default();
    assert_eq!(backlog.stages(&key("a")), None);
    backlog.receive(unwants("a", 7), at(1));
    backlog.next(at(1)).expect("ready");
    backlog.finish(&work("a"), DONE, at(2), 0.0);
    backlog.forget_gone(at(3));
    assert_eq!(backlog.stages(&key("a")), None);
}

/// As in a workqueue: what waits already is not added again, and a retry is.
#[test]
fn a_key_is_added_when_it_becomes_ready() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    backlog.receive(wants("a", 2), at(0));
    backlog.look(&work("a"), at(0));
    assert_eq!(backlog.adds(), 1);
    backlog.next(at(0)).expect("ready");
    backlog.finish(&work("a"), trouble(TroubleKind::Transient), at(1), 0.0);
    assert_eq!(backlog.adds(), 1);
    backlog.wake_due(at(60));
    assert_eq!(backlog.adds(), 2);
    backlog.begin_anew(at(61));
    assert_eq!(backlog.adds(), 2, "a counter goes on");
}

#[test]
fn a_trace_stays_with_its_version_through_every_attempt() {
    let trace = TraceContext {
        trace_id: [1; 16],
        span_id: [2; 8],
        is_sampled: true,
    };
    let mut backlog = Backlog::default();
    backlog.receive(unwants("a", 7), at(1));
    assert!(!backlog.lacks_trace(&key("a"), 6));
    assert!(backlog.lacks_trace(&key("a"), 7));
    backlog.begin_trace(&key("a"), 6, trace);
    assert_eq!(backlog.trace(&key("a")), None, "of another version");
    backlog.begin_trace(&key("a"), 7, trace);
    for second in [1, 100] {
        backlog.wake_due(at(second));
        let task = backlog.next(at(second)).expect("an attempt");
        assert_eq!(task.trace, Some(trace));
        let failed = trouble(TroubleKind::Quarantined);
        backlog.finish(&work("a"), failed, at(second), 0.0);
    }
    assert_eq!(backlog.trace(&key("a")), Some((7, trace)));
    backlog.receive(unwants("a", 8), at(200));
    assert_eq!(backlog.trace(&key("a")), None);
}
