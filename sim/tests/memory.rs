//! The control plane in memory, on a paused clock: what only it can do.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

use std::time::Duration;

use futures::StreamExt as _;
use krane_domain::desired::{Change, State, StreamItem};
use krane_domain::ids::ObjectKey;
use krane_domain::report::Report;
use krane_ports::{ControlPlane as _, Question, RpcFailureKind, StreamEvent};
use krane_sim::control_plane::SimControlPlane;
use krane_sim::control_plane::memory::{CALL_LIMIT, Call, OPEN_AFTER, Order, Reply};
use krane_sim::hooks::{Side, Verdict};
use tokio::time::Instant;

fn key(number: u64) -> ObjectKey {
    ObjectKey::new("ws", format!("app-{number}"))
}

fn with_rows(seed: u64, rows: u64) -> SimControlPlane {
    let control = SimControlPlane::new(seed);
    for number in 1..=rows {
        control.delete(&key(number));
    }
    control
}

async fn versions(control: &SimControlPlane, cursor: u64, count: usize) -> Vec<u64> {
    let events = control.watch(cursor).await.take(count + 1);
    let versions = events.filter_map(async |event| match event {
        StreamEvent::Item(StreamItem::State(state)) => Some(state.version),
        StreamEvent::Item(StreamItem::Unnamed { .. })
        | StreamEvent::Opened
        | StreamEvent::Ended(_) => None,
    });
    versions.collect().await
}

#[tokio::test(start_paused = true)]
async fn a_replay_comes_in_the_order_that_was_asked_for() {
    let control = with_rows(7, 5);
    control.replay_order(Order::Reversed);
    assert_eq!(versions(&control, 2, 3).await, [5, 4, 3]);
    control.replay_order(Order::Twice);
    assert_eq!(versions(&control, 3, 4).await, [4, 4, 5, 5]);
    let shuffled = async |seed| {
        let control = with_rows(seed, 5);
        control.replay_order(Order::Shuffled);
        versions(&control, 0, 5).await
    };
    assert_eq!(shuffled(7).await, shuffled(7).await);
    let mut sorted = shuffled(7).await;
    assert_ne!(sorted, [1, 2, 3, 4, 5]);
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 2, 3, 4, 5]);
}

/// A row may become visible behind the cursor of every stream (D8).
#[tokio::test(start_paused = true)]
async fn a_row_behind_the_cursor_is_found_only_from_below() {
    let control = with_rows(1, 3);
    let late = State {
        key: key(9),
        version: 2,
        change: Ok(Change::Delete),
        size: 1,
    };
    control.forget(&key(2));
    let mut open = control.watch(3).await;
    assert!(matches!(open.next().await, Some(StreamEvent::Opened)));
    control.push(late);
    let silence = tokio::time::timeout(Duration::from_mins(10), open.next());
    assert!(silence.await.is_err());
    assert_eq!(versions(&control, 0, 3).await, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn streams_open_when_the_headers_do() {
    let control = SimControlPlane::new(1);
    let opening = async || {
        let start = Instant::now();
        let opened = control.watch(0).await.next().await;
        assert!(matches!(opened, Some(StreamEvent::Opened)));
        start.elapsed()
    };
    assert_eq!(opening().await, OPEN_AFTER);
    control.hold_headers_back(false);
    assert_eq!(opening().await, Duration::ZERO);
    control.delay(Call::Watch, Duration::from_secs(9));
    assert_eq!(opening().await, Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_fails_in_time() {
    let control = with_rows(1, 1);
    let question = Question {
        key: key(1),
        id: "d_1".into(),
    };
    control.set_answer(&key(1), Reply::Silence);
    let start = Instant::now();
    let failure = control.desired(&question).await.unwrap_err();
    assert_eq!(start.elapsed(), CALL_LIMIT);
    assert_eq!(
        (failure.kind, failure.code),
        (RpcFailureKind::Transport, "deadline_exceeded")
    );
    control.freeze();
    assert!(control.heartbeat().await.is_err());
    assert_eq!(start.elapsed(), 2 * CALL_LIMIT);
    assert!(control.look(|told| told.heartbeats.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_loses_an_answer_lets_the_report_arrive() {
    let control = SimControlPlane::new(1);
    control.hooks().set(|side, op| {
        if (side, op.call, op.number) == (Side::Before, "report", 0) {
            Verdict::LoseAnswer
        } else {
            Verdict::Proceed
        }
    });
    let gone = Report::Gone {
        key: key(1),
        id: None,
    };
    assert!(control.report(&gone).await.is_err());
    assert_eq!(control.look(|told| told.reports.len()), 1);
    control.report(&gone).await.unwrap();
    assert_eq!(
        control.look(|told| told.report(&key(1)).cloned()),
        Some(gone)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_hangs_in_its_opening_can_be_cut() {
    let control = with_rows(1, 1);
    control.hooks().set(|side, op| {
        if side == Side::Before && op.call == "watch" {
            Verdict::Hang
        } else {
            Verdict::Proceed
        }
    });
    let mut hanging = control.watch(0).await;
    let silence = tokio::time::timeout(Duration::from_mins(1), hanging.next());
    assert!(silence.await.is_err());
    control.cut_streams("aborted");
    assert!(matches!(hanging.next().await, Some(StreamEvent::Ended(end)) if end.code == "aborted"));
    assert!(hanging.next().await.is_none());
    let mut refused = control.watch(0).await;
    control.take_away();
    assert!(
        matches!(refused.next().await, Some(StreamEvent::Ended(end)) if end.code == "unavailable")
    );
    control.hooks().clear();
    control.give_back();
    assert_eq!(versions(&control, 0, 1).await, [1]);
}
