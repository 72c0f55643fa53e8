use std::time::Duration;

use krane_supervision::gate::Gate;
use krane_supervision::meter::Measure as _;
use krane_supervision::status::Activity;
use prometheus::{Registry, TextEncoder};

use super::ActorFamilies;
use crate::status::StatusBoard;
use crate::tree::TREE;

const STREAM: &str = "root/deployments/intake/stream";
const LABELS: &str = r#"{actor="deployments/intake/stream",controller="deployments"}"#;

pub(super) fn scrape(registry: &Registry) -> String {
    TextEncoder::new()
        .encode_to_string(&registry.gather())
        .expect("encodes")
}

fn setting() -> (StatusBoard, Registry, ActorFamilies) {
    let (board, registry) = (StatusBoard::new(), Registry::new());
    let families = ActorFamilies::register(&TREE, &board, &registry).expect("registers");
    (board, registry, families)
}

#[tokio::test(start_paused = true)]
async fn every_actor_has_its_series_before_anything_runs() {
    let (_, registry, _) = setting();
    let text = scrape(&registry);
    for actor in [
        "heartbeat",
        "servers/rpc",
        "deployments",
        "deployments/intake/stream",
    ] {
        assert!(
            text.contains(&format!("krane_actor_up{{actor=\"{actor}\",")),
            "{actor}\n{text}"
        );
    }
    assert!(text.contains(r#"krane_actor_restarts_total{actor="heartbeat",controller=""} 0"#));
}

#[tokio::test(start_paused = true)]
async fn what_is_published_is_read_at_the_scrape() {
    let (board, registry, families) = setting();
    let gate = Gate::new(64);
    let cell = board.cell(&STREAM.into(), Some(&gate));
    cell.update(|status| {
        status.activity = Activity::Idle;
        status.restarts = 3;
        status.panics = 2;
        status.hangs = 1;
    });
    let metrics = families.actor(STREAM);
    metrics.waited(Duration::from_millis(2));
    metrics.handled(Duration::from_millis(20));
    let _waiting = gate.try_enter();
    let text = scrape(&registry);
    for line in [
        "krane_actor_up{} 1",
        "krane_actor_parked{} 0",
        "krane_actor_restarts_total{} 3",
        "krane_actor_panics_total{} 2",
        "krane_actor_hangs_total{} 1",
        "krane_actor_mailbox_depth{} 1",
        "krane_actor_mailbox_high_water{} 1",
        "krane_actor_mailbox_capacity{} 64",
        "krane_actor_message_wait_seconds_count{} 1",
        "krane_actor_handle_seconds_count{} 1",
    ] {
        let line = line.replace("{}", LABELS);
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }

    cell.update(|status| status.activity = Activity::Parked { until: board.now() });
    let text = scrape(&registry);
    assert!(text.contains(&format!("krane_actor_up{LABELS} 0")));
    assert!(text.contains(&format!("krane_actor_parked{LABELS} 1")));
}

#[tokio::test(start_paused = true)]
async fn two_trees_cannot_share_a_registry() {
    let (board, registry, _) = setting();
    assert!(ActorFamilies::register(&TREE, &board, &registry).is_err());
}
