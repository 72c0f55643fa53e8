use std::time::Duration;

use super::{Delivery, Outbox, REFRESH, Sending};
use crate::ids::{Moment, ObjectKey};
use crate::report::{Instance, InstanceStatus, Report};

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn instances(name: &str, ready: bool) -> Report {
    let status = if ready {
        InstanceStatus::Running
    } else {
        InstanceStatus::Pending
    };
    Report::Instances {
        key: key(name),
        instances: vec![Instance {
            pod: "pod".into(),
            address: "10-0-0-1.ns.pod.cluster.local:8080".into(),
            status,
            cpu_millicores: 1,
            memory_mib: 1,
        }],
    }
}

fn gone(name: &str) -> Report {
    Report::Gone {
        key: key(name),
        id: None,
    }
}

const T0: Moment = Duration::ZERO;

/// Sends what is due, and ends the send like this in the same moment.
fn send(outbox: &mut Outbox, delivery: Delivery, now: Moment, jitter: f64) -> Sending {
    let sending = outbox.next(now).expect("due");
    outbox.finish(&sending.id, delivery, now, now, jitter);
    sending
}

fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

#[test]
fn the_latest_report_wins_and_one_is_in_flight_per_object() {
    let mut outbox = Outbox::default();
    outbox.observe(instances("a", false), T0, T0);
    let first = outbox.next(T0).expect("due");
    outbox.observe(instances("a", true), at(1), at(1));
    assert!(outbox.next(at(1)).is_none(), "one in flight per object");
    outbox.finish(&first.id, Delivery::Delivered, at(2), at(2), 0.0);
    let newer = outbox.next(at(2)).expect("the newer report is due");
    assert_eq!((newer.report, newer.since), (instances("a", true), at(1)));
}

/// unkeyed/unkey 8b161adf66, PR #5328 (A36): what never changes is said again all the same.
#[test]
fn what_was_delivered_is_not_sent_again_before_the_refresh() {
    let mut outbox = Outbox::default();
    outbox.observe(instances("a", true), T0, T0);
    send(&mut outbox, Delivery::Delivered, T0, 1.0);
    outbox.observe(instances("a", true), at(5), at(5));
    assert!(outbox.next(at(5)).is_none());
    assert!(
        outbox.next(REFRESH).is_some(),
        "and again after ten minutes"
    );
}

#[test]
fn an_unreachable_control_plane_loses_nothing() {
    let mut outbox = Outbox::default();
    outbox.observe(instances("a", true), T0, T0);
    for attempt in 0..50 {
        let now = at(attempt * 10);
        let Some(sending) = outbox.next(now) else {
            panic!("attempt {attempt}")
        };
        outbox.finish(&sending.id, Delivery::Unreachable, now, now + at(5), 0.5);
        assert_eq!(outbox.undelivered(), 1);
    }
}

#[test]
fn a_refused_report_backs_off_alone_and_is_sent_at_once_when_it_changes() {
    let mut outbox = Outbox::default();
    outbox.observe(instances("a", true), T0, T0);
    for _ in 0..20 {
        let now = outbox.next_due().expect("still due");
        send(&mut outbox, Delivery::Refused, now, 1.0);
    }
    let pause = outbox.next_due().expect("due");
    assert!(pause > at(600), "backed off");
    outbox.observe(instances("a", false), at(700), at(700));
    assert!(outbox.next(at(700)).is_some());
}

/// unkeyed/unkey 8b161adf66, PR #5328 (A37): a recreated workload with the same pods is new.
#[test]
fn a_recreated_object_is_reported_again_after_its_deletion() {
    let mut outbox = Outbox::default();
    for report in [instances("a", true), gone("a"), instances("a", true)] {
        outbox.observe(report.clone(), T0, T0);
        let sent = send(&mut outbox, Delivery::Delivered, T0, 0.0);
        assert_eq!(sent.report, report);
    }
}

#[test]
fn a_deletion_is_reported_once() {
    let mut outbox = Outbox::default();
    outbox.observe(gone("a"), T0, T0);
    send(&mut outbox, Delivery::Delivered, T0, 0.0);
    outbox.observe(gone("a"), at(60), at(60));
    outbox.refresh(|_| at(60));
    assert!(outbox.next(at(10_000)).is_none());
}

