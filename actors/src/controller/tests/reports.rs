//! What runs is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use krane_domain::object::{ObjectRef, Resource};
use krane_domain::report::{InstanceStatus, Report};
use krane_ports::{RpcFailureKind, WatchEnd};
use tokio::time::Instant;

use super::harness::World;
use crate::breaker::BreakerState;
use crate::events::Happening;
use crate::testing::{input, wants};

fn statuses(world: &World, name: &str) -> Option<Vec<InstanceStatus>> {
    match world.control_plane.last_report(name)? {
        Report::Instances { instances, .. } => {
            Some(instances.iter().map(|instance| instance.status).collect())
        }
        Report::Health { .. } | Report::Gone { .. } => None,
    }
}

fn expected(is_ready: bool) -> Vec<InstanceStatus> {
    vec![if is_ready {
        InstanceStatus::Running
    } else {
        InstanceStatus::Pending
    }]
}

async fn with_pod(is_ready: bool) -> World {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.cluster.set_pod("ns", "d1", "p1", is_ready);
    world
        .until("reported", |world| {
            statuses(world, "d1") == Some(expected(is_ready))
        })
        .await;
    world
}

/// unkeyed/unkey 8b161adf66, PR #5328 (A25): pods change without their ReplicaSet.
#[tokio::test(start_paused = true)]
async fn a_readiness_flip_is_reported_at_once() {
    let world = with_pod(false).await;
    for is_ready in [true, false, true] {
        world.cluster.set_pod("ns", "d1", "p1", is_ready);
        let time = world
            .until("reported", |world| {
                statuses(world, "d1") == Some(expected(is_ready))
            })
            .await;
        assert!(time < Duration::from_millis(50), "{time:?}");
    }
}

/// unkeyed/unkey 1285ff3b24, PR #6968 (A27): when the last pod was gone, nothing was said.
#[tokio::test(start_paused = true)]
async fn a_workload_without_instances_is_reported_as_empty_not_passed_over_in_silence() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world
        .until("reported", |world| {
            statuses(world, "d1") == Some(Vec::new())
        })
        .await;
}

/// unkeyed/unkey 8b161adf66, pod_watch.go (C14), level-triggered rule: the edge is lost.
#[tokio::test(start_paused = true)]
async fn what_changed_while_the_control_plane_was_away_is_reported_when_it_is_back() {
    let world = with_pod(false).await;
    world.control_plane.fail(Some(RpcFailureKind::Transport));
    world.control_plane.cut("unavailable");
    world.cluster.set_pod("ns", "d1", "p1", true);
    world.pass(180).await;
    world.control_plane.fail(None);
    let time = world
        .until("reported", |world| {
            statuses(world, "d1") == Some(expected(true))
        })
        .await;
    assert!(time < Duration::from_secs(6), "{time:?}");
}

/// D26a: whoever hears the control plane again, the reporter sends at once what it held back.
#[tokio::test(start_paused = true)]
async fn a_sign_of_life_seen_by_somebody_else_wakes_the_reporter() {
    let world = with_pod(false).await;
    world.control_plane.fail(Some(RpcFailureKind::Transport));
    world.cluster.set_pod("ns", "d1", "p1", true);
    let is_open = |world: &World| {
        let state = world.memory(|memory| memory.breaker.state());
        matches!(state, BreakerState::Open { .. })
    };
    world.until("the breaker opens", is_open).await;
    // A question of the resync is the probe, and takes its time.
    world.memory(|memory| assert!(memory.breaker.allow(Duration::from_secs(3600))));
    world.control_plane.fail(None);
    world.pass(20).await;
    assert_eq!(statuses(&world, "d1"), Some(expected(false)));
    let now = world.board.now();
    world.workers.contact().heard(now);
    let time = world
        .until("reported", |world| {
            statuses(world, "d1") == Some(expected(true))
        })
        .await;
    assert!(time < Duration::from_millis(50), "{time:?}");
}

/// unkeyed/unkey 8b161adf66, PR #5328 (A36): the other side may forget.
#[tokio::test(start_paused = true)]
async fn everything_is_said_again_after_a_long_silence_and_every_ten_minutes() {
    let world = with_pod(true).await;
    let before = world.control_plane.reports().len();
    world.control_plane.fail(Some(RpcFailureKind::Transport));
    world.control_plane.cut("unavailable");
    // A report in vain shows the silence; then the status is again what was last delivered.
    world.cluster.set_pod("ns", "d1", "p1", false);
    world.pass(40).await;
    world.cluster.set_pod("ns", "d1", "p1", true);
    world.control_plane.fail(None);
    world
        .until("said again", |world| {
            world.control_plane.reports().len() > before
        })
        .await;
    let before = world.control_plane.reports().len();
    world.pass(620).await;
    assert!(world.control_plane.reports().len() > before);
}

