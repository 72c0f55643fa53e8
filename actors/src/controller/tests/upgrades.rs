//! What an earlier krane rendered otherwise.

use std::time::Duration;

use krane_domain::desired::Change;
use krane_domain::ids::Moment;
use krane_domain::kinds::Rules;
use krane_domain::kinds::deployment::DeploymentInput;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use serde_json::{Value, json};

use super::harness::{Choices, World};
use super::kinds::KINDS;
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

/// As an earlier krane rendered it, which knew one more label.
fn make_older(world: &World, rendered: &Rendered) {
    world.cluster.put(rendered, |body| {
        body["metadata"]["annotations"]["krane.unkey.com/renderer"] = json!("0");
        body["metadata"]["labels"]["unkey.com/legacy"] = json!("x");
    });
}

fn older_objects(world: &World) -> usize {
    let objects = world.cluster.uids().into_keys();
    let is_older = |object: &ObjectRef| {
        let live = world.cluster.object(object);
        live.is_some_and(|live| live.label("unkey.com/legacy").is_some())
    };
    objects.filter(is_older).count()
}

/// However many objects hang on one that is wanted: each counts.
#[tokio::test(start_paused = true)]
async fn of_every_kind_few_objects_are_rewritten_in_any_second() {
    for kind in &KINDS {
        let world = kind.in_place(12).await;
        for number in 1..=12 {
            let Ok(Change::Apply(desired)) = kind.wants(1, number, 1).change else {
                panic!("an apply")
            };
            let rules = Rules::default();
            make_older(&world, &desired.render(&rules, None));
            let live = world.cluster.object(&kind.reference(number));
            for dependant in desired.dependants(&rules, &live.expect("it was put")) {
                make_older(&world, &dependant);
            }
        }
        let mut left = older_objects(&world);
        assert!(left >= 12, "{}", kind.name());
        while left > 0 {
            crate::testing::pass(Duration::from_secs(1)).await;
            let now = older_objects(&world);
            assert!(left - now <= 3, "{}: {}", kind.name(), left - now);
            assert!(now < left, "{}: it goes on", kind.name());
            left = now;
        }
        world.memory(|memory| assert_eq!(memory.upgrades.waiting(), 0));
    }
}
