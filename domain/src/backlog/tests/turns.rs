//! Who gets the next lane, when control plane and scheduler want much at once (D32).

use super::calls::apply;
use super::*;
use crate::origin::Origin;

/// What a lane of each object comes to first: it needs a namespace of its own.
fn namespace(key: &WorkKey) -> SharedKey {
    SharedKey::Namespace(format!("{key}").replace('/', "-").into())
}

/// Works on one thing after the other, each workload with a namespace that it waits for, until
/// this one is in place. Returns how many lanes that took.
fn lanes_until(backlog: &mut Backlog, wanted: &WorkKey, now: Moment) -> usize {
    let mut in_place = BTreeSet::new();
    for lanes in 1..100_000 {
        let task = backlog.next(now).expect("it is not done yet");
        match &task.key {
            WorkKey::Shared(shared) => {
                in_place.insert(shared.clone());
                backlog.finish(&task.key, DONE, now, 0.5);
                backlog.unblock(shared, now);
            }
            WorkKey::Workload(_) if !in_place.contains(&namespace(&task.key)) => {
                let needed = namespace(&task.key);
                let blocked = Outcome::Blocked([needed.clone()].into());
                backlog.finish(&task.key, blocked, now, 0.5);
                backlog.look(&WorkKey::Shared(needed), now);
            }
            WorkKey::Workload(_) => {
                backlog.finish(&task.key, DONE, now, 0.5);
                if task.key == *wanted {
                    return lanes;
                }
            }
        }
    }
    panic!("{wanted} starves");
}

fn call(backlog: &mut Backlog, name: &str, change: Change, now: Moment) {
    assert!(backlog.call(&key(name), change, 10, now));
}

#[test]
fn calls_go_by_their_arrival_and_not_by_their_name() {
    let mut backlog = Backlog::default();
    for name in ["z", "a", "m", "b"] {
        let change = if name == "m" { Change::Delete } else { apply() };
        call(&mut backlog, name, change, at(0));
    }
    let order: Vec<String> =
        std::iter::from_fn(|| backlog.next(at(0)).map(|task| name_of(&task))).collect();
    assert_eq!(order, ["z", "a", "m", "b"]);
}

/// Who was blocked for a moment does not go to the end of the line.
#[test]
fn a_call_keeps_its_place_while_it_waits_for_what_it_needs() {
    let mut backlog = Backlog::default();
    for number in 0..250 {
        call(&mut backlog, &format!("d{}", 999 - number), apply(), at(0));
    }
    assert_eq!(lanes_until(&mut backlog, &work("d999"), at(0)), 3);
    assert_eq!(lanes_until(&mut backlog, &work("d998"), at(0)), 3);
}

#[test]
fn a_flood_of_calls_leaves_the_control_plane_every_other_lane() {
    for change in [apply(), Change::Delete] {
        for seconds in [0, 20, 40, 400] {
            let mut backlog = Backlog::default();
            for number in 0..250 {
                call(&mut backlog, &format!("a{number}"), change.clone(), at(0));
            }
            backlog.receive(wants("live", 7), at(seconds));
            let lanes = lanes_until(&mut backlog, &work("live"), at(seconds));
            assert!(
                lanes <= 6,
                "{lanes} after {seconds} s, of 3 without the flood"
            );
        }
    }
}

#[test]
fn a_flood_of_states_leaves_calls_every_other_lane() {
    for seconds in [0, 20, 40, 400] {
        let mut backlog = Backlog::default();
        for version in 1..=3_000 {
            let state = if version % 2 == 0 {
                wants(&format!("a{version}"), version)
            } else {
                unwants(&format!("a{version}"), version)
            };
            backlog.receive(state, at(0));
        }
        call(&mut backlog, "called", apply(), at(seconds));
        let lanes = lanes_until(&mut backlog, &work("called"), at(seconds));
        assert!(
            lanes <= 6,
            "{lanes} after {seconds} s, of 3 without the flood"
        );
    }
}