/// unkeyed/unkey 8b161adf66, PR #5328 (A36): limits were not compared with what was said last.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_resized_in_place_is_reported() {
    let world = with_pod(true).await;
    world.cluster.resize_pod("p1", 250, 512);
    let is_told = |world: &World| match world.control_plane.last_report("d1") {
        Some(Report::Instances { instances, .. }) => {
            (instances[0].cpu_millicores, instances[0].memory_mib) == (250, 512)
        }
        _ => false,
    };
    let time = world.until("reported", is_told).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

/// Sieve, unobserved state, instaclustr/cassandra-operator#398 (C05): no event told of it.
#[tokio::test(start_paused = true)]
async fn deletions_nobody_told_of_are_found_by_the_next_list() {
    let world = with_pod(true).await;
    world.cluster.fail_lists(true);
    world
        .cluster
        .end_watches(&WatchEnd::Failed("cut".to_owned()));
    world
        .cluster
        .remove(&ObjectRef::new(Resource::ReplicaSet, "ns", "d1"));
    world.pass(20).await;
    world.cluster.fail_lists(false);
    world
        .until("made again and reported empty", |world| {
            world.cluster.workload("ns", "d1").is_some() && statuses(world, "d1") == Some(vec![])
        })
        .await;
}

/// kube-rs/kube#219, projectcalico/typha#227 (B01): after a 410 one list, and no loop.
#[tokio::test(start_paused = true)]
async fn an_expired_watch_is_followed_by_one_list() {
    let world = with_pod(true).await;
    let lists = world.cluster.lists();
    world.cluster.end_watches(&WatchEnd::Expired);
    world.pass(5).await;
    assert_eq!(
        world.cluster.lists() - lists,
        5,
        "one for each of five kinds"
    );
    world.cluster.set_pod("ns", "d1", "p1", false);
    world
        .until("seen again", |world| {
            statuses(world, "d1") == Some(expected(false))
        })
        .await;
}

/// kube-rs/kube#577, PR #703 (B04): no flood while the API server is down, and back soon after.
#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_down_is_asked_now_and_then() {
    let world = with_pod(true).await;
    let before = world.cluster.looks().len();
    world.cluster.fail_lists(true);
    world
        .cluster
        .end_watches(&WatchEnd::Failed("refused".to_owned()));
    world.pass(60).await;
    let mut attempts: BTreeMap<Resource, Vec<Instant>> = BTreeMap::new();
    for (resource, at) in world.cluster.looks().split_off(before) {
        attempts.entry(resource).or_default().push(at);
    }
    assert_eq!(attempts.len(), 5);
    for (resource, moments) in &attempts {
        let count = moments.len();
        assert!(count <= 20, "{resource:?}: {count} attempts in a minute");
    }
    let last: BTreeSet<_> = attempts.values().filter_map(|all| all.last()).collect();
    assert_eq!(last.len(), 5, "not in step");
    world.cluster.fail_lists(false);
    world.cluster.set_pod("ns", "d1", "p1", false);
    let time = world
        .until("seen again", |world| {
            statuses(world, "d1") == Some(expected(false))
        })
        .await;
    assert!(time < Duration::from_secs(10), "{time:?}");
}

/// A watch from a version the server never reached stays silent for ever (D22b).
#[tokio::test(start_paused = true)]
async fn a_watch_that_stays_silent_is_replaced_and_then_listed_afresh() {
    let world = with_pod(true).await;
    let lists = world.cluster.lists();
    world.cluster.forget_watches();
    world.cluster.set_pod("ns", "d1", "p1", false);
    let time = world
        .until("seen", |world| {
            statuses(world, "d1") == Some(expected(false))
        })
        .await;
    assert!(time <= Duration::from_secs(180), "{time:?}");
    assert!(world.cluster.lists() > lists);
}

