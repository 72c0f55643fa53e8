//! Kinds that krane may not list: unknown, neither listed nor empty (F31, D38b).

use std::time::Duration;

use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_domain::kinds::deployment::{AutoscalingInput, DeploymentInput};
use krane_domain::object::{ObjectRef, Resource};
use krane_ports::WatchEnd;
use serde_json::{Value, json};

use super::harness::{Choices, World};
use crate::testing::{FakeCluster, FakeControlPlane, Op, input, unwants, wants, wants_sentinel};

/// A permission that was given back is noticed after this time at the latest.
const NOTICED: Duration = Duration::from_secs(21);

fn scaled(name: &str) -> DeploymentInput {
    DeploymentInput {
        replicas: 2,
        autoscaling: Some(AutoscalingInput {
            min_replicas: 3,
            max_replicas: 9,
            ..AutoscalingInput::default()
        }),
        ..input("ns", name)
    }
}

fn fixed(name: &str) -> DeploymentInput {
    DeploymentInput {
        replicas: 2,
        ..input("ns", name)
    }
}

fn workload(name: &str) -> ObjectRef {
    ObjectRef::new(Resource::ReplicaSet, "ns", name)
}

fn autoscaler(name: &str) -> ObjectRef {
    ObjectRef::new(Resource::HorizontalPodAutoscaler, "ns", name)
}

fn replicas(world: &World, name: &str) -> Value {
    let live = world.cluster.object(&workload(name));
    live.map_or(Value::Null, |live| live.value()["spec"]["replicas"].clone())
}

/// A world in which this kind may not be listed from the start.
async fn without(resource: Resource, choices: Choices) -> World {
    let cluster = FakeCluster::default();
    cluster.forbid(resource, true);
    World::start_with(choices, cluster, FakeControlPlane::default()).await
}

/// The permission is taken away. A watch that is open stays open: it ends when the server ends it.
fn forbid_now(world: &World, resource: Resource) {
    world.cluster.forbid(resource, true);
    world.cluster.end_watches(&WatchEnd::Closed);
}

/// What is said of everything that cannot be applied.
fn reasons(world: &World) -> Vec<String> {
    world.memory(|memory| {
        let troubles = memory.backlog.in_trouble();
        troubles
            .map(|it| format!("{}: {}: {}", it.trouble.kind.name(), it.key, it.trouble))
            .collect()
    })
}

