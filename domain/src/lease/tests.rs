//! The rules one by one, and all of them in a world of delays.

use super::*;

mod property;

const TIMING: Timing = Timing {
    duration: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn elector(name: &str) -> Elector {
    Elector::new(name.into(), TIMING)
}

fn record(version: u64, holder: &str, transitions: u32) -> Record {
    Record {
        uid: "u".into(),
        version: version.to_string().into(),
        holder: (!holder.is_empty()).then(|| holder.into()),
        duration: Some(at(15)),
        transitions,
        acquired_at: Some(1_800_000_000),
    }
}

/// What the Lease is after this move.
fn after(version: u64, made: &Move) -> Record {
    let (Move::Create(claim) | Move::Update { claim, .. }) = made else {
        panic!("{made:?} writes nothing")
    };
    let holder = claim.holder.as_deref().unwrap_or_default();
    record(version, holder, claim.transitions)
}

fn holder(name: &str, sent_at: Moment) -> Elector {
    let mut elector = elector(name);
    elector.read(None, sent_at);
    let made = elector.next(sent_at);
    elector.wrote(after(1, &made), sent_at, sent_at + at(1));
    elector
}

fn until(elector: &Elector) -> Option<Moment> {
    elector.tenure().map(|tenure| tenure.until)
}

#[test]
fn the_window_ends_a_sixth_before_the_lease_or_when_a_renewal_is_overdue() {
    assert_eq!(TIMING.window(), at(10));
    let patient = Timing {
        renew: at(14),
        ..TIMING
    };
    assert_eq!(patient.window(), Duration::from_millis(12_500));
}

#[test]
fn the_first_look_comes_at_once_and_an_absent_lease_is_made() {
    let mut elector = elector("a");
    assert_eq!(elector.next_at(at(0), at(3), 0.5), at(3));
    assert_eq!(elector.next(at(3)), Move::Look);
    elector.read(None, at(3));
    let made = elector.next(at(3));
    assert!(matches!(&made, Move::Create(claim) if claim.is_new && claim.transitions == 0));
    elector.wrote(after(1, &made), at(3), at(5));
    assert_eq!(until(&elector), Some(at(13)), "from before it was sent");
}

#[test]
fn a_holder_renews_at_its_pace_and_each_time_anew_from_the_moment_of_sending() {
    let mut elector = holder("a", at(0));
    assert_eq!(elector.next_at(at(0), at(1), 1.0), at(2));
    let made = elector.next(at(2));
    assert!(matches!(&made, Move::Update { claim, .. } if !claim.is_new));
    elector.wrote(after(2, &made), at(2), at(9));
    assert_eq!(until(&elector), Some(at(12)));
}

#[test]
fn an_answer_that_comes_after_a_long_pause_grants_nothing_any_more() {
    let mut elector = holder("a", at(0));
    let made = elector.next(at(2));
    elector.wrote(after(2, &made), at(2), at(500));
    assert!(until(&elector) < Some(at(500)));
}

#[test]
fn a_candidate_waits_for_the_whole_duration_without_a_change_on_its_own_clock() {
    let mut elector = elector("b");
    elector.read(Some(record(5, "a", 0)), at(100));
    for now in 100..115 {
        assert_eq!(elector.next(at(now)), Move::Look);
        elector.read(Some(record(5, "a", 0)), at(now));
    }
    assert_eq!(elector.next_at(at(114), at(114), 1.0), at(115));
    let made = elector.next(at(115));
    assert!(matches!(&made, Move::Update { claim, .. } if claim.is_new && claim.transitions == 1));
    elector.read(Some(record(6, "a", 0)), at(114));
    assert_eq!(elector.next(at(128)), Move::Look, "it was renewed");
}

/// What the API server does not take it would refuse for ever, and nobody would write any more.
#[test]
fn a_count_of_transitions_at_its_end_begins_anew() {
    let last = i32::MAX.unsigned_abs();
    for (found, claimed) in [(last, 0), (u32::MAX, 0), (last - 1, last)] {
        let mut elector = elector("b");
        elector.read(Some(record(5, "", found)), at(100));
        let made = elector.next(at(100));
        assert!(
            matches!(&made, Move::Update { claim, .. } if claim.transitions == claimed),
            "{found}: {made:?}"
        );
    }
}

/// ±10 s of skew, and far worse: the times in the record are not looked at.
#[test]
fn no_time_of_day_in_the_record_makes_a_candidate_faster_or_slower() {
    for acquired_at in [None, Some(0), Some(1_799_999_990), Some(u64::MAX)] {
        let mut elector = elector("b");
        let record = Record {
            acquired_at,
            ..record(5, "a", 0)
        };
        elector.read(Some(record), at(100));
        assert_eq!(elector.next(at(114)), Move::Look);
        assert!(matches!(elector.next(at(115)), Move::Update { .. }));
    }
}

#[test]
fn a_holder_with_a_longer_lease_is_waited_for_longer_and_a_senseless_one_not_for_ever() {
    let lasting = |duration| {
        let mut elector = elector("b");
        let record = Record {
            duration,
            ..record(5, "a", 0)
        };
        elector.read(Some(record), at(0));
        elector.free_at()
    };
    assert_eq!(lasting(Some(at(60))), Some(at(60)));
    assert_eq!(lasting(Some(at(1))), Some(at(15)));
    assert_eq!(lasting(None), Some(at(15)));
    assert_eq!(lasting(Some(Duration::MAX)), Some(at(3600)));
}

#[test]
fn a_lease_that_was_given_back_is_taken_at_once() {
    let mut first = holder("a", at(0));
    let released = first.release().expect("it holds it");
    assert_eq!(until(&first), None);
    let mut second = elector("b");
    second.read(Some(record(1, "a", 0)), at(3));
    second.read(Some(after(2, &released)), at(5));
    assert_eq!(second.next_at(at(5), at(5), 1.0), at(5));
    assert!(matches!(second.next(at(5)), Move::Update { .. }));
    assert_eq!(second.release(), None, "it is not its own to give");
}

/// Lost update: the renewal took effect, its answer was lost.
#[test]
fn a_lost_answer_grants_nothing_and_costs_a_look() {
    let mut elector = holder("a", at(0));
    elector.write_failed(Failure::Unknown);
    assert_eq!(until(&elector), Some(at(10)), "of the one before");
    assert!(matches!(elector.next(at(4)), Move::Update { .. }));
    elector.write_failed(Failure::Conflict);
    assert_eq!(elector.next(at(4)), Move::Look);
    assert_eq!(elector.next_at(at(4), at(4), 1.0), at(4));
    elector.read(Some(record(2, "a", 0)), at(5));
    assert_eq!(until(&elector), Some(at(10)));
    assert_eq!(elector.next_at(at(5), at(5), 1.0), at(5));
    let made = elector.next(at(5));
    elector.wrote(after(3, &made), at(5), at(6));
    assert_eq!(until(&elector), Some(at(15)));
}

/// The claim took effect, its answer was lost: office begins with the first renewal.
#[test]
fn a_claim_whose_answer_was_lost_is_a_term_of_its_own() {
    let mut elector = holder("a", at(0));
    let before = elector.tenure().map(|tenure| tenure.term.clone());
    elector.read(Some(record(2, "b", 1)), at(20));
    assert_eq!(until(&elector), None);
    elector.read(Some(record(3, "", 1)), at(30));
    assert!(matches!(elector.next(at(30)), Move::Update { .. }));
    elector.write_failed(Failure::Unknown);
    elector.write_failed(Failure::Conflict);
    elector.read(Some(record(4, "a", 2)), at(32));
    assert_eq!(until(&elector), None);
    let made = elector.next(at(32));
    elector.wrote(after(5, &made), at(32), at(33));
    let now = elector.tenure().map(|tenure| tenure.term.clone());
    assert!(now.is_some() && now != before);
}

/// Nobody wrote meanwhile, so that what is known is still true.
#[test]
fn who_renews_its_own_lapsed_lease_goes_on_in_the_same_term() {
    let mut elector = holder("a", at(0));
    let before = elector.tenure().map(|tenure| tenure.term.clone());
    elector.write_failed(Failure::Unknown);
    let made = elector.next(at(40));
    elector.wrote(after(2, &made), at(40), at(41));
    assert_eq!(elector.tenure().map(|tenure| tenure.term.clone()), before);
}

#[test]
fn a_successor_in_the_same_process_keeps_the_tenure_until_it_has_looked() {
    let tenure = holder("a", at(0)).tenure().cloned();
    let mut successor = elector("a").resumed(tenure.clone());
    assert_eq!(until(&successor), Some(at(10)));
    successor.read(Some(record(1, "a", 0)), at(3));
    assert_eq!(successor.tenure(), tenure.as_ref());
    assert_eq!(
        successor.next_at(at(3), at(3), 0.0),
        at(3),
        "it renews at once"
    );
    let mut late = elector("a").resumed(tenure);
    late.read(Some(record(2, "b", 1)), at(3));
    assert_eq!(until(&late), None);
}

#[test]
fn whoever_sees_another_holder_stops_at_once() {
    let mut elector = holder("a", at(0));
    elector.read(Some(record(2, "b", 1)), at(1));
    assert_eq!(until(&elector), None);
}

/// A patch that changes nothing has no new version: no candidate would see it.
#[test]
fn a_renewal_that_changed_nothing_is_none() {
    let mut elector = holder("a", at(0));
    elector.wrote(record(1, "a", 0), at(4), at(5));
    assert_eq!(until(&elector), Some(at(10)));
    assert_eq!(elector.next(at(6)), Move::Look);
}

#[test]
fn after_a_deletion_by_somebody_its_last_holder_is_waited_for() {
    let mut elector = elector("b");
    elector.read(Some(record(5, "a", 0)), at(100));
    elector.read(None, at(110));
    elector.read(None, at(112));
    assert_eq!(elector.next(at(124)), Move::Look);
    assert!(matches!(elector.next(at(125)), Move::Create(_)));
    let mut own = holder("a", at(0));
    own.read(None, at(2));
    assert!(matches!(own.next(at(2)), Move::Create(_)));
    assert_eq!(until(&own), None, "it is not in office without a Lease");
}

#[test]
fn rivals_that_keep_conflicting_keep_their_pace() {
    let mut elector = elector("b");
    elector.read(Some(record(5, "", 0)), at(0));
    for _ in 0..CONFLICTS {
        elector.write_failed(Failure::Conflict);
    }
    assert_eq!(elector.next_at(at(7), at(7), 1.0), at(9));
}

/// Another process may be in its term still, and holds what it wrote for valid (F3).
#[test]
fn a_lease_restored_from_a_backup_that_names_a_former_holder_is_waited_out() {
    let mut former = holder("a", at(0));
    former.read(Some(record(9, "b", 1)), at(30));
    assert_eq!(until(&former), None);
    former.read(Some(record(5, "a", 0)), at(40));
    assert_eq!(former.next(at(41)), Move::Look, "not its own any more");
    assert_eq!(former.release(), None);
    former.read(Some(record(5, "a", 0)), at(54));
    assert_eq!(former.next(at(54)), Move::Look);
    let made = former.next(at(55));
    assert!(matches!(&made, Move::Update { claim, .. } if claim.is_new && claim.transitions == 1));
    former.wrote(after(6, &made), at(55), at(56));
    assert_eq!(until(&former), Some(at(65)));
    former.read(Some(record(7, "a", 1)), at(57));
    assert!(matches!(former.next(at(57)), Move::Update { claim, .. } if !claim.is_new));
}

/// Nobody else can have held it: the answer to its own write was lost.
#[test]
fn a_lease_that_was_won_by_a_write_without_an_answer_is_not_waited_out() {
    let mut winner = elector("a");
    winner.read(Some(record(5, "b", 0)), at(0));
    let made = winner.next(at(15));
    winner.write_failed(Failure::Unknown);
    winner.write_failed(Failure::Unknown);
    winner.read(Some(after(6, &made)), at(18));
    assert!(matches!(winner.next(at(18)), Move::Update { claim, .. } if !claim.is_new));
}

/// Its versions count from there again, so that a former one may come back as another's (F3).
#[test]
fn after_a_restore_the_lease_is_read_before_it_is_written() {
    let mut holder = holder("a", at(0));
    holder.mistrust();
    assert_eq!(holder.next(at(2)), Move::Look);
    assert_eq!(
        until(&holder),
        Some(at(10)),
        "what was granted stays granted"
    );
    holder.read(Some(record(1, "a", 0)), at(2));
    assert!(matches!(holder.next(at(2)), Move::Update { .. }));
}
