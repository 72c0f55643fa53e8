use std::time::Duration;

use super::{ROUND, STUCK_AFTER, Watchdog};
use crate::status::Board;
use crate::testing::{LIMIT, Rig, Tell, parking, pause, until};

#[tokio::test(start_paused = true)]
async fn a_loop_that_makes_no_rounds_is_not_live() {
    let watchdog = Watchdog::new(Board::new(), Duration::from_secs(5));
    assert!(
        watchdog.live(),
        "it may take a moment until the first round"
    );
    pause(STUCK_AFTER - ROUND).await;
    assert!(watchdog.live());
    pause(ROUND).await;
    assert!(!watchdog.live());
    assert_eq!(watchdog.round(), Ok(()));
    assert!(watchdog.live());
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_killed_soon_after_its_limit_and_counted() {
    let rig = Rig::new();
    let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
    until("up", || rig.is_up("root/a")).await;
    let began = rig.board.now();
    rig.tell("root/a", Tell::Hang);
    until("killed", || rig.last_failure("root/a").is_some()).await;
    let took = rig.board.now() - began;
    assert!(took > LIMIT && took <= LIMIT + 2 * ROUND, "{took:?}");
    let status = rig.status("root/a");
    assert_eq!((status.hangs, status.panics), (1, 0));
    let failure = status.last_failure.as_ref().expect("published");
    assert_eq!(
        (failure.kind, &*failure.text),
        ("hung", "hang ran longer than 30s")
    );
}

#[tokio::test(start_paused = true)]
async fn slow_is_not_hung() {
    let rig = Rig::new();
    let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
    until("up", || rig.is_up("root/a")).await;
    for handled in 1..=10 {
        rig.tell("root/a", Tell::Slow(LIMIT - ROUND));
        until("done", || rig.status("root/a").handled == handled).await;
    }
    assert_eq!(rig.status("root/a").restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_kill_that_was_no_sentence_is_not_told_as_one() {
    let rig = Rig::new();
    let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
    until("up", || rig.is_up("root/a")).await;
    rig.tell("root/a", Tell::Hang);
    until("hung", || rig.last_failure("root/a") == Some("hung")).await;
    until("up", || rig.is_up("root/a")).await;
    assert!(rig.board.kill("root/a"));
    until("killed", || rig.last_failure("root/a") == Some("killed")).await;
}
