use std::time::Duration;

use krane_actors::chance::Chance;
use krane_actors::store::{Inside, QUIET, ResyncSummary};
use krane_domain::backlog::{Outcome, Trouble};
use krane_domain::desired::{Change, State};
use krane_domain::ids::{ObjectKey, SharedKey, WorkKey};
use krane_domain::kinds::Rules;

use super::*;

const OPENED: Moment = Duration::from_secs(1);
const NOW: Moment = Duration::from_secs(60);

fn pass(failed: usize) -> ResyncSummary {
    ResyncSummary {
        ended_at: NOW,
        took: Duration::from_secs(1),
        asked: 4,
        failed,
        unknown: 0,
    }
}

/// A controller that has seen everything.
fn settled() -> Arc<Store> {
    let rules = Rules::default();
    let store = Store::new(Controller::Deployments, rules, 1 << 20, Chance::new(7));
    store.listed();
    store.inside(|memory| {
        memory.stream.opened_at = Some(OPENED);
        *memory.last_resync = Some(pass(0));
    });
    Arc::new(store)
}

fn of(store: &Arc<Store>, now: Moment) -> Coverage {
    Coverage::of(&[Arc::clone(store)], true, now)
}

fn key(name: &str) -> WorkKey {
    WorkKey::Workload(ObjectKey::new("ws-1", name))
}

fn old() -> ObjectKey {
    ObjectKey::new("ws-1", "old")
}

/// A state of this object comes in, and its lane ends so.
fn ends(store: &Arc<Store>, name: &str, outcome: Outcome) {
    store.inside(|memory| {
        let state = State {
            key: ObjectKey::new("ws-1", name),
            version: 1,
            change: Ok(Change::Delete),
            size: 1,
        };
        memory.backlog.receive(state, OPENED);
        memory.backlog.next_for(1, OPENED).unwrap();
        memory.backlog.finish(&key(name), outcome, OPENED, 0.5);
    });
}

#[test]
fn a_controller_that_has_seen_everything_has_nothing_left() {
    assert_eq!(of(&settled(), NOW), Coverage::default());
}

#[test]
fn what_was_not_seen_is_said() {
    let said = |change: &dyn Fn(&mut Inside<'_>), now| {
        let store = settled();
        store.inside(change);
        of(&store, now).unsettled
    };
    let cases: [(&str, Vec<String>); 6] = [
        (
            "the cluster was not read",
            said(&|memory| *memory.is_listed = false, NOW),
        ),
        (
            "the stream of states is not open",
            said(&|memory| memory.stream.opened_at = None, NOW),
        ),
        (
            "the stream of states has not been replayed",
            said(&|_| {}, OPENED + QUIET / 2),
        ),
        (
            "the control plane was not asked about every object",
            said(&|memory| *memory.last_resync = None, NOW),
        ),
        (
            "2 of 4 questions had no answer from the control plane",
            said(&|memory| *memory.last_resync = Some(pass(2)), NOW),
        ),
        (
            "1 objects wait to roll their pods",
            said(&|memory| memory.rolls.note(&old(), true), NOW),
        ),
    ];
    for (words, said) in cases {
        assert_eq!(said, [format!("deployments: {words}")]);
    }
}

#[test]
fn an_old_rendering_counts_only_where_it_has_a_turn_and_until_then() {
    let store = settled();
    store.inside(|memory| memory.rolls.note(&old(), true));
    let never = Coverage::of(&[Arc::clone(&store)], false, NOW);
    assert_eq!(never, Coverage::default());
    store.inside(|memory| {
        let next = memory.rolls.next(|_| true, |_| true, [], NOW);
        assert_eq!(next, Some(old()));
        assert!(memory.rolls.take_turn(&old()));
        let done = Outcome::Done {
            live: None,
            wrote: true,
            repaired: None,
        };
        memory.rolls.lane_ended(&old(), &done);
        // Only rehearsed, so that it is found old again.
        memory.rolls.note(&old(), true);
    });
    assert_eq!(of(&store, NOW), Coverage::default());
}

#[test]
fn a_state_on_its_way_is_not_seen_yet() {
    let store = settled();
    store.inside(|memory| {
        let state = State {
            key: ObjectKey::new("ws-1", "a"),
            version: 1,
            change: Ok(Change::Delete),
            size: 1,
        };
        memory.backlog.receive(state, OPENED);
    });
    assert_eq!(
        of(&store, NOW).unsettled,
        ["deployments: 1 objects are on their way"]
    );
}

#[test]
fn what_krane_would_not_get_past_is_named_with_its_reason() {
    let store = settled();
    let trouble = |kind, words: &str| Outcome::Trouble(Trouble::new(kind, words));
    ends(&store, "bad", trouble(TroubleKind::Quarantined, "no image"));
    ends(&store, "kept", trouble(TroubleKind::Held, "on hold"));
    let on = SharedKey::Namespace("ws-1".into());
    ends(&store, "behind", Outcome::Blocked([on].into()));
    store.inside(|memory| {
        let unknown = (0..9).map(|it| ObjectKey::new("ws-1", format!("gone-{it}")));
        memory.brake.judge(unknown.collect(), 9, 10, NOW);
    });
    let coverage = of(&store, NOW);
    assert_eq!(coverage.unsettled, Vec::<String>::new());
    let told = |object: &str| {
        let mut all = coverage.obstacles.iter();
        let found = all.find(|it| it.object == object).unwrap();
        (found.controller, found.state, found.why.clone())
    };
    for (object, state, why) in [
        ("ws-1/bad", "quarantined", "no image"),
        ("ws-1/kept", "held", "on hold"),
        ("ws-1/behind", "blocked", "it waits for namespace ws-1"),
    ] {
        assert_eq!(told(object), ("deployments", state, why.to_owned()));
    }
    assert_eq!(told("ws-1/gone-0").1, "delete_held");
    assert_eq!(coverage.obstacles.len(), 3 + 9);
}

#[test]
fn what_fails_for_a_passing_reason_is_not_seen_yet() {
    let store = settled();
    let trouble = Trouble::new(TroubleKind::Transient, "503");
    ends(&store, "a", Outcome::Trouble(trouble));
    let coverage = of(&store, NOW);
    assert_eq!(
        coverage.unsettled,
        ["deployments: 1 objects are tried again"]
    );
    assert_eq!(coverage.obstacles[0].state, "retrying");
}
