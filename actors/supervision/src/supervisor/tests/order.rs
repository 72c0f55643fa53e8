//! Who goes and comes with whom, and in which order.

use std::time::Duration;

use crate::supervisor::{ChildSpec, Shutdown, Strategy};
use crate::testing::{BadStart, Rig, Tell, escalating, parking, until};

const ALL: [&str; 4] = ["root/a", "root/b", "root/c", "root/d"];

fn in_order(rig: &Rig) -> Vec<ChildSpec> {
    ALL.iter().map(|path| rig.leaf(path)).collect()
}

async fn all_up(rig: &Rig) {
    until("all up", || ALL.iter().all(|path| rig.is_up(path))).await;
}

#[tokio::test(start_paused = true)]
async fn children_start_in_order_and_stop_in_reverse() {
    for strategy in [Strategy::OneForOne, Strategy::RestForOne] {
        let rig = Rig::new();
        let mut top = rig
            .start(escalating("root", strategy, 5, in_order(&rig)))
            .await;
        all_up(&rig).await;
        assert_eq!(rig.journal(), ["start a", "start b", "start c", "start d"]);
        assert_eq!(top.stop().await, Ok(()));
        assert_eq!(rig.journal(), ["stop d", "stop c", "stop b", "stop a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn in_order_means_each_starts_after_the_one_before_is_up() {
    let rig = Rig::new();
    let group = escalating(
        "root/b",
        Strategy::OneForOne,
        5,
        vec![rig.leaf("root/b/deep")],
    );
    rig.bad_starts("root/b/deep", BadStart::Hangs, 1);
    let children = vec![rig.leaf("root/a"), rig.nest(group, "b"), rig.leaf("root/c")];
    let _top = rig
        .start(escalating("root", Strategy::RestForOne, 5, children))
        .await;
    until("all up", || rig.is_up("root/c")).await;
    assert_eq!(rig.journal(), ["start a", "start b/deep", "start c"]);
}

#[tokio::test(start_paused = true)]
async fn independent_children_do_not_wait_for_each_other() {
    let rig = Rig::new();
    rig.bad_starts("root/a", BadStart::Hangs, 1);
    let _top = rig.start(parking(in_order(&rig))).await;
    until("d up", || rig.is_up("root/d")).await;
    assert!(!rig.is_up("root/a"));
    all_up(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn the_rest_goes_last_one_first_and_comes_back_in_order() {
    let rig = Rig::new();
    let _top = rig
        .start(escalating("root", Strategy::RestForOne, 5, in_order(&rig)))
        .await;
    all_up(&rig).await;
    rig.journal();
    rig.tell("root/b", Tell::Fail);
    until("b started again", || rig.count("start b") == 1).await;
    all_up(&rig).await;
    assert_eq!(
        rig.journal(),
        ["stop d", "stop c", "start b", "start c", "start d"]
    );
    assert_eq!(rig.status("root/a").restarts, 0);
    assert_eq!(rig.status("root/d").restarts, 1);
    assert!(
        rig.status("root/d").last_failure.is_none(),
        "it did not fail"
    );
}

#[tokio::test(start_paused = true)]
async fn those_that_go_with_the_failed_one_cost_no_budget() {
    let rig = Rig::new();
    // Five failures are allowed; with three siblings each they would be twenty.
    let mut top = rig
        .start(escalating("root", Strategy::RestForOne, 5, in_order(&rig)))
        .await;
    all_up(&rig).await;
    for failures in 1..=5 {
        rig.tell("root/a", Tell::Fail);
        until("again", || rig.status("root/a").restarts == failures).await;
        all_up(&rig).await;
    }
    assert_eq!(top.stop().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_late_one_of_the_rest_is_killed_and_holds_nobody_up_for_longer() {
    let rig = Rig::new();
    let mut children = in_order(&rig);
    children[2].shutdown = Shutdown::Stop(Duration::from_secs(2));
    rig.script("root/c", |script| {
        script.stopping_takes = Duration::from_hours(1);
    });
    let _top = rig
        .start(escalating("root", Strategy::RestForOne, 5, children))
        .await;
    all_up(&rig).await;
    rig.journal();
    let began = rig.board.now();
    rig.tell("root/b", Tell::Fail);
    until("b started again", || rig.count("start b") == 1).await;
    all_up(&rig).await;
    assert_eq!(
        rig.journal(),
        ["stop d", "stop c", "start b", "start c", "start d"]
    );
    let took = rig.board.now() - began;
    assert!((2..3).contains(&took.as_secs()), "took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_failure_while_the_rest_comes_back_starts_it_over() {
    let rig = Rig::new();
    let _top = rig
        .start(escalating("root", Strategy::RestForOne, 5, in_order(&rig)))
        .await;
    all_up(&rig).await;
    rig.bad_starts("root/c", BadStart::Hangs, 1);
    rig.tell("root/b", Tell::Fail);
    until("b is back, c hangs", || {
        rig.is_up("root/b") && rig.count("start b") == 2
    })
    .await;
    rig.journal();
    rig.tell("root/a", Tell::Fail);
    until("a started again", || rig.count("start a") == 1).await;
    all_up(&rig).await;
    assert_eq!(
        rig.journal(),
        ["stop b", "start a", "start b", "start c", "start d"]
    );
}

#[tokio::test(start_paused = true)]
async fn draining_handles_what_waits_and_stopping_does_not() {
    for (shutdown, handled) in [
        (Shutdown::Drain(Duration::from_secs(1)), 5),
        (Shutdown::Stop(Duration::from_secs(1)), 0),
        (Shutdown::Brutal, 0),
    ] {
        let rig = Rig::new();
        let child = ChildSpec {
            shutdown,
            ..rig.leaf("root/a")
        };
        let mut top = rig.start(parking(vec![child])).await;
        until("up", || rig.is_up("root/a")).await;
        rig.tell("root/a", Tell::Slow(Duration::from_millis(500)));
        for _ in 0..5 {
            rig.tell("root/a", Tell::Work);
        }
        assert_eq!(top.stop().await, Ok(()));
        assert_eq!(rig.count("work a"), handled, "{shutdown:?}");
        assert_eq!(
            rig.count("stop a"),
            usize::from(shutdown != Shutdown::Brutal)
        );
    }
}