fn writes_of(world: &World, resource: Resource) -> usize {
    let is_of = |op: &&Op| match op {
        Op::Apply(object) | Op::Adopt(object) | Op::Delete(object) => object.resource == resource,
        Op::Metadata(_) | Op::Get(_) => false,
    };
    world.cluster.log().iter().filter(is_of).count()
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_listed_blocks_only_the_states_that_need_it() {
    let world = without(Resource::HorizontalPodAutoscaler, Choices::default()).await;
    world.control_plane.push(wants(1, scaled("web")));
    world.control_plane.push(wants(2, fixed("api")));
    world
        .until("the one that needs none is applied", |world| {
            world.cluster.object(&workload("api")).is_some()
        })
        .await;
    world.pass(300).await;
    assert!(world.cluster.object(&workload("web")).is_none());
    assert_eq!(writes_of(&world, Resource::HorizontalPodAutoscaler), 0);
    assert_eq!(world.cursor(), 0, "the cursor waits");
    let reasons = reasons(&world);
    let [reason] = &reasons[..] else {
        panic!("{reasons:?}")
    };
    assert!(reason.starts_with("misconfigured: ns/web: "), "{reason}");
    let permission = "list and watch horizontalpodautoscalers in API group \"autoscaling\"";
    assert!(reason.contains(permission), "{reason}");

    world
        .cluster
        .forbid(Resource::HorizontalPodAutoscaler, false);
    let time = world
        .until("all applied", |world| world.cursor() == 2)
        .await;
    assert!(time <= NOTICED, "{time:?}");
    assert!(world.cluster.object(&autoscaler("web")).is_some());
}

#[tokio::test(start_paused = true)]
async fn without_a_list_of_policies_every_workload_waits_unless_cilium_is_not_required() {
    for is_required in [true, false] {
        let choices = Choices {
            rules: Rules {
                is_cilium_required: is_required,
                ..Rules::default()
            },
            ..Choices::default()
        };
        let world = without(Resource::CiliumNetworkPolicy, choices).await;
        world.control_plane.push(wants(1, fixed("web")));
        world.pass(300).await;
        let is_there = world.cluster.object(&workload("web")).is_some();
        assert_eq!(
            (is_there, world.cursor() == 1),
            (!is_required, !is_required)
        );
        assert_eq!(writes_of(&world, Resource::CiliumNetworkPolicy), 0);
        world.cluster.forbid(Resource::CiliumNetworkPolicy, false);
        let time = world
            .until("isolated", |world| {
                writes_of(world, Resource::CiliumNetworkPolicy) > 0 && world.cursor() == 1
            })
            .await;
        assert!(time <= NOTICED, "{time:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_or_pull_secret_that_nobody_may_list_blocks_all_workloads() {
    let world = without(Resource::Namespace, Choices::default()).await;
    world.control_plane.push(wants(1, fixed("web")));
    world.pass(120).await;
    assert_eq!(world.cluster.writes(), 0);
    let reasons = reasons(&world).join("\n");
    assert!(reasons.contains("list and watch namespaces"), "{reasons}");
    world.cluster.forbid(Resource::Namespace, false);
    let time = world.until("applied", |world| world.cursor() == 1).await;
    assert!(time <= NOTICED, "{time:?}");
}

/// With HPAs unknown, replicas that another manager owns stay, whatever the state wants.
#[tokio::test(start_paused = true)]
async fn a_kind_that_becomes_forbidden_is_neither_written_nor_deleted_and_replicas_of_others_stay()
{
    let world = World::start().await;
    world.control_plane.push(wants(1, scaled("web")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.cluster.scale(&workload("web"), 7);
    world.pass(1).await;

    forbid_now(&world, Resource::HorizontalPodAutoscaler);
    world
        .until("it is unknown", |world| {
            world.memory(|memory| !memory.broken_watches.is_empty())
        })
        .await;
    let writes = writes_of(&world, Resource::HorizontalPodAutoscaler);
    world.control_plane.push(wants(2, fixed("web")));
    world.control_plane.push(wants(3, scaled("api")));
    world.pass(120).await;
    assert_eq!(
        replicas(&world, "web"),
        json!(7),
        "an autoscaler may own it"
    );
    assert!(world.cluster.object(&autoscaler("web")).is_some());
    assert!(world.cluster.object(&workload("api")).is_none());
    assert_eq!(writes_of(&world, Resource::HorizontalPodAutoscaler), writes);

    world
        .cluster
        .forbid(Resource::HorizontalPodAutoscaler, false);
    let time = world
        .until("as the states want it", |world| {
            replicas(world, "web") == json!(2)
                && world.cluster.object(&autoscaler("web")).is_none()
                && world.cluster.object(&autoscaler("api")).is_some()
        })
        .await;
    assert!(time <= NOTICED, "{time:?}");
    world.until("applied", |world| world.cursor() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn drift_of_a_kind_that_became_forbidden_is_reverted_once_it_may_be_listed_again() {
    let world = World::start().await;
    world.control_plane.push(wants(1, scaled("web")));
    world.until("applied", |world| world.cursor() == 1).await;
    forbid_now(&world, Resource::HorizontalPodAutoscaler);
    world.cluster.remove(&autoscaler("web"));
    world.pass(180).await;
    assert!(world.cluster.object(&autoscaler("web")).is_none());
    world
        .cluster
        .forbid(Resource::HorizontalPodAutoscaler, false);
    let is_back = |world: &World| world.cluster.object(&autoscaler("web")).is_some();
    let time = world.until("it is there again", is_back).await;
    assert!(time <= NOTICED, "{time:?}");
}

/// The primary kind and pods: the controller stands still, and loses nothing.
#[tokio::test(start_paused = true)]
async fn a_controller_whose_primary_kind_or_pods_become_forbidden_stands_still() {
    for resource in [Resource::ReplicaSet, Resource::Pod] {
        let world = World::start().await;
        world.control_plane.push(wants(1, fixed("web")));
        let is_told = |world: &World| world.control_plane.last_report("web").is_some();
        world.until("told", is_told).await;
        forbid_now(&world, resource);
        world
            .until("it is unknown", |world| {
                world.memory(|memory| !memory.broken_watches.is_empty())
            })
            .await;
        let (writes, reports) = (world.cluster.writes(), world.control_plane.reports().len());
        world.control_plane.push(wants(2, fixed("api")));
        world.control_plane.push(unwants(3, "ns", "web"));
        world.cluster.set_pod("ns", "web", "p1", true);
        world.pass(900).await;
        assert_eq!(world.cluster.writes(), writes, "{resource:?}");
        assert_eq!(world.control_plane.reports().len(), reports, "{resource:?}");
        world.cluster.forbid(resource, false);
        let time = world.until("applied", |world| world.cursor() == 3).await;
        assert!(time <= NOTICED, "{time:?}");
        let is_told = |world: &World| world.control_plane.last_report("api").is_some();
        world.until("told", is_told).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_sentinel_waits_for_every_kind_it_is_made_of_also_to_go() {
    let choices = || Choices {
        controller: Controller::Sentinels,
        ..Choices::default()
    };
    let sentinel = ObjectRef::new(Resource::Deployment, "sentinel", "s1");
    let world = without(Resource::PodDisruptionBudget, choices()).await;
    world.control_plane.push(wants_sentinel(1, "s1"));
    world.pass(120).await;
    assert!(world.cluster.object(&sentinel).is_none());
    world.cluster.forbid(Resource::PodDisruptionBudget, false);
    world.until("applied", |world| world.cursor() == 1).await;

    forbid_now(&world, Resource::Service);
    world.pass(10).await;
    world.control_plane.push(unwants(2, "sentinel", "s1"));
    world.pass(120).await;
    assert!(world.cluster.object(&sentinel).is_some());
    world.cluster.forbid(Resource::Service, false);
    world.until("gone", |world| world.cursor() == 2).await;
    let left = world.cluster.uids();
    let is_left = |kind| left.keys().any(|object| object.resource == kind);
    assert!(!is_left(Resource::Service) && !is_left(Resource::Deployment));
}

fn looks(world: &World) -> usize {
    let looks = world.cluster.looks().into_iter();
    looks
        .filter(|(resource, _)| *resource == Resource::HorizontalPodAutoscaler)
        .count()
}

/// An API server that has just started may refuse for a moment; afterwards each 20 s are enough.
#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_listed_is_tried_soon_and_then_each_20_seconds() {
    let world = without(Resource::HorizontalPodAutoscaler, Choices::default()).await;
    world
        .cluster
        .forbid(Resource::HorizontalPodAutoscaler, false);
    let is_seen = |world: &World| world.memory(|memory| memory.broken_watches.is_empty());
    let time = world.until("seen", is_seen).await;
    assert!(time <= Duration::from_secs(2), "{time:?}");

    forbid_now(&world, Resource::HorizontalPodAutoscaler);
    world.pass(120).await;
    let before = looks(&world);
    world.pass(600).await;
    let looks = looks(&world) - before;
    assert!((30..=60).contains(&looks), "{looks} looks in 10 min");
}
