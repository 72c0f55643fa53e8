//! A hundred sentinels and two hundred policies through everything that happens to them.

use std::time::Instant;

use k8s_openapi::api::apps::v1::Deployment;
use krane_proto::ctrl::v1::{ApplyCiliumNetworkPolicy, ApplySentinel, Health};
use krane_sim::control_plane::{Seen, samples};
use krane_testharness::{Outcome, World, eventually, limits};
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::{NAMESPACE, policies, sentinel, told};
use crate::world;

const ENVIRONMENTS: usize = 50;
const POLICIES: usize = 200;

/// Every sentinel is told like this, with the image that is wanted.
fn all_told(seen: &Seen, fleet: &[ApplySentinel], health: Health, available: i32) -> Option<()> {
    let is_so = |one: &ApplySentinel| {
        told(seen, &one.k8s_name).is_some_and(|told| {
            told.health() == health
                && told.available_replicas == available
                && (health == Health::Unhealthy || told.running_image == one.image)
        })
    };
    fleet.iter().all(is_so).then_some(())
}

async fn are_told(
    world: &World,
    what: &str,
    fleet: &[ApplySentinel],
    health: Health,
    available: i32,
) -> Outcome {
    let began = Instant::now();
    world
        .control
        .wait_for(what, limits::VERY_LONG, |seen| {
            all_told(seen, fleet, health, available)
        })
        .await?;
    println!(
        "{what}: {} of them after {:?}",
        fleet.len(),
        began.elapsed()
    );
    Ok(())
}

async fn count_policies(world: &World, expected: usize) -> Outcome {
    let params = ListParams::default().labels("unkey.com/networkpolicy.id");
    eventually(
        &format!("{expected} policies"),
        limits::VERY_LONG,
        async || {
            let mut found = 0;
            for index in 0..4 {
                let namespace = world.namespace(index);
                let list = policies(world, &namespace).list(&params).await;
                found += list.map_err(|error| error.to_string())?.items.len();
            }
            if found == expected {
                Ok(())
            } else {
                Err(format!("{found} are there"))
            }
        },
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sentinels_and_two_hundred_policies_follow_every_change() -> Outcome {
    let world = world().await?;
    let mut fleet: Vec<ApplySentinel> = (0..2 * ENVIRONMENTS)
        .map(|index| sentinel(&world, &format!("s{index}"), &format!("e{}", index / 2)))
        .collect();
    let wanted: Vec<ApplyCiliumNetworkPolicy> = (0..POLICIES)
        .map(|index| samples::policy(&world.namespace(index % 4), &format!("p{index}")))
        .collect();
    let push = |fleet: &[ApplySentinel]| {
        let states = fleet.iter().cloned().map(samples::apply_sentinel);
        world.control.push_all(states)
    };
    push(&fleet);
    world
        .control
        .push_all(wanted.iter().cloned().map(samples::apply_policy));
    let agent = world.agent().start().await?;
    count_policies(&world, POLICIES).await?;
    are_told(&world, "created and healthy", &fleet, Health::Healthy, 1).await?;

    for one in &mut fleet {
        one.image = "registry.example/app:well2".to_owned();
    }
    push(&fleet);
    are_told(&world, "another image runs", &fleet, Health::Healthy, 1).await?;

    for (replicas, health) in [
        (3, Health::Healthy),
        (1, Health::Healthy),
        (0, Health::Paused),
    ] {
        for one in &mut fleet {
            one.replicas = replicas;
        }
        push(&fleet);
        are_told(
            &world,
            &format!("scaled to {replicas}"),
            &fleet,
            health,
            replicas,
        )
        .await?;
    }

    for one in &fleet {
        world.control.push(samples::delete_sentinel(&one.k8s_name));
    }
    for policy in &wanted {
        let (namespace, name) = (&policy.k8s_namespace, &policy.k8s_name);
        world.control.push(samples::delete_policy(namespace, name));
    }
    are_told(&world, "deleted", &fleet, Health::Unhealthy, 0).await?;
    count_policies(&world, 0).await?;
    eventually("no Deployment is left", limits::LONG, async || {
        let params = ListParams::default().labels("app.kubernetes.io/component=sentinel");
        let left = world
            .api
            .within::<Deployment>(NAMESPACE)
            .list(&params)
            .await;
        let left = left.map_err(|error| error.to_string())?.items;
        match left.first() {
            None => Ok(()),
            Some(one) => Err(format!("{} and others", one.name_any())),
        }
    })
    .await?;
    agent.stop().await
}
