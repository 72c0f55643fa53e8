//! A process that may write again.

use super::*;

#[test]
fn what_waited_is_ready_at_once_when_it_may_be_written_again() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    let task = backlog.next(at(0)).expect("it is ready");
    let waits = Trouble::new(TroubleKind::Waiting, "standby");
    backlog.finish(&task.key, Outcome::Trouble(waits), at(0), 0.5);
    assert!(backlog.next(at(0)).is_none());
    backlog.retry_waiting(at(0));
    assert_eq!(backlog.next(at(0)).map(|task| task.key), Some(task.key));
}

#[test]
fn after_another_writer_everything_is_wanted_anew_and_shared_objects_are_looked_at() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 7), at(0));
    let task = backlog.next(at(0)).expect("it is ready");
    backlog.finish(&task.key, Outcome::NOTHING_TO_DO, at(0), 0.5);
    let shared = WorkKey::Shared(SharedKey::Namespace("ns".into()));
    backlog.look(&shared, at(0));
    assert_eq!(backlog.cursor(), 7);
    backlog.begin_anew(at(1));
    assert_eq!((backlog.cursor(), backlog.in_flight()), (0, 0));
    assert_eq!(backlog.next(at(1)).map(|task| task.key), Some(shared));
    assert!(backlog.next(at(1)).is_none(), "nothing old is written");
    // What the stream shows then is news, whatever its version was.
    assert_eq!(backlog.receive(wants("a", 7), at(2)), Receipt::Accepted);
    // An answer of a lane of the former term finds nothing to end.
    backlog.finish(&task.key, Outcome::NOTHING_TO_DO, at(3), 0.5);
    assert_eq!(backlog.cursor(), 0);
}

/// A kind can be seen again just while a lane gives up because it cannot (F31).
#[test]
fn what_fails_after_a_retry_was_called_for_is_tried_once_more_at_once() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    let task = backlog.next(at(0)).expect("it is ready");
    backlog.retry_now(None, at(0));
    let misconfigured = || trouble(TroubleKind::Misconfigured);
    backlog.finish(&task.key, misconfigured(), at(0), 0.5);
    assert_eq!(backlog.next(at(0)).as_ref().map(name_of), Some("a".into()));
    backlog.finish(&task.key, misconfigured(), at(0), 0.5);
    assert!(backlog.next(at(0)).is_none(), "once for each call");
}

/// A person may end a backoff, and not the wait that a server asked for (D22a).
#[test]
fn what_a_person_wants_tried_is_ready_at_once_unless_the_server_asked_for_time() {
    let mut backlog = Backlog::default();
    let mut keys = Vec::new();
    for (name, version) in [("a", 1), ("b", 2), ("c", 3)] {
        backlog.receive(wants(name, version), at(0));
        let task = backlog.next(at(0)).expect("it is ready");
        let mut trouble = Trouble::new(TroubleKind::Quarantined, "refused");
        trouble.retry_after = (name == "c").then(|| Duration::from_secs(60));
        backlog.finish(&task.key, Outcome::Trouble(trouble), at(0), 0.5);
        keys.push(task.key);
    }
    assert_eq!(backlog.retry_now(Some(&keys[1]), at(1)), 1);
    assert_eq!(
        backlog.next(at(1)).map(|task| task.key),
        Some(keys[1].clone())
    );
    assert_eq!(
        backlog.retry_now(None, at(1)),
        1,
        "a; b is at work, c has to wait"
    );
    assert_eq!(
        backlog.next(at(1)).map(|task| task.key),
        Some(keys[0].clone())
    );
    assert_eq!(backlog.retry_now(None, at(1)), 0);
    backlog.wake_due(at(61));
    assert_eq!(
        backlog.next(at(61)).map(|task| task.key),
        Some(keys[2].clone())
    );
}

#[test]
fn what_is_blocked_is_tried_with_what_it_is_blocked_on() {
    let mut backlog = Backlog::default();
    backlog.receive(wants("a", 1), at(0));
    let task = backlog.next(at(0)).expect("it is ready");
    let namespace = SharedKey::Namespace("ns".into());
    backlog.finish(
        &task.key,
        Outcome::Blocked([namespace.clone()].into()),
        at(0),
        0.5,
    );
    backlog.look(&WorkKey::Shared(namespace), at(0));
    let shared = backlog.next(at(0)).expect("the namespace");
    let trouble = Trouble::new(TroubleKind::Misconfigured, "forbidden");
    backlog.finish(&shared.key, Outcome::Trouble(trouble), at(0), 0.5);
    assert_eq!(backlog.retry_now(Some(&task.key), at(0)), 1);
    assert_eq!(backlog.next(at(0)).map(|task| task.key), Some(shared.key));
}