/// A replay that takes longer than [`FAIRNESS`]: all of it has waited long enough then.
#[test]
fn what_waited_long_enough_leaves_every_other_lane_to_what_is_urgent() {
    let mut backlog = Backlog::default();
    for version in 1..=3_000 {
        backlog.receive(wants(&format!("a{version}"), version), at(0));
    }
    let late = FAIRNESS + at(1);
    backlog.receive(wants("live", 3_001), late);
    let mut next = || backlog.next(late).map(|task| task.key);
    assert_eq!(next(), Some(work("a1")));
    assert_eq!(next(), Some(work("live")));
    assert_eq!(next(), Some(work("a10")));
}

#[test]
fn a_call_is_preferred_only_while_somebody_waits_for_it() {
    let mut backlog = Backlog::default();
    for name in ["failing", "left", "later"] {
        call(&mut backlog, name, apply(), at(0));
    }
    let task = backlog.next(at(0)).expect("a task");
    backlog.finish(&task.key, trouble(TroubleKind::Transient), at(0), 0.5);
    backlog.nobody_waits(&key("failing"));
    backlog.nobody_waits(&key("left"));
    backlog.wake_due(at(10));
    let mut next = || backlog.next(at(10)).map(|task| name_of(&task));
    assert_eq!(next().as_deref(), Some("later"));
    let rest = [next(), next()];
    assert!(rest.contains(&Some("left".into())) && rest.contains(&Some("failing".into())));
}

/// A flood of calls whose callers left at once: most of them wait for long, and still nobody else
/// waits for them.
#[test]
fn what_nobody_waits_for_holds_up_neither_calls_nor_states() {
    for (seconds, name) in [0, 20, 40, 400]
        .into_iter()
        .flat_map(|seconds| ["live", "called"].map(|name| (seconds, name)))
    {
        let mut backlog = Backlog::default();
        for number in 0..3_000 {
            let name = format!("a{number}");
            let change = if number % 2 == 0 {
                Change::Delete
            } else {
                apply()
            };
            call(&mut backlog, &name, change, at(0));
            backlog.nobody_waits(&key(&name));
        }
        call(&mut backlog, "called", apply(), at(seconds));
        backlog.receive(wants("live", 7), at(seconds));
        let lanes = lanes_until(&mut backlog, &work(name), at(seconds));
        assert!(lanes <= 9, "{name}: {lanes} after {seconds} s");
    }
}

/// Somebody of the control plane's may come to need what was to be made for a call.
#[test]
fn a_shared_object_has_the_place_of_the_most_urgent_who_waits_for_it() {
    let mut backlog = Backlog::default();
    let needed = SharedKey::Namespace("ns".into());
    let shared = WorkKey::Shared(needed.clone());
    for number in 0..9 {
        call(&mut backlog, &format!("a{number}"), apply(), at(0));
    }
    let block = |backlog: &mut Backlog, name: &str| {
        let blocked = Outcome::Blocked([needed.clone()].into());
        backlog.finish(&work(name), blocked, at(0), 0.5);
        backlog.look(&shared, at(0));
    };
    let next = |backlog: &mut Backlog| backlog.next(at(0)).map(|task| task.key);
    backlog.look_for(&shared, Origin::Scheduler, at(0));
    for name in ["a0", "a1"] {
        assert_eq!(next(&mut backlog), Some(work(name)));
    }
    block(&mut backlog, "a1");
    backlog.receive(wants("live", 7), at(0));
    assert_eq!(next(&mut backlog), Some(work("live")));
    block(&mut backlog, "live");
    backlog.receive(wants("newer", 8), at(0));
    assert_eq!(
        next(&mut backlog),
        Some(shared.clone()),
        "before newer states"
    );
    assert_eq!(next(&mut backlog), Some(work("a2")));
    assert_eq!(next(&mut backlog), Some(work("newer")));
}

