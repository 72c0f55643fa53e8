use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::{Controller, Moment};
use krane_domain::object::{ObjectRef, Resource};

use super::{BURST, Ledger, MOST, Next, Notice, Reason, WINDOW};

const SECOND: Duration = Duration::from_secs(1);

fn notice(name: &str, reason: Reason) -> Notice {
    Notice {
        subject: name.into(),
        regarding: ObjectRef::new(Resource::ReplicaSet, "ns", name),
        uid: Some("u".into()),
        reason,
        note: "as the test wants it".to_owned(),
    }
}

fn note(ledger: &mut Ledger, notice: &Notice, now: Moment) {
    ledger.note(Some(Controller::Deployments), notice.clone(), now);
}

/// Takes what is next and says that this Event tells it.
fn tell(ledger: &mut Ledger, event: &str, now: Moment) -> Option<Next> {
    let next = ledger.next(now)?;
    ledger.published(&next, event.into(), now);
    Some(next)
}

#[test]
fn the_same_is_said_once_in_a_while_with_its_count() {
    let mut ledger = Ledger::default();
    let failed = notice("a", Reason::ApplyFailed);
    note(&mut ledger, &failed, SECOND);
    let first = tell(&mut ledger, "e1", SECOND).expect("told at once");
    assert_eq!((first.notice, first.again), (failed.clone(), None));
    for second in 2..100 {
        note(&mut ledger, &failed, second * SECOND);
        assert_eq!(ledger.next(second * SECOND), None);
    }
    let second = tell(&mut ledger, "e1", SECOND + WINDOW).expect("without another one");
    assert_eq!(second.again, Some((Arc::from("e1"), 99)));
    assert_eq!(ledger.next(3 * WINDOW), None, "it did not happen again");
    note(&mut ledger, &failed, 3 * WINDOW);
    let third = tell(&mut ledger, "e2", 3 * WINDOW).expect("told");
    assert_eq!(third.again, Some((Arc::from("e1"), 100)));
    note(&mut ledger, &failed, 5 * WINDOW);
    let fourth = ledger.next(5 * WINDOW).expect("told");
    assert_eq!(
        fourth.again,
        Some((Arc::from("e2"), 2)),
        "the first one was gone"
    );
}

#[test]
fn other_words_and_another_object_of_that_name_get_an_event_of_their_own() {
    let mut ledger = Ledger::default();
    let failed = notice("a", Reason::ApplyFailed);
    let worse = Notice {
        note: "worse".to_owned(),
        ..failed.clone()
    };
    let another = Notice {
        uid: Some("v".into()),
        ..worse.clone()
    };
    for (round, notice) in [failed, worse, another].iter().enumerate() {
        let now = WINDOW * u32::try_from(round).expect("few");
        note(&mut ledger, notice, now);
        let next = tell(&mut ledger, &format!("e{round}"), now).expect("told");
        assert_eq!((&next.notice, next.again), (notice, None));
    }
}

#[test]
fn nobody_is_told_late_what_is_true_no_more() {
    let mut ledger = Ledger::default();
    let failed = notice("a", Reason::ApplyFailed);
    note(&mut ledger, &failed, SECOND);
    note(&mut ledger, &notice("a", Reason::PodsCannotStart), SECOND);
    note(&mut ledger, &notice("b", Reason::ApplyFailed), SECOND);
    note(&mut ledger, &notice("a", Reason::Recovered), 2 * SECOND);
    let mut told = Vec::new();
    while let Some(next) = tell(&mut ledger, "e", 3 * SECOND) {
        told.push((next.notice.regarding.name.to_string(), next.notice.reason));
    }
    told.sort();
    let expected = [
        ("a", Reason::Recovered),
        ("a", Reason::PodsCannotStart),
        ("b", Reason::ApplyFailed),
    ];
    assert_eq!(
        told,
        expected.map(|(name, reason)| (name.to_owned(), reason))
    );
}

#[test]
fn a_controller_says_little_at_once_and_takes_nothing_from_another() {
    let mut ledger = Ledger::default();
    for object in 0..100 {
        note(
            &mut ledger,
            &notice(&format!("a{object}"), Reason::ApplyFailed),
            SECOND,
        );
    }
    let mut told = |now| {
        let mut told = 0;
        while tell(&mut ledger, "e", now).is_some() {
            told += 1;
        }
        told
    };
    assert_eq!(told(SECOND), BURST);
    assert_eq!(told(2 * SECOND), 0);
    assert_eq!(told(12 * SECOND), 2, "one in five seconds");
    let other = notice("s", Reason::Quarantined);
    ledger.note(Some(Controller::Sentinels), other.clone(), 12 * SECOND);
    let next = ledger.next(12 * SECOND).expect("told");
    assert_eq!(next.notice, other);
}

#[test]
fn its_memory_is_bounded_and_what_is_told_goes_first() {
    let mut ledger = Ledger::default();
    let first = notice("first", Reason::ApplyFailed);
    note(&mut ledger, &first, SECOND);
    tell(&mut ledger, "e", SECOND).expect("told");
    for object in 0..2 * MOST {
        note(
            &mut ledger,
            &notice(&format!("a{object}"), Reason::ApplyFailed),
            SECOND,
        );
    }
    assert_eq!(ledger.len(), MOST);
    assert_eq!(
        ledger.next(SECOND).expect("told").notice.regarding.name,
        "a0".into()
    );
    note(&mut ledger, &first, 2 * SECOND);
    assert_eq!(ledger.len(), MOST, "and it was forgotten");
}

#[test]
fn what_could_not_be_told_waits_and_is_tried_again_while_it_is_true() {
    let mut ledger = Ledger::default();
    note(&mut ledger, &notice("a", Reason::ApplyFailed), SECOND);
    let next = ledger.next(SECOND).expect("told");
    ledger.failed(&next, SECOND);
    assert_eq!(ledger.next(WINDOW), None);
    assert_eq!(ledger.next(SECOND + WINDOW), Some(next));
    note(&mut ledger, &notice("a", Reason::Recovered), 2 * WINDOW);
    let next = tell(&mut ledger, "e", 2 * WINDOW).expect("told");
    assert_eq!(next.notice.reason, Reason::Recovered);
    assert_eq!(ledger.next(9 * WINDOW), None);
}
