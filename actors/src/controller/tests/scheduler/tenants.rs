//! No call widens what the control plane's workloads share, whoever comes first.

use krane_domain::ids::Controller;
use krane_domain::kinds::deployment::DeploymentInput;
use krane_domain::kinds::sentinel::SentinelInput;
use krane_domain::object::Resource;
use krane_domain::scheduler::{Call, CallFailureKind};
use krane_ports::SchedulerDesk;
use serde_json::Value;

use super::{apply, delete, desk, kind};
use crate::controller::tests::harness::World;
use crate::testing::{input, sentinel_input, unwants, wants, wants_sentinel};

const REFUSED: Option<CallFailureKind> = Some(CallFailureKind::FailedPrecondition);

/// Of another workspace, in the same namespace and environment.
fn of(workspace: &str, name: &str, port: i32) -> DeploymentInput {
    DeploymentInput {
        workspace_id: workspace.into(),
        port,
        ..input("ns", name)
    }
}

/// Everything that workloads share, without what every write changes.
fn shared(world: &World) -> Vec<Value> {
    let objects = world.cluster.objects().into_iter();
    let shared = objects.filter(|live| {
        matches!(
            live.reference.resource,
            Resource::Namespace | Resource::CiliumNetworkPolicy | Resource::Secret
        )
    });
    let content = shared.map(|live| {
        let value = live.value();
        let labels = value["metadata"]["labels"].clone();
        serde_json::json!({
            "what": live.reference.to_string(), "labels": labels, "spec": value["spec"],
        })
    });
    content.collect()
}

async fn with_a_state(workspace: &str) -> World {
    let world = World::start().await;
    world
        .control_plane
        .push(wants(1, of(workspace, "theirs", 80)));
    world.until("applied", |world| world.cursor() == 1).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_call_in_an_environment_of_another_workspace_is_refused() {
    let mut world = with_a_state("ws_m").await;
    let before = shared(&world);
    let writes = world.cluster.writes();
    for round in 0..2 {
        let desk = desk(&world).await;
        for stranger in ["ws_a", "ws_z"] {
            let failure = desk.call(apply(of(stranger, "called", 81))).await;
            let failure = failure.expect_err("refused");
            assert_eq!(failure.kind, CallFailureKind::FailedPrecondition);
            let words = "environment env_1 in namespace ns belongs to workspace ws_m";
            assert!(failure.message.contains(words), "{failure}");
        }
        assert_eq!(world.cluster.writes(), writes, "round {round}");
        // What is live says as much as a state.
        world.control_plane.restore([]);
        world.reboot().await;
    }
    assert_eq!(shared(&world), before);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_the_same_workspace_or_another_environment_is_none_of_that() {
    let world = with_a_state("ws_m").await;
    let before = shared(&world);
    let desk = desk(&world).await;
    assert_eq!(desk.call(apply(of("ws_m", "same", 80))).await, Ok(()));
    let elsewhere = DeploymentInput {
        environment_id: "env_2".into(),
        ..of("ws_a", "elsewhere", 80)
    };
    assert_eq!(desk.call(apply(elsewhere)).await, Ok(()));
    let after = shared(&world);
    assert!(before.iter().all(|object| after.contains(object)));
    assert_eq!(after.len(), before.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn a_state_takes_the_environment_over_from_calls() {
    let expected = shared(&with_a_state("ws_m").await);
    for stranger in ["ws_a", "ws_z"] {
        let mut world = World::start().await;
        let calls = desk(&world).await;
        assert_eq!(calls.call(apply(of(stranger, "called", 81))).await, Ok(()));
        world.control_plane.push(wants(1, of("ws_m", "theirs", 80)));
        world.until("applied", |world| world.cursor() == 1).await;
        assert_eq!(shared(&world), expected);
        assert_eq!(world.cluster.workloads(), 2);
        let again = calls.call(apply(of(stranger, "called", 82))).await;
        assert_eq!(kind(again), REFUSED);
        world.reboot().await;
        world.pass(100).await;
        assert_eq!(shared(&world), expected, "after a restart");
        let calls = desk(&world).await;
        let again = calls.call(apply(of(stranger, "called", 82))).await;
        assert_eq!(kind(again), REFUSED);
        assert_eq!(calls.call(delete("called")).await, Ok(()));
        assert_eq!(shared(&world), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_left_out_counts_again_when_the_control_plane_leaves() {
    let world = World::start().await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(apply(of("ws_a", "called", 81))).await, Ok(()));
    let alone = shared(&world);
    world.control_plane.push(wants(1, of("ws_m", "theirs", 80)));
    world.until("applied", |world| world.cursor() == 1).await;
    assert_ne!(shared(&world), alone);
    world.control_plane.push(unwants(2, "ns", "theirs"));
    world
        .until("as before", |world| shared(world) == alone)
        .await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_hears_that_the_environment_is_the_control_planes() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world
        .cluster
        .set_call_time(std::time::Duration::from_secs(1));
    let push = async {
        crate::testing::pass(std::time::Duration::from_millis(500)).await;
        world.control_plane.push(wants(1, of("ws_m", "theirs", 80)));
    };
    let (answer, ()) = tokio::join!(desk.call(apply(of("ws_a", "called", 81))), push);
    assert_eq!(kind(answer), REFUSED);
}

fn sentinel_of(workspace: &str, name: &str) -> Call {
    Call::ApplySentinel {
        namespace: "sentinel".into(),
        input: Box::new(SentinelInput {
            workspace_id: workspace.into(),
            ..sentinel_input(name)
        }),
    }
}

/// Whether the gossip objects of one sentinel select the pods of another.
fn reaches(world: &World, name: &str, other: &str) -> bool {
    let objects = world.cluster.objects();
    let find = |resource, name: &str| {
        let mut objects = objects.iter();
        let found = objects
            .find(|live| live.reference.resource == resource && *live.reference.name == *name);
        found.expect("it is there").value()
    };
    let gossip = format!("{name}-gossip-lan");
    let service = find(Resource::Service, &gossip);
    let policy = find(Resource::CiliumNetworkPolicy, &gossip);
    let pods = find(Resource::Deployment, other);
    let labels = &pods["spec"]["template"]["metadata"]["labels"];
    let selects = |selector: &Value| {
        let selector = selector.as_object().expect("a selector");
        selector.iter().all(|(key, value)| labels[key] == *value)
    };
    selects(&service["spec"]["selector"])
        || selects(&policy["spec"]["endpointSelector"]["matchLabels"])
        || selects(&policy["spec"]["ingress"][0]["fromEndpoints"][0]["matchLabels"])
}

#[tokio::test(start_paused = true)]
async fn a_sentinel_that_is_called_for_joins_no_gossip_of_another_workspace() {
    let world = World::of(Controller::Sentinels).await;
    let desk = desk(&world).await;
    world.control_plane.push(wants_sentinel(1, "theirs"));
    world.until("applied", |world| world.cursor() == 1).await;
    assert!(reaches(&world, "theirs", "theirs"));
    assert_eq!(kind(desk.call(sentinel_of("ws_a", "late")).await), REFUSED);
    let workspace = sentinel_input("same").workspace_id;
    assert_eq!(desk.call(sentinel_of(&workspace, "same")).await, Ok(()));
    assert!(reaches(&world, "theirs", "same"), "of one workspace");
}