/// Whoever notices it: the id of a sentinel that is gone is known from its last report alone.
#[test]
fn a_deletion_is_reported_once_and_with_the_id_that_was_last_told() {
    let mut outbox = Outbox::default();
    let healthy = Report::Health {
        key: key("a"),
        id: "s_1".into(),
        available: 1,
        health: crate::report::Health::Healthy,
        running_image: "i".to_owned(),
    };
    outbox.observe(healthy, T0, T0);
    send(&mut outbox, Delivery::Delivered, T0, 0.0);
    outbox.observe_gone(&key("a"), None, T0);
    let sent = send(&mut outbox, Delivery::Delivered, T0, 0.0);
    assert_eq!(sent.report.id().map(|id| &**id), Some("s_1"));
    outbox.observe_gone(&key("a"), Some("s_1".into()), at(1));
    outbox.observe_gone(&key("a"), None, at(2));
    assert!(outbox.next(at(3)).is_none());
}

#[test]
fn memory_of_deletions_does_not_grow_with_churn() {
    let mut outbox = Outbox::default();
    for round in 0..2_000 {
        let now = at(round * 10);
        let name = format!("d{round}");
        outbox.observe(gone(&name), now, now);
        send(&mut outbox, Delivery::Delivered, now, 0.0);
        outbox.forget_gone(now);
    }
    assert!(
        outbox.entries.len() <= 181,
        "{} remembered",
        outbox.entries.len()
    );
}

#[test]
fn deliveries_lost_with_their_reporter_are_due_again() {
    let mut outbox = Outbox::default();
    outbox.observe(instances("a", true), T0, T0);
    outbox.next(T0).expect("due");
    outbox.abandon(at(1));
    assert_eq!(outbox.in_flight(), 0);
    assert!(outbox.next(at(1)).is_some());
}

/// (F1) A lease is lost and regained while a report is under way: its repetition and the late
/// answer both end.
#[test]
fn a_late_end_of_an_abandoned_send_changes_nothing() {
    let ends = [
        Delivery::Delivered,
        Delivery::Unreachable,
        Delivery::Refused,
    ];
    for late in ends {
        for end in ends {
            let mut outbox = Outbox::default();
            outbox.observe(instances("web", true), T0, T0);
            let lost = outbox.next(T0).expect("due");
            outbox.abandon(at(10));
            let again = outbox.next(at(10)).expect("due again");
            outbox.finish(&lost.id, late, at(20), at(21), 0.5);
            assert!(outbox.is_in_flight(&again.id), "{late:?} of the lost one");
            assert_eq!(outbox.in_flight(), 1);
            outbox.finish(&again.id, end, at(20), at(21), 0.5);
            outbox.finish(&lost.id, late, at(20), at(21), 0.5);
            outbox.finish(&again.id, end, at(20), at(21), 0.5);
            assert_eq!(outbox.in_flight(), 0);
            let due = outbox.next_due().expect("live objects are said again");
            assert!(due > at(20), "{late:?}, then {end:?}");
            outbox.next(due).expect("due");
            assert!(outbox.next(due).is_none(), "{late:?}, then {end:?}");
        }
    }
}

#[test]
fn what_was_told_lags_behind_what_is_wanted_until_it_is_delivered() {
    let mut outbox = Outbox::default();
    assert_eq!(outbox.told("a"), None);
    outbox.observe(instances("a", false), T0, T0);
    let sending = outbox.next(T0).expect("due");
    outbox.finish(&sending.id, Delivery::Delivered, at(1), at(1), 0.5);
    outbox.observe(instances("a", true), at(2), at(2));
    let told = outbox.told("a").expect("known");
    assert_eq!((told.is_delivered, told.since), (false, at(2)));
    assert_eq!(told.delivered_at, Some(at(1)));
    let sending = outbox.next(at(2)).expect("due");
    outbox.finish(&sending.id, Delivery::Refused, at(3), at(3), 0.5);
    assert_eq!(outbox.told("a").expect("known").refusals, 1);
    send(&mut outbox, Delivery::Delivered, at(60), 0.5);
    let told = outbox.told("a").expect("known");
    assert_eq!(
        (told.is_delivered, told.wanted),
        (true, instances("a", true))
    );
}

mod orders;
