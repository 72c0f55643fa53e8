//! The objects of sentinels, and the policies of the control plane.

use krane_domain::object::Resource;
use krane_proto::ctrl::v1::{ApplyCiliumNetworkPolicy, ApplySentinel, Health};
use krane_sim::control_plane::samples;
use krane_testcontract::edits::Change;
use krane_testharness::edits::{DEPLOYMENT_EXEMPT, Edit, Victim};
use krane_testharness::{Agent, Outcome, World, eventually, limits};
use serde_json::json;

use super::all_are_undone;
use crate::sentinels::{NAMESPACE, all_five, has, is_told, sentinel};
use crate::world;

/// What stands beside the Deployment of a sentinel, by kind and what is added to the name.
const COMPANIONS: [(Resource, &str); 4] = [
    (Resource::Service, ""),
    (Resource::PodDisruptionBudget, ""),
    (Resource::Service, "-gossip-lan"),
    (Resource::CiliumNetworkPolicy, "-gossip-lan"),
];

/// Drift is corrected when the watch shows it, not by asking.
async fn agent(world: &World) -> Outcome<Agent> {
    world.agent().set("resync.interval", "24h").start().await
}

async fn running(world: &World) -> Outcome<(Agent, ApplySentinel)> {
    let front = sentinel(world, "front", "prod");
    world.control.push(samples::apply_sentinel(front.clone()));
    let agent = agent(world).await?;
    has(world, &front, &all_five(&front.k8s_name)).await?;
    Ok((agent, front))
}

async fn deployment(world: &World, front: &ApplySentinel) -> Outcome<Victim> {
    Victim::of(&world.api, Resource::Deployment, NAMESPACE, &front.k8s_name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_edit_of_the_deployment_of_a_sentinel_is_undone() -> Outcome {
    let world = world().await?;
    let (agent, front) = running(&world).await?;
    let mut victim = deployment(&world, &front).await?;
    let edits = victim.edits();
    all_are_undone(&mut victim, &edits).await?;
    is_told(&world, &front, Health::Healthy, 1, limits::LONG).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_edit_of_what_stands_beside_a_sentinel_is_undone() -> Outcome {
    let world = world().await?;
    let (agent, front) = running(&world).await?;
    for (resource, suffix) in COMPANIONS {
        let name = format!("{}{suffix}", front.k8s_name);
        let mut victim = Victim::of(&world.api, resource, NAMESPACE, &name).await?;
        let edits = victim.edits();
        all_are_undone(&mut victim, &edits).await?;
    }
    agent.stop().await
}

/// D11a: what rolls the pods stays, also when something else beside it is undone.
#[tokio::test(flavor = "multi_thread")]
async fn what_rolls_the_pods_of_a_sentinel_stays() -> Outcome {
    let world = world().await?;
    let (agent, front) = running(&world).await?;
    let mut victim = deployment(&world, &front).await?;
    let beside = Edit {
        name: "rollouts paused",
        change: |_| Change::Merge(json!({"spec": {"paused": true}})),
    };
    for edit in &DEPLOYMENT_EXEMPT {
        victim.suffer(edit).await?;
        victim.accept().await?;
        victim.suffer(&beside).await?;
        victim.recovers(&beside).await?;
    }
    agent.stop().await
}

/// One with everything that is edited.
fn policy(world: &World) -> ApplyCiliumNetworkPolicy {
    let ingress = json!([{
        "fromEndpoints": [{"matchLabels": {"app": "front"}}],
        "toPorts": [{"ports": [{"port": "8080", "protocol": "TCP"}]}],
    }]);
    let policy = json!({
        "spec": {"endpointSelector": {"matchLabels": {"app": "web"}}, "ingress": ingress},
    });
    ApplyCiliumNetworkPolicy {
        policy: policy.to_string().into_bytes().into(),
        ..samples::policy(&world.namespace(0), "policy")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_edit_of_a_policy_of_the_control_plane_is_undone() -> Outcome {
    let world = world().await?;
    world.control.push(samples::apply_policy(policy(&world)));
    let agent = agent(&world).await?;
    let namespace = world.namespace(0);
    let mut victim = eventually("the policy is there", limits::LONG, async || {
        let victim = Victim::policy(&world.api, &namespace, "policy").await;
        victim.map_err(|failure| failure.to_string())
    })
    .await?;
    let edits = victim.edits();
    all_are_undone(&mut victim, &edits).await?;
    agent.stop().await
}
