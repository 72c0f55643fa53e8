//! What an earlier krane rendered otherwise.

use std::time::Duration;

use krane_domain::desired::Change;
use krane_domain::ids::Moment;
use krane_domain::kinds::Rules;
use krane_domain::kinds::deployment::DeploymentInput;
use krane_domain::object::Resource;
use serde_json::{Value, json};

use super::harness::{Choices, World};
use crate::testing::{FakeCluster, FakeControlPlane, Op, input, wants};

/// So many workloads, as an earlier krane left them.
async fn left_behind(count: usize, may_upgrade: bool) -> World {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    for (index, version) in (0..count).zip(1..) {
        let state = wants(version, input("ns", &format!("d{index}")));
        let Ok(Change::Apply(desired)) = &state.change else {
            panic!("an apply")
        };
        let rendered = desired.render(&Rules::default(), None);
        cluster.put(&rendered, |body| {
            body["metadata"]["annotations"]["krane.unkey.com/renderer"] = json!("0");
            body["spec"]["minReadySeconds"] = json!(1);
        });
        control_plane.push(state);
    }
    let choices = Choices {
        may_upgrade,
        ..Choices::default()
    };
    World::start_with(choices, cluster, control_plane).await
}

fn seconds(world: &World, name: &str) -> Option<Value> {
    let live = world.cluster.workload("ns", name)?.value();
    live.pointer("/spec/minReadySeconds").cloned()
}

fn rewritten(world: &World) -> usize {
    let log = world.cluster.log();
    log.iter()
        .filter(|op| matches!(op, Op::Apply(object) if object.resource == Resource::ReplicaSet))
        .count()
}

/// D16: a new version must not rewrite a whole cluster at once; and nobody waits for it.
#[tokio::test(start_paused = true)]
async fn what_only_looks_older_counts_as_in_place_and_is_rewritten_one_by_one() {
    let world = left_behind(20, true).await;
    world.until("in place", |world| world.cursor() == 20).await;
    assert_eq!(rewritten(&world), 0, "the cursor waits for none of it");
    let began: Moment = world.board.now();
    world
        .until("all rewritten", |world| rewritten(world) == 20)
        .await;
    let took = world.board.now().saturating_sub(began);
    assert!(took >= Duration::from_millis(19 * 334), "{took:?}");
    assert!(took <= Duration::from_secs(10), "{took:?}");
    assert_eq!(seconds(&world, "d7"), Some(json!(30)));
    world.memory(|memory| assert_eq!(memory.upgrades.waiting(), 0));
    crate::testing::pass(Duration::from_secs(120)).await;
    assert_eq!(rewritten(&world), 20, "once each");
}

#[tokio::test(start_paused = true)]
async fn what_is_paused_stays_until_its_state_changes() {
    let world = left_behind(3, false).await;
    world.until("in place", |world| world.cursor() == 3).await;
    crate::testing::pass(Duration::from_secs(300)).await;
    assert_eq!(rewritten(&world), 0);
    let newer = DeploymentInput {
        image: "nginx:2".to_owned(),
        ..input("ns", "d1")
    };
    world.control_plane.push(wants(4, newer));
    world.until("applied", |world| world.cursor() == 4).await;
    assert_eq!(
        seconds(&world, "d1"),
        Some(json!(30)),
        "with all that is new"
    );
    assert_eq!(seconds(&world, "d2"), Some(json!(1)));
    assert_eq!(rewritten(&world), 1);
}
