//! The ordered end, whenever it comes.

use std::time::Duration;

use crate::status::Activity;
use crate::supervisor::{Strategy, SupervisorSpec};
use crate::testing::{BadStart, Rig, Tell, escalating, living_below, parking, pause, until};

fn tree(rig: &Rig) -> SupervisorSpec {
    let leaves = |paths: &[&'static str]| paths.iter().map(|path| rig.leaf(path)).collect();
    let deep = escalating(
        "root/g/n",
        Strategy::RestForOne,
        5,
        leaves(&["root/g/n/c", "root/g/n/d"]),
    );
    let mut group: Vec<_> = leaves(&["root/g/b"]);
    group.push(rig.nest(deep, "n"));
    let group = escalating("root/g", Strategy::OneForOne, 5, group);
    parking(vec![
        rig.leaf("root/a"),
        rig.nest(group, "g"),
        rig.leaf("root/z"),
    ])
}

/// Nothing runs, and nothing ever will.
async fn stays_down(rig: &Rig) {
    rig.journal();
    pause(Duration::from_mins(20)).await;
    assert!(rig.journal().is_empty());
    for (path, cell) in rig.board.all() {
        assert!(cell.occupant().is_none(), "{path}");
        assert_eq!(cell.read().activity, Activity::Stopped, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_stops_in_reverse_order_on_every_level() {
    let rig = Rig::new();
    let mut top = rig.start(tree(&rig)).await;
    until("up", || rig.is_up("root") && rig.is_up("root/g")).await;
    rig.journal();
    assert_eq!(top.stop().await, Ok(()));
    assert_eq!(
        rig.journal(),
        ["stop z", "stop g/n/d", "stop g/n/c", "stop g/b", "stop a"]
    );
    stays_down(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn stopping_twice_is_stopping_once() {
    let rig = Rig::new();
    let mut top = rig.start(tree(&rig)).await;
    until("up", || rig.is_up("root")).await;
    top.actor.stop(None);
    assert_eq!(top.stop().await, Ok(()));
    assert_eq!(top.stop().await, Ok(()));
    assert_eq!(rig.count("stop a"), 1);
}

#[tokio::test(start_paused = true)]
async fn late_ones_are_killed_each_after_its_own_time() {
    let rig = Rig::new();
    for path in ["root/z", "root/g/n/d"] {
        rig.script(path, |script| {
            script.stopping_takes = Duration::from_hours(1);
        });
    }
    let mut top = rig.start(tree(&rig)).await;
    until("up", || rig.is_up("root")).await;
    rig.tell("root/a", Tell::Hang);
    rig.journal();
    let began = rig.board.now();
    assert_eq!(top.stop().await, Ok(()));
    let took = rig.board.now() - began;
    assert!(
        (3_000..3_100).contains(&took.as_millis()),
        "three times one second: {took:?}"
    );
    assert_eq!(
        rig.journal(),
        ["stop z", "stop g/n/d", "stop g/n/c", "stop g/b"]
    );
    stays_down(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_stopping_holds_nobody_up() {
    let rig = Rig::new();
    let mut top = rig.start(tree(&rig)).await;
    until("up", || rig.is_up("root") && rig.is_up("root/g")).await;
    for path in ["root/z", "root/g/n/d", "root/a"] {
        rig.script(path, |script| script.stopping_panics = true);
    }
    rig.journal();
    assert_eq!(top.stop().await, Ok(()));
    assert_eq!(
        rig.journal(),
        ["stop z", "stop g/n/d", "stop g/n/c", "stop g/b", "stop a"]
    );
    stays_down(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_pending_restart_never_comes_after_a_stop() {
    let rig = Rig::new();
    let mut top = rig.start(tree(&rig)).await;
    until("up", || rig.is_up("root")).await;
    for path in ["root/a", "root/g/b", "root/g/n/c"] {
        // The third failure in a row waits up to 400 ms.
        for _ in 0..3 {
            until("up", || rig.is_up(path)).await;
            rig.tell(path, Tell::Fail);
            until("down", || !rig.is_up(path)).await;
        }
    }
    assert_eq!(top.stop().await, Ok(()));
    stays_down(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn parked_children_do_not_come_back_after_a_stop() {
    let rig = Rig::new();
    rig.bad_starts("root/a", BadStart::Fails, usize::from(u8::MAX));
    let mut top = rig.start(tree(&rig)).await;
    until("parked", || rig.is_parked("root/a")).await;
    assert_eq!(top.stop().await, Ok(()));
    stays_down(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_the_middle_of_starts_leaves_nothing() {
    for bad in [BadStart::Hangs, BadStart::HangsAfterwards] {
        for path in ["root/a", "root/g/b", "root/g/n/c", "root/g/n/d"] {
            let rig = Rig::new();
            rig.bad_starts(path, bad, 1);
            let mut top = rig.start(tree(&rig)).await;
            until("the last one is up", || rig.is_up("root/z")).await;
            assert_eq!(top.stop().await, Ok(()));
            assert_eq!(living_below(&top.actor), 1);
            stays_down(&rig).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_rest_is_being_stopped_ends_the_same_way() {
    let rig = Rig::new();
    rig.script("root/g/n/d", |script| {
        script.stopping_takes = Duration::from_millis(900);
    });
    let mut top = rig.start(tree(&rig)).await;
    until("up", || rig.is_up("root") && rig.is_up("root/g")).await;
    rig.journal();
    rig.tell("root/g/n/c", Tell::Fail);
    until("d is stopping", || rig.count("stop g/n/d") == 1).await;
    assert_eq!(top.stop().await, Ok(()));
    assert_eq!(
        rig.journal(),
        ["stop g/n/d", "stop z", "stop g/b", "stop a"]
    );
    stays_down(&rig).await;
}
