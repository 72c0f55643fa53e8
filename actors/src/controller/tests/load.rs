//! Much at once.

use std::time::Duration;

use krane_domain::report::{InstanceStatus, Report};

use super::harness::{Choices, World};
use crate::testing::{FakeCluster, FakeControlPlane, input, wants};

fn many(max_lanes: usize) -> Choices {
    Choices {
        max_lanes,
        ..Choices::default()
    }
}

/// unkeyed/unkey 0587420153, PR #5624 (A04): a live change stood in line behind the replay of
/// everything.
#[tokio::test(start_paused = true)]
async fn a_live_change_overtakes_three_thousand_replayed_ones() {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    cluster.set_call_time(Duration::from_millis(50));
    for version in 1..=3_000 {
        let namespace = format!("ns{}", version % 100);
        control_plane.push(wants(version, input(&namespace, &format!("d{version}"))));
    }
    let world = World::start_with(many(32), cluster, control_plane).await;
    world.pass(1).await;
    world.control_plane.push(wants(3_001, input("ns1", "live")));
    let time = world
        .until("the live change is applied", |world| {
            world.cluster.workload("ns1", "live").is_some()
        })
        .await;
    assert!(time < Duration::from_secs(15), "{time:?}");
    let replayed = world.cluster.workloads();
    assert!(replayed < 1_000, "{replayed} were faster");
    assert!(world.cluster.most_calls() <= 32);
    let bytes = world.memory(|memory| memory.backlog.bytes());
    assert!(bytes <= 1 << 20, "{bytes}");
}

/// hashicorp/nomad#16381 (B18): each restart told everything at once.
#[tokio::test(start_paused = true)]
async fn restarts_tell_two_thousand_workloads_without_a_stampede() {
    const WORKLOADS: u64 = 2_000;
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    for version in 1..=WORKLOADS {
        let namespace = format!("ns{}", version % 100);
        control_plane.push(wants(version, input(&namespace, &format!("d{version}"))));
    }
    let mut world = World::start_with(many(32), cluster, control_plane).await;
    world
        .until("applied", |world| world.cursor() == WORKLOADS)
        .await;
    world.cluster.set_pod("ns7", "d7", "p", true);
    world
        .control_plane
        .set_report_time(Duration::from_millis(100));
    for round in 0..3 {
        world.reboot().await;
        world.pass(1).await;
        let is_ready = round % 2 == 1;
        let status = if is_ready {
            InstanceStatus::Running
        } else {
            InstanceStatus::Pending
        };
        world.cluster.set_pod("ns7", "d7", "p", is_ready);
        let is_told = |world: &World| {
            matches!(world.control_plane.last_report("d7"),
                Some(Report::Instances { instances, .. }) if instances.first().is_some_and(|it| it.status == status))
        };
        let time = world.until("the live change is told", is_told).await;
        assert!(time < Duration::from_secs(5), "{time:?}");
    }
    let before = world.control_plane.reports().len();
    world
        .until("all are told again", |world| {
            world.control_plane.reports().len() >= before + 1_000
        })
        .await;
    let most = world.control_plane.most_reporting();
    assert!((1..=32).contains(&most), "{most}");
}
