//! Pods of an older template (D16).

use std::time::Duration;

use krane_domain::kinds::Rules;

use super::harness::{Choices, World};
use crate::testing::{FakeCluster, FakeControlPlane, input, wants};

async fn with_outdated_pods(replaces_outdated_pods: bool) -> World {
    let rules = Rules {
        replaces_outdated_pods,
        ..Rules::default()
    };
    let choices = Choices {
        rules,
        ..Choices::default()
    };
    let world =
        World::start_with(choices, FakeCluster::default(), FakeControlPlane::default()).await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    for pod in ["a", "b", "c"] {
        world
            .cluster
            .set_pod_of("ns", "d1", pod, false, Some("older"));
    }
    world
        .cluster
        .set_pod_of("ns", "d1", "serving", true, Some("older"));
    world
        .until("shown as outdated", |world| {
            world.memory(|memory| memory.outdated.values().sum::<usize>()) == 4
        })
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn outdated_pods_stay_unless_the_operator_wants_them_replaced() {
    let world = with_outdated_pods(false).await;
    world.pass(600).await;
    assert_eq!(world.cluster.pods().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn unready_outdated_pods_go_one_by_one_and_serving_ones_stay() {
    let world = with_outdated_pods(true).await;
    let mut pauses = Vec::new();
    for left in [3, 2, 1] {
        let pause = world
            .until("one is replaced", |world| {
                world.cluster.pods().len() <= left
            })
            .await;
        assert_eq!(world.cluster.pods().len(), left, "one at a time");
        pauses.push(pause);
    }
    assert!(
        pauses[1..]
            .iter()
            .all(|pause| *pause >= Duration::from_secs(9)),
        "{pauses:?}"
    );
    world.pass(600).await;
    assert_eq!(world.cluster.pods(), ["serving"]);
}
