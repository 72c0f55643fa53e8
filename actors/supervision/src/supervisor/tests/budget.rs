//! What happens to a child that fails once too often.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::cause::Cause;
use crate::supervisor::{ChildSpec, Strategy, SupervisorSpec};
use crate::testing::{BadStart, Rig, Tell, escalating, living_below, parking, pause, until};

/// A controller with its groups and their budgets as in the tree, next to another one.
fn controllers(rig: &Rig, resets: &Arc<AtomicUsize>) -> SupervisorSpec {
    let intake = ["root/x/intake/reconciler", "root/x/intake/stream"]
        .map(|path| rig.leaf(path))
        .into();
    let groups = vec![
        rig.leaf("root/x/watch"),
        rig.nest(
            escalating("root/x/intake", Strategy::RestForOne, 5, intake),
            "intake",
        ),
    ];
    let resets = Arc::clone(resets);
    let x = ChildSpec {
        reset: Some(Arc::new(move || {
            resets.fetch_add(1, Ordering::Relaxed);
        })),
        ..rig.nest(escalating("root/x", Strategy::OneForOne, 2, groups), "x")
    };
    let y = escalating(
        "root/y",
        Strategy::OneForOne,
        2,
        vec![rig.leaf("root/y/stream")],
    );
    parking(vec![rig.leaf("root/heartbeat"), x, rig.nest(y, "y")])
}

const STREAM: &str = "root/x/intake/stream";

/// Lets the stream panic whenever it is up, until its controller is parked; says how often.
async fn panic_until_parked(rig: &Rig) -> usize {
    let mut panics = 0;
    while !rig.is_parked("root/x") {
        if rig.is_up(STREAM) {
            rig.tell(STREAM, Tell::Panic("again".into()));
            panics += 1;
            until("down", || !rig.is_up(STREAM)).await;
        }
        pause(Duration::from_millis(1)).await;
    }
    panics
}

/// slawlor/ractor#282 (B49): nobody heard of a panic.
#[tokio::test(start_paused = true)]
async fn one_panic_is_over_within_five_seconds() {
    let rig = Rig::new();
    let _top = rig.start(controllers(&rig, &Arc::default())).await;
    until("up", || rig.is_up("root")).await;
    let began = rig.board.now();
    rig.tell(STREAM, Tell::Panic("once".into()));
    until("again", || {
        rig.status(STREAM).restarts == 1 && rig.is_up(STREAM)
    })
    .await;
    assert!(rig.board.now() - began < Duration::from_secs(5));
    assert_eq!(rig.status("root/x/intake/reconciler").restarts, 0);
}

/// slawlor/ractor#282 (B49): and no storm of restarts either.
#[tokio::test(start_paused = true)]
async fn twenty_panics_in_a_row_park_the_controller_and_nobody_else_notices() {
    let rig = Rig::new();
    let resets = Arc::new(AtomicUsize::new(0));
    let top = rig.start(controllers(&rig, &resets)).await;
    until("up", || rig.is_up("root")).await;
    let others = ["root", "root/heartbeat", "root/y", "root/y/stream"];
    for path in ["root/heartbeat", "root/y/stream"] {
        rig.tell(path, Tell::Work);
        until("worked", || rig.status(path).handled == 1).await;
    }
    let before = others.map(|path| rig.status(path));

    let panics = panic_until_parked(&rig).await;
    // Six for each of the three lives of the group.
    assert_eq!(panics, 18);
    assert_eq!(rig.status(STREAM).panics, 18);
    assert_eq!(rig.last_failure("root/x"), Some("exhausted"));
    until("x gone", || living_below(&top.actor) == 4).await;
    assert!(!rig.address(STREAM).is_occupied());

    // While it is parked nothing of it is started.
    let restarts = rig.status(STREAM).restarts;
    pause(Duration::from_secs(14)).await;
    assert!(rig.is_parked("root/x"));
    assert_eq!(rig.status(STREAM).restarts, restarts);
    assert_eq!(resets.load(Ordering::Relaxed), 0);

    until("back", || rig.is_up("root/x")).await;
    assert_eq!(
        resets.load(Ordering::Relaxed),
        1,
        "it comes back with fresh state"
    );
    rig.tell(STREAM, Tell::Work);
    assert_eq!(before, others.map(|path| rig.status(path)));
}

#[tokio::test(start_paused = true)]
async fn each_parking_lasts_longer_up_to_a_cap() {
    let rig = Rig::new();
    let _top = rig.start(controllers(&rig, &Arc::default())).await;
    let mut pauses = Vec::new();
    for _ in 0..7 {
        until("up", || rig.is_up(STREAM)).await;
        panic_until_parked(&rig).await;
        let began = rig.board.now();
        until("back", || !rig.is_parked("root/x")).await;
        pauses.push((rig.board.now() - began).as_secs());
    }
    for (parking, &seconds) in pauses.iter().enumerate() {
        let longest = (30 << parking).min(600);
        assert!((longest / 2..=longest).contains(&seconds), "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_of_the_root_has_a_budget_of_its_own() {
    let rig = Rig::new();
    let leaves = ["root/a", "root/b", "root/c"];
    let top = rig
        .start(parking(leaves.iter().map(|path| rig.leaf(path)).collect()))
        .await;
    // Fifteen failures in all, but no more than five of each.
    for restarts in 1..=5 {
        for path in leaves {
            until("up", || rig.is_up(path)).await;
            rig.tell(path, Tell::Fail);
            until("again", || rig.status(path).restarts == restarts).await;
        }
    }
    until("up", || rig.is_up("root/a")).await;
    rig.tell("root/a", Tell::Fail);
    until("parked", || rig.is_parked("root/a")).await;
    assert!(rig.is_up("root/b") && rig.is_up("root/c"));
    until("back", || rig.is_up("root/a")).await;
    assert_eq!(living_below(&top.actor), 4);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_always_fails_spends_the_budget_too() {
    let rig = Rig::new();
    rig.bad_starts(STREAM, BadStart::Fails, usize::from(u8::MAX));
    let resets = Arc::new(AtomicUsize::new(0));
    let top = rig.start(controllers(&rig, &resets)).await;
    until("parked", || rig.is_up("root/y") && rig.is_parked("root/x")).await;
    assert_eq!(rig.status(STREAM).restarts, 17);
    until("nothing of it is left", || living_below(&top.actor) == 4).await;
    assert_eq!(
        rig.count("start x/intake/reconciler"),
        rig.count("stop x/intake/reconciler")
    );
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_without_a_parent_is_the_end_in_order() {
    let rig = Rig::new();
    let children = vec![rig.leaf("root/a"), rig.leaf("root/b")];
    let mut top = rig
        .start(escalating("root", Strategy::OneForOne, 0, children))
        .await;
    until("up", || rig.is_up("root/a") && rig.is_up("root/b")).await;
    rig.tell("root/b", Tell::Fail);
    let cause = Cause::Exhausted {
        path: "root/b".into(),
        last: "told to fail".into(),
    };
    assert_eq!(top.end().await, Err(cause));
    assert_eq!(rig.journal(), ["start a", "start b", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn rare_failures_never_spend_a_budget() {
    let rig = Rig::new();
    let _top = rig.start(controllers(&rig, &Arc::default())).await;
    for restarts in 1..=50 {
        until("up", || rig.is_up(STREAM)).await;
        rig.tell(STREAM, Tell::Panic("rare".into()));
        until("again", || rig.status(STREAM).restarts == restarts).await;
        pause(Duration::from_secs(20)).await;
    }
    assert_eq!(rig.status("root/x/intake").restarts, 0);
}
