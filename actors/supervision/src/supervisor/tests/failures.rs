//! Every way to fail, at every kind of place.

use std::time::Duration;

use crate::status::Activity;
use crate::supervisor::{ChildSpec, Restart, Strategy, SupervisorSpec};
use crate::testing::{BadStart, Rig, Tell, escalating, living_below, parking, until};

const PLACES: [&str; 5] = ["root/a", "root/g/b", "root/g/c", "root/g/d", "root/g/n/e"];
/// Places, and the supervisors root, g and n.
const ACTORS: usize = PLACES.len() + 3;

/// A worker by itself; first, middle and last of a group in order; one below another supervisor.
fn tree(rig: &Rig) -> SupervisorSpec {
    let deeper = escalating(
        "root/g/n",
        Strategy::OneForOne,
        5,
        vec![rig.leaf("root/g/n/e")],
    );
    let mut group: Vec<ChildSpec> = PLACES[1..4].iter().map(|path| rig.leaf(path)).collect();
    group.push(rig.nest(deeper, "n"));
    let group = escalating("root/g", Strategy::RestForOne, 5, group);
    parking(vec![rig.leaf("root/a"), rig.nest(group, "g")])
}

async fn all_up(rig: &Rig) {
    until("all up", || {
        PLACES.iter().all(|path| rig.is_up(path)) && rig.is_up("root")
    })
    .await;
}

