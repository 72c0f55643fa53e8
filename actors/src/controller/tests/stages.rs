//! Where the time of a version goes, and how its lanes are counted.

use std::time::Duration;

use krane_domain::ids::ObjectKey;

use super::harness::World;
use crate::testing::{input, wants};

#[tokio::test(start_paused = true)]
async fn each_version_has_four_moments_and_its_lanes_are_counted() {
    let world = World::start().await;
    world.cluster.set_call_time(Duration::from_secs(1));
    let key = ObjectKey::new("ns", "d1");
    let stages = || world.workers.store().stages(&key);
    assert_eq!(stages(), None);
    world.control_plane.push(wants(1, input("ns", "d1")));
    world
        .until("applied", |_| {
            stages().is_some_and(|it| it.applied.is_some())
        })
        .await;
    let applied = stages().expect("known");
    assert_eq!((applied.version, applied.wrote), (1, true));
    let started = applied.started.expect("started");
    assert!(applied.received <= started && Some(started) < applied.applied);
    world.cluster.set_pod("ns", "d1", "p1", true);
    world
        .until("reported", |_| {
            stages().is_some_and(|it| it.reported.is_some())
        })
        .await;
    let reported = stages().expect("known");
    assert!(reported.reported >= reported.applied, "{reported:?}");

    let text = world.scrape();
    let has = |line: &str| assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    for stage in [
        "received_to_started",
        "started_to_applied",
        "applied_to_reported",
    ] {
        has(&format!(
            "krane_stage_seconds_count{{controller=\"deployments\",stage=\"{stage}\"}} 1"
        ));
    }
    // The workload waited for its shared objects first, and one of them for another.
    has("controller_runtime_reconcile_total{controller=\"deployments\",result=\"requeue\"} 2");
    has("controller_runtime_reconcile_total{controller=\"deployments\",result=\"error\"} 0");
    has("controller_runtime_max_concurrent_reconciles{controller=\"deployments\"} 8");
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_panics_and_one_that_hangs_are_counted_as_such() {
    let world = World::start().await;
    let counted = |what: &str| {
        let labels = "{controller=\"deployments\"}";
        let line = format!("controller_runtime_{what}_total{labels} 1");
        world.scrape().lines().any(|it| it == line)
    };
    world.cluster.panic_in_next_apply();
    world.control_plane.push(wants(1, input("ns", "d1")));
    world
        .until("the panic is counted", |_| counted("reconcile_panics"))
        .await;
    world.until("applied", |world| world.cursor() == 1).await;
    assert!(counted("terminal_reconcile_errors") && counted("reconcile_errors"));
    world.cluster.set_call_time(Duration::from_secs(1_000));
    world.control_plane.push(wants(2, input("ns", "d2")));
    world
        .until("it is cut off", |_| counted("reconcile_timeouts"))
        .await;
}
