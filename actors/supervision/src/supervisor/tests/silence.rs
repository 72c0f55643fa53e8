//! What a panic may tell: its place. Its text may quote input.

use std::sync::Once;

use crate::cause::note_panic;
use crate::supervisor::Strategy;
use crate::testing::{BadStart, Rig, Tell, escalating, parking, until};

const CANARY: &str = "canary-7c1e";

fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let earlier = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            note_panic(info);
            earlier(info);
        }));
    });
}

fn published(rig: &Rig) -> String {
    let statuses: Vec<_> = rig
        .board
        .all()
        .iter()
        .map(|(_, cell)| cell.read())
        .collect();
    serde_json::to_string(&statuses).expect("statuses are plain data")
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_panic_is_not_published_its_place_is() {
    note_panics();
    let rig = Rig::new();
    let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
    until("up", || rig.is_up("root/a")).await;
    rig.tell("root/a", Tell::Panic(format!("token {CANARY}")));
    until("noticed", || rig.last_failure("root/a") == Some("panic")).await;
    let text = published(&rig);
    assert!(
        text.contains("panicked at actors/supervision/src/testing.rs:"),
        "{text}"
    );
    assert!(!text.contains(CANARY));
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_panic_does_not_climb_with_an_escalation() {
    let rig = Rig::new();
    let group = escalating("root/g", Strategy::OneForOne, 0, vec![rig.leaf("root/g/a")]);
    let _top = rig.start(parking(vec![rig.nest(group, "g")])).await;
    until("up", || rig.is_up("root/g/a")).await;
    rig.tell("root/g/a", Tell::Panic(format!("token {CANARY}")));
    until("parked", || rig.is_parked("root/g")).await;
    let text = published(&rig);
    assert!(
        text.contains("restart budget spent, last by root/g/a: panicked"),
        "{text}"
    );
    assert!(!text.contains(CANARY));
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_panic_at_the_start_is_not_published() {
    for (bad, words) in [
        (BadStart::Panics, "start function"),
        (BadStart::PreStartPanics, "pre_start"),
        (BadStart::StartedPanics, "started\""),
    ] {
        let rig = Rig::new();
        rig.bad_starts("root/a", bad, 1);
        let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
        until("up", || rig.is_up("root/a")).await;
        let status = rig.status("root/a");
        let failure = status
            .last_failure
            .as_ref()
            .expect("the first start failed");
        assert!(failure.text.contains("panicked"), "{failure:?}");
        assert!(
            !failure.text.contains(words.trim_end_matches('"')),
            "{failure:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_words_of_an_error_are_published() {
    let rig = Rig::new();
    let _top = rig.start(parking(vec![rig.leaf("root/a")])).await;
    until("up", || rig.is_up("root/a")).await;
    rig.tell("root/a", Tell::Fail);
    until("noticed", || rig.last_failure("root/a") == Some("error")).await;
    assert!(published(&rig).contains("told to fail"));
}