/// Makes one place fail, and checks that it and everything else is up again.
async fn survives(kind: &'static str, fail: impl Fn(&Rig, &'static str)) {
    for path in PLACES {
        let rig = Rig::new();
        let mut top = rig.start(tree(&rig)).await;
        all_up(&rig).await;
        fail(&rig, path);
        until(&format!("{kind} of {path} published"), || {
            rig.last_failure(path) == Some(kind)
        })
        .await;
        all_up(&rig).await;
        assert_eq!(living_below(&top.actor), ACTORS, "{kind} of {path}");
        assert!(
            rig.address(path).try_send(Tell::Work).is_ok(),
            "its address leads to it again"
        );
        let worked = format!("work {}", path.trim_start_matches("root/"));
        until("it works", || rig.count(&worked) == 1).await;
        assert_eq!(rig.status("root/a").restarts == 0, path != "root/a");
        assert_eq!(top.stop().await, Ok(()));
        rig.assert_never_two();
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_survived_anywhere() {
    survives("panic", |rig, path| {
        rig.tell(path, Tell::Panic("at work".into()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_error_is_survived_anywhere() {
    survives("error", |rig, path| rig.tell(path, Tell::Fail)).await;
}

#[tokio::test(start_paused = true)]
async fn a_kill_is_survived_anywhere() {
    survives("killed", |rig, path| assert!(rig.board.kill(path))).await;
}

#[tokio::test(start_paused = true)]
async fn a_hang_is_ended_by_the_watchdog_and_survived_anywhere() {
    survives("hung", |rig, path| rig.tell(path, Tell::Hang)).await;
}

#[tokio::test(start_paused = true)]
async fn an_end_nobody_asked_for_is_a_failure_anywhere() {
    survives("ended", |rig, path| rig.tell(path, Tell::Leave)).await;
}

/// A start that goes wrong once, after a kill; what is published last is its kind.
async fn survives_at_start(kind: &'static str, bad: BadStart) {
    survives(kind, |rig, path| {
        rig.bad_starts(path, bad, 1);
        assert!(rig.board.kill(path));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_is_survived_anywhere() {
    survives_at_start("start", BadStart::Fails).await;
}

#[tokio::test(start_paused = true)]
async fn a_start_that_panics_is_survived_anywhere() {
    survives_at_start("panic", BadStart::Panics).await;
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_is_survived_anywhere() {
    survives_at_start("timeout", BadStart::Hangs).await;
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_with_the_actor_running_leaves_no_second_one() {
    survives_at_start("timeout", BadStart::HangsAfterwards).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_pre_start_is_survived_anywhere() {
    survives_at_start("start", BadStart::PreStartPanics).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_started_is_survived_anywhere() {
    survives_at_start("panic", BadStart::StartedPanics).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_in_started_is_survived_anywhere() {
    survives_at_start("error", BadStart::StartedFails).await;
}

#[tokio::test(start_paused = true)]
async fn a_hang_in_started_is_survived_anywhere() {
    survives_at_start("hung", BadStart::StartedHangs).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_start_may_go_wrong_like_any_other() {
    for bad in [
        BadStart::Fails,
        BadStart::Panics,
        BadStart::Hangs,
        BadStart::StartedPanics,
    ] {
        for path in PLACES {
            let rig = Rig::new();
            rig.bad_starts(path, bad, 2);
            let mut top = rig.start(tree(&rig)).await;
            all_up(&rig).await;
            assert_eq!(living_below(&top.actor), ACTORS, "{bad:?} of {path}");
            assert_eq!(top.stop().await, Ok(()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_supervisor_comes_back_with_everything_below_it() {
    for path in ["root/g", "root/g/n"] {
        let rig = Rig::new();
        let mut top = rig.start(tree(&rig)).await;
        all_up(&rig).await;
        assert!(rig.board.kill(path));
        until("noticed", || rig.last_failure(path) == Some("killed")).await;
        all_up(&rig).await;
        assert_eq!(living_below(&top.actor), ACTORS);
        assert_eq!(rig.status("root/g/n/e").restarts, 1);
        assert_eq!(rig.status("root/a").restarts, 0);
        assert_eq!(top.stop().await, Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn restart_types_decide_what_comes_back() {
    let cases = [
        (Restart::Permanent, true, true),
        (Restart::Transient, false, true),
        (Restart::Temporary, false, false),
    ];
    for (restart, after_leaving, after_kill) in cases {
        for (is_kill, comes_back) in [(false, after_leaving), (true, after_kill)] {
            let rig = Rig::new();
            let children = vec![ChildSpec {
                restart,
                ..rig.leaf("root/a")
            }];
            let mut top = rig.start(parking(children)).await;
            until("up", || rig.is_up("root/a")).await;
            if is_kill {
                assert!(rig.board.kill("root/a"));
            } else {
                rig.tell("root/a", Tell::Leave);
            }
            until("down", || !rig.is_up("root/a")).await;
            // Longer than any first pause.
            crate::testing::pause(Duration::from_secs(1)).await;
            assert_eq!(
                rig.is_up("root/a"),
                comes_back,
                "{restart:?}, killed: {is_kill}"
            );
            if !comes_back {
                assert_eq!(rig.status("root/a").activity, Activity::Stopped);
            }
            assert_eq!(top.stop().await, Ok(()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn siblings_of_a_failed_child_notice_nothing() {
    let rig = Rig::new();
    let group = escalating(
        "root/g",
        Strategy::OneForOne,
        5,
        vec![rig.leaf("root/g/b"), rig.leaf("root/g/c")],
    );
    let _top = rig
        .start(parking(vec![rig.leaf("root/a"), rig.nest(group, "g")]))
        .await;
    until("up", || {
        ["root/a", "root/g/c"].iter().all(|path| rig.is_up(path))
    })
    .await;
    for path in ["root/a", "root/g/c"] {
        rig.tell(path, Tell::Work);
        until("worked", || rig.status(path).handled == 1).await;
    }
    let before = ["root/a", "root/g/c", "root/g"].map(|path| rig.status(path));
    for _ in 0..5 {
        rig.tell("root/g/b", Tell::Fail);
        until("down", || !rig.is_up("root/g/b")).await;
        until("up", || rig.is_up("root/g/b")).await;
    }
    let after = ["root/a", "root/g/c", "root/g"].map(|path| rig.status(path));
    assert_eq!(before, after);
}