#[tokio::test(start_paused = true)]
async fn two_workloads_of_one_name_do_not_overwrite_each_others_report() {
    let world = with_pod(true).await;
    world.control_plane.push(wants(2, input("other", "d1")));
    world.until("applied", |world| world.cursor() == 2).await;
    world.pass(30).await;
    assert_eq!(
        statuses(&world, "d1"),
        Some(expected(true)),
        "the first one is still known"
    );
    assert_eq!(world.memory(|memory| memory.view.name_conflicts()), 1);
    // When the first one goes, the other is what its name stands for.
    world
        .control_plane
        .push(crate::testing::unwants(3, "ns", "d1"));
    world
        .until("the other is reported", |world| {
            statuses(world, "d1") == Some(vec![])
        })
        .await;
}

/// The page must not call everything well while krane is blind.
#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_work_says_since_when_and_why_until_it_works_again() {
    let world = with_pod(true).await;
    let broken = |world: &World| world.memory(|memory| memory.broken_watches.clone());
    assert!(broken(&world).is_empty());
    world.cluster.fail_lists(true);
    let before = world.board.now();
    world
        .cluster
        .end_watches(&WatchEnd::Failed("cut".to_owned()));
    world.pass(20).await;
    let seen = broken(&world);
    assert_eq!(seen.len(), 5, "each of five kinds: {seen:?}");
    for watch in seen.values() {
        let passed = watch.since.saturating_sub(before);
        assert!(passed < Duration::from_secs(1), "{watch:?}");
        assert_ne!(watch.error, "cut", "the last error, not the first");
    }
    world.cluster.fail_lists(false);
    let time = world
        .until("all work again", |world| broken(world).is_empty())
        .await;
    assert!(time < Duration::from_secs(11), "{time:?}");
}

/// Events tell an outage of the API server once, not once per kind, with how long it took.
#[tokio::test(start_paused = true)]
async fn an_outage_of_the_api_server_has_a_start_and_an_end() {
    let world = with_pod(true).await;
    let told = |world: &World| -> Vec<Happening> {
        let events = world.board.events().newest_first().into_iter();
        let names = ["api_server_lost", "api_server_recovered"];
        let ours = events.filter(|event| names.contains(&event.what.name()));
        ours.map(|event| event.what).collect()
    };
    world.cluster.fail_lists(true);
    world
        .cluster
        .end_watches(&WatchEnd::Failed("cut".to_owned()));
    world.pass(4).await;
    assert_eq!(told(&world), [], "it may be over in a moment");
    world.pass(56).await;
    assert!(
        matches!(&told(&world)[..], [Happening::ApiServerLost { silent, .. }] if silent.as_secs() < 11),
        "{:?}",
        told(&world)
    );
    world.cluster.fail_lists(false);
    world
        .until("it is over", |world| told(world).len() > 1)
        .await;
    world.pass(60).await;
    assert!(
        matches!(
            &told(&world)[..],
            [Happening::ApiServerRecovered { took }, Happening::ApiServerLost { .. }]
                if (60..71).contains(&took.as_secs())
        ),
        "{:?}",
        told(&world)
    );
}

/// Nothing happens in a quiet cluster: that a watch stays open has to be enough.
#[tokio::test(start_paused = true)]
async fn a_watch_that_was_opened_again_works_though_nothing_happens() {
    let world = with_pod(true).await;
    let lists = world.cluster.lists();
    world
        .cluster
        .end_watches(&WatchEnd::Failed("cut".to_owned()));
    world
        .until("broken", |world| {
            world.memory(|memory| !memory.broken_watches.is_empty())
        })
        .await;
    let time = world
        .until("works", |world| {
            world.memory(|memory| memory.broken_watches.is_empty())
        })
        .await;
    assert!(time < Duration::from_secs(4), "{time:?}");
    assert_eq!(world.cluster.lists(), lists, "nothing was listed for it");
}

/// The lists before a controller's start are no follower's, and nobody else takes back what the
/// followers of a former start said.
#[tokio::test(start_paused = true)]
async fn a_kind_that_was_listed_in_whole_is_seen_again_whoever_listed_it() {
    let world = with_pod(true).await;
    let broken = |world: &World| world.memory(|memory| memory.broken_watches.len());
    world.cluster.fail_lists(true);
    world
        .cluster
        .end_watches(&WatchEnd::Failed("cut".to_owned()));
    world.pass(20).await;
    assert_eq!(broken(&world), 5);
    world.cluster.fail_lists(false);
    let lists = (world.workers.prepare())().await;
    assert_eq!(lists, Ok(()));
    assert_eq!(broken(&world), 0);
}
