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