/// Calls may take much longer than what the control plane wants, or hang.
#[test]
fn calls_that_hang_leave_lanes_to_the_control_plane() {
    const LANES: usize = 8;
    let mut backlog = Backlog::default();
    for number in 0..50 {
        call(&mut backlog, &format!("a{number}"), apply(), at(0));
    }
    let mut begun = 0;
    while backlog.next_for(LANES, at(0)).is_some() {
        begun += 1;
    }
    assert_eq!(begun, 6);
    for version in 1..=20 {
        backlog.receive(wants(&format!("b{version}"), version), at(0));
    }
    for lane in 0..20 {
        let task = backlog.next_for(LANES, at(0)).expect("a lane is free");
        assert!(task.state.is_some_and(|state| state.version > 0), "{lane}");
        assert!(backlog.in_flight() <= LANES);
        backlog.finish(&task.key, DONE, at(0), 0.5);
    }
}

#[test]
fn lanes_are_shared_evenly_however_many_there_are() {
    for lanes in 1..=9 {
        let mut backlog = Backlog::default();
        for number in 0..50 {
            call(&mut backlog, &format!("a{number}"), apply(), at(0));
        }
        for version in 1..=50 {
            backlog.receive(wants(&format!("b{version}"), version), at(0));
        }
        let (mut running, mut called) = (Vec::new(), 0);
        for _ in 0..50 {
            while let Some(task) = backlog.next_for(lanes, at(0)) {
                called += usize::from(name_of(&task).starts_with('a'));
                running.push(task.key);
            }
            assert_eq!(running.len(), lanes);
            backlog.finish(&running.remove(0), DONE, at(0), 0.5);
        }
        assert!(
            (20..=30).contains(&called),
            "{called} of 50 with {lanes} lanes"
        );
    }
}

/// (F2) A password has changed, and hundreds of pull secrets with it.
#[test]
fn a_renewal_goes_last_and_at_once_when_a_workload_waits_for_it() {
    let secret = |name: &str| SharedKey::PullSecret(name.into());
    let order = |backlog: &mut Backlog, now| -> Vec<String> {
        std::iter::from_fn(|| backlog.next(now).map(|task| name_of(&task))).collect()
    };
    let mut backlog = Backlog::default();
    for name in ["needed", "looked-at", "quiet"] {
        backlog.renew(&secret(name), at(0));
        backlog.renew(&secret(name), at(0));
    }
    backlog.receive(wants("old", 1), at(0));
    backlog.receive(wants("waits", 2), at(0));
    let task = backlog.next(at(0)).expect("the newest");
    let blocked = Outcome::Blocked([secret("needed")].into());
    backlog.finish(&task.key, blocked, at(0), 0.5);
    backlog.look(&WorkKey::Shared(secret("looked-at")), at(0));
    let named = |name: &str| secret(name).to_string();
    let expected = [
        named("looked-at"),
        named("needed"),
        "old".to_owned(),
        named("quiet"),
    ];
    assert_eq!(order(&mut backlog, at(0)), expected);
    // It was renewed, and is like any other.
    let quiet = WorkKey::Shared(secret("quiet"));
    backlog.finish(&quiet, DONE, at(0), 0.5);
    backlog.receive(wants("new", 3), at(1));
    backlog.look(&quiet, at(1));
    assert_eq!(
        order(&mut backlog, at(1)),
        [named("quiet"), "new".to_owned()]
    );
}

/// (F2) Work without end: every other turn is for who has waited long enough.
#[test]
fn renewals_are_not_starved_by_work_without_end() {
    let mut backlog = Backlog::default();
    for number in 0..100 {
        backlog.renew(&SharedKey::PullSecret(format!("ns{number}").into()), at(0));
    }
    let now = FAIRNESS;
    let mut renewed = 0;
    for version in 1..=200 {
        backlog.receive(wants(&format!("d{version}"), version), now);
        let task = backlog.next(now).expect("there is always something");
        renewed += usize::from(matches!(task.key, WorkKey::Shared(_)));
        backlog.finish(&task.key, DONE, now, 0.5);
    }
    assert_eq!(renewed, 100);
}
