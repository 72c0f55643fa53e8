//! What breaks stays where it broke.

use std::time::Duration;

use krane_domain::object::{ObjectRef, Resource};
use krane_ports::{RpcFailureKind, WatchEnd};

use super::harness::{Choices, World};
use crate::testing::{FakeCluster, FakeControlPlane, input, wants};

/// Anvil and Sieve, start order (C18): acting before caches are filled.
#[tokio::test(start_paused = true)]
async fn nothing_is_asked_applied_or_reported_before_the_first_complete_lists() {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    cluster.fail_lists(true);
    control_plane.push(wants(1, input("ns", "d1")));
    let starting = World::start_with(Choices::default(), cluster.clone(), control_plane.clone());
    let early = tokio::time::timeout(Duration::from_secs(20), starting).await;
    assert!(control_plane.cursors().is_empty(), "no stream was opened");
    assert!(control_plane.reports().is_empty());
    assert_eq!(cluster.writes(), 0);
    drop(early);
}

/// slawlor/ractor#282 (B49), tqwewe/kameo#335 (B50): a killed actor loses nothing.
#[tokio::test(start_paused = true)]
async fn any_worker_may_be_killed_at_any_time_and_nothing_is_lost() {
    for victim in ["watch", "reporter", "reconciler", "stream", "resync"] {
        let world = World::start().await;
        world.cluster.set_call_time(Duration::from_millis(200));
        for version in 1..=20 {
            world
                .control_plane
                .push(wants(version, input("ns", &format!("d{version}"))));
        }
        world
            .until("some", |world| world.cluster.workloads() >= 3)
            .await;
        assert!(world.kill(victim), "{victim} was alive");
        world
            .until("all applied", |world| world.cursor() == 20)
            .await;
        assert_eq!(world.cluster.workloads(), 20);
        let all = |world: &World| {
            (1..=20).all(|n| world.control_plane.last_report(&format!("d{n}")).is_some())
        };
        world.until("all reported", all).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_comes_back_with_its_cursor_after_every_cut() {
    let world = World::start().await;
    for round in 1..=5u64 {
        world
            .control_plane
            .push(wants(round, input("ns", &format!("d{round}"))));
        world
            .until("applied", |world| world.cursor() == round)
            .await;
        world.control_plane.cut("internal");
        let opened = usize::try_from(round).expect("small") + 1;
        let time = world
            .until("reopened", |world| {
                world.control_plane.cursors().len() == opened
            })
            .await;
        assert!(time >= Duration::from_millis(990) && time <= Duration::from_millis(5_100));
    }
    assert_eq!(world.control_plane.cursors(), [0, 1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_stream_is_told_with_its_own_time_until_it_is_open_again() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.control_plane.fail(Some(RpcFailureKind::Transport));
    world.control_plane.cut("internal");
    world.pass(12).await;
    let stream = world.memory(|memory| memory.stream.clone());
    assert!(stream.opened_at.is_none() && !stream.was_open_since);
    assert!(stream.ended_at > stream.lost_at, "{stream:?}");
    world.control_plane.fail(None);
    world.pass(6).await;
    let stream = world.memory(|memory| memory.stream.clone());
    assert!(stream.opened_at.is_some() && stream.was_open_since);
    assert!(stream.last_end.is_some(), "it is still told");
}

/// A task that died in silence would leave a stream that looks open, or a kind nobody watches.
#[tokio::test(start_paused = true)]
async fn a_panic_while_reading_a_stream_or_a_watch_is_noticed_and_made_good() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;

    world.control_plane.panic_in_next_watch();
    world.control_plane.cut("unavailable");
    world.pass(6).await;
    world.control_plane.push(wants(2, input("ns", "d2")));
    let time = world
        .until("the stream is read again", |world| world.cursor() == 2)
        .await;
    assert!(time < Duration::from_secs(12), "{time:?}");

    world.cluster.panic_in_next_watch();
    world.cluster.end_watches(&WatchEnd::Closed);
    world.pass(20).await;
    let lost = ObjectRef::new(Resource::ReplicaSet, "ns", "d1");
    world.cluster.remove(&lost);
    let time = world
        .until("drift is seen again", |world| {
            world.cluster.object(&lost).is_some()
        })
        .await;
    assert!(time < Duration::from_secs(2), "{time:?}");
}
