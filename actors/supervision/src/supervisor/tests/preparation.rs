//! What children need from outside before they start.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::status::Activity;
use crate::supervisor::{Preparation, Strategy, SupervisorSpec};
use crate::testing::{Rig, escalating, living_below, parking, pause, until};

/// How a preparation goes, in this order; the last one stays.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Ready,
    Missing,
    Hangs,
    Panics,
}

fn prepared(rig: &Rig, outcomes: &'static [Outcome], tries: &Arc<AtomicUsize>) -> SupervisorSpec {
    let tries = Arc::clone(tries);
    let run = Arc::new(
        move || -> futures::future::BoxFuture<'static, Result<(), String>> {
            let at = tries
                .fetch_add(1, Ordering::Relaxed)
                .min(outcomes.len() - 1);
            Box::pin(async move {
                pause(Duration::from_secs(1)).await;
                match outcomes[at] {
                    Outcome::Ready => Ok(()),
                    Outcome::Missing => Err("no answer from the cluster".to_owned()),
                    Outcome::Hangs => std::future::pending().await,
                    Outcome::Panics => panic!("preparing"),
                }
            })
        },
    );
    let children = vec![rig.leaf("root/x/a"), rig.leaf("root/x/b")];
    let x = SupervisorSpec {
        prepare: Some(Preparation {
            run,
            timeout: Duration::from_secs(10),
        }),
        ..escalating("root/x", Strategy::OneForOne, 2, children)
    };
    parking(vec![rig.leaf("root/other"), rig.nest(x, "x")])
}

#[tokio::test(start_paused = true)]
async fn children_start_when_the_preparation_is_done_and_the_status_says_so() {
    let rig = Rig::new();
    let _top = rig
        .start(prepared(&rig, &[Outcome::Ready], &Arc::default()))
        .await;
    until("preparing", || {
        rig.status("root/x").activity == Activity::Preparing
    })
    .await;
    until("the other one does not wait", || rig.is_up("root/other")).await;
    assert_eq!(rig.status("root/x").activity, Activity::Preparing);
    assert!(!rig.address("root/x/a").is_occupied());
    until("up", || rig.is_up("root/x")).await;
    assert_eq!(rig.journal(), ["start other", "start x/a", "start x/b"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_outside_costs_no_budget_and_leaves_nothing_running() {
    const OUTCOMES: [Outcome; 41] = {
        let mut outcomes = [Outcome::Missing; 41];
        outcomes[40] = Outcome::Ready;
        outcomes
    };
    let rig = Rig::new();
    let tries = Arc::new(AtomicUsize::new(0));
    let top = rig.start(prepared(&rig, &OUTCOMES, &tries)).await;
    let mut longest = Duration::ZERO;
    while tries.load(Ordering::Relaxed) < 40 {
        let status = rig.status("root/x");
        assert!(!rig.is_parked("root/x"));
        if let Activity::Restarting { until } = status.activity {
            longest = longest.max(until - status.since);
            assert_eq!(living_below(&top.actor), 2, "the root and the other child");
            assert_eq!(
                status.last_failure.as_ref().map(|it| it.kind),
                Some("preparation")
            );
        }
        pause(Duration::from_millis(10)).await;
    }
    until("up", || rig.is_up("root/x")).await;
    assert!(
        longest > Duration::from_secs(15) && longest <= Duration::from_secs(30),
        "{longest:?}"
    );
    assert_eq!(rig.status("root/x").restarts, 0);
    assert_eq!(rig.journal(), ["start other", "start x/a", "start x/b"]);
}

#[tokio::test(start_paused = true)]
async fn a_preparation_that_hangs_is_missing_too() {
    let rig = Rig::new();
    let outcomes = &[Outcome::Hangs, Outcome::Ready];
    let _top = rig.start(prepared(&rig, outcomes, &Arc::default())).await;
    until("up", || rig.is_up("root/x")).await;
    assert_eq!(rig.last_failure("root/x"), Some("preparation"));
    assert_eq!(rig.status("root/x").restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_preparation_that_panics_is_our_mistake_and_costs_budget() {
    let rig = Rig::new();
    let _top = rig
        .start(prepared(&rig, &[Outcome::Panics], &Arc::default()))
        .await;
    until("parked", || {
        rig.is_up("root/other") && rig.is_parked("root/x")
    })
    .await;
    assert_eq!(rig.last_failure("root/x"), Some("panic"));
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_comes_back_prepares_again() {
    let rig = Rig::new();
    let tries = Arc::new(AtomicUsize::new(0));
    let _top = rig.start(prepared(&rig, &[Outcome::Ready], &tries)).await;
    until("up", || rig.is_up("root/x")).await;
    assert!(rig.board.kill("root/x"));
    until("again", || {
        rig.status("root/x").restarts == 1 && rig.is_up("root/x")
    })
    .await;
    assert_eq!(tries.load(Ordering::Relaxed), 2);
    // A worker below it that fails does not.
    assert!(rig.board.kill("root/x/a"));
    until("again", || {
        rig.status("root/x/a").restarts == 2 && rig.is_up("root/x/a")
    })
    .await;
    assert_eq!(tries.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_a_preparation() {
    let rig = Rig::new();
    let mut top = rig
        .start(prepared(&rig, &[Outcome::Hangs], &Arc::default()))
        .await;
    until("preparing", || {
        rig.status("root/x").activity == Activity::Preparing
    })
    .await;
    let began = rig.board.now();
    assert_eq!(top.stop().await, Ok(()));
    assert!(rig.board.now() - began < Duration::from_millis(100));
    assert_eq!(living_below(&top.actor), 1);
}
