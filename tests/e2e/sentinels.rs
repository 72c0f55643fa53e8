//! Sentinels on a real API server: five objects each, and what is told of them.

mod fleet;
mod pods;
mod take_over;

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use krane_proto::ctrl::v1::{ApplySentinel, Health, ReportSentinelStatusRequest};
use krane_sim::control_plane::{Kind, Report, Seen, samples};
use krane_testharness::{Agent, Outcome, World, eventually, limits};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::world;

pub(crate) const NAMESPACE: &str = "sentinel";

/// A sentinel of this world alone.
pub(crate) fn sentinel(world: &World, name: &str, environment: &str) -> ApplySentinel {
    let prefix = world.namespace(0);
    let name = format!("{prefix}-{name}");
    ApplySentinel {
        environment_id: format!("env_{prefix}_{environment}"),
        ..samples::sentinel(&name)
    }
}

/// What was last told of a sentinel.
fn told<'a>(seen: &'a Seen, name: &str) -> Option<&'a ReportSentinelStatusRequest> {
    match seen.report(name)? {
        Report::Sentinel(report) => Some(report),
        Report::Update { .. } | Report::Deleted { .. } | Report::Neither => None,
    }
}

pub(crate) async fn is_told(
    world: &World,
    sentinel: &ApplySentinel,
    health: Health,
    available: i32,
    limit: Duration,
) -> Outcome {
    let what = format!("{} is told {health:?} with {available}", sentinel.k8s_name);
    world
        .control
        .wait_for(&what, limit, |seen| {
            let told = told(seen, &sentinel.k8s_name)?;
            let is_so = told.health() == health
                && told.available_replicas == available
                && told.sentinel_id == sentinel.sentinel_id;
            is_so.then_some(())
        })
        .await?;
    Ok(())
}

pub(crate) fn policies(world: &World, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("cilium.io", "v2", "CiliumNetworkPolicy");
    Api::namespaced_with(world.api.client(), namespace, &ApiResource::from_gvk(&gvk))
}

/// `kind name` of everything that carries the id of a sentinel.
async fn objects_of(world: &World, sentinel: &ApplySentinel) -> Outcome<Vec<String>> {
    let selector = format!("unkey.com/sentinel.id={}", sentinel.sentinel_id);
    let params = ListParams::default().labels(&selector);
    let mut all = Vec::new();
    let mut note = |kind: &str, name: String| all.push(format!("{kind} {name}"));
    for found in world
        .api
        .within::<Deployment>(NAMESPACE)
        .list(&params)
        .await?
    {
        note("Deployment", found.name_any());
    }
    for found in world.api.within::<Service>(NAMESPACE).list(&params).await? {
        note("Service", found.name_any());
    }
    let budgets = world.api.within::<PodDisruptionBudget>(NAMESPACE);
    for found in budgets.list(&params).await? {
        note("PodDisruptionBudget", found.name_any());
    }
    for found in policies(world, NAMESPACE).list(&params).await? {
        note("CiliumNetworkPolicy", found.name_any());
    }
    all.sort();
    Ok(all)
}

pub(crate) fn all_five(name: &str) -> Vec<String> {
    vec![
        format!("CiliumNetworkPolicy {name}-gossip-lan"),
        format!("Deployment {name}"),
        format!("PodDisruptionBudget {name}"),
        format!("Service {name}"),
        format!("Service {name}-gossip-lan"),
    ]
}

pub(crate) async fn has(world: &World, sentinel: &ApplySentinel, expected: &[String]) -> Outcome {
    let what = format!("{} objects of {}", expected.len(), sentinel.k8s_name);
    eventually(&what, limits::LONG, async || {
        let found = objects_of(world, sentinel).await;
        let found = found.map_err(|failure| failure.to_string())?;
        if found == expected {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await
}

pub(crate) async fn settled_cursor(agent: &Agent, controller: &str, version: u64) -> Outcome {
    let series = format!("krane_stream_cursor{{controller=\"{controller}\"}}");
    eventually(
        &format!("{series} is {version}"),
        limits::LONG,
        async || {
            let metrics = agent
                .metrics()
                .await
                .map_err(|failure| failure.to_string())?;
            match metrics.get(&series) {
                #[allow(clippy::cast_precision_loss, reason = "small")]
                Some(cursor) if (cursor - version as f64).abs() < 0.5 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        },
    )
    .await
}

/// From nothing to healthy, through a restart that writes nothing, to nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_has_five_objects_is_told_healthy_and_leaves_nothing_behind() -> Outcome {
    let world = world().await?;
    let front = sentinel(&world, "front", "prod");
    let version = world.control.push(samples::apply_sentinel(front.clone()));
    let agent = world.agent().start().await?;
    has(&world, &front, &all_five(&front.k8s_name)).await?;
    is_told(&world, &front, Health::Unhealthy, 0, limits::SHORT).await?;
    // Thirty seconds of being ready make a pod available.
    is_told(&world, &front, Health::Healthy, 1, limits::LONG).await?;
    let what = "the image is told";
    let image = front.image.clone();
    world
        .control
        .wait_for(what, limits::SHORT, |seen| {
            let told = told(seen, &front.k8s_name)?;
            (told.running_image == image).then_some(())
        })
        .await?;
    settled_cursor(&agent, "sentinels", version).await?;
    agent.stop().await?;

    let mark = world.mark()?;
    let agent = world.agent().start().await?;
    settled_cursor(&agent, "sentinels", version).await?;
    is_told(&world, &front, Health::Healthy, 1, limits::SHORT).await?;
    let writes = world.writes(mark)?;
    assert!(writes.is_empty(), "{writes:#?}");

    world
        .control
        .push(samples::delete_sentinel(&front.k8s_name));
    has(&world, &front, &[]).await?;
    is_told(&world, &front, Health::Unhealthy, 0, limits::SHORT).await?;
    agent.stop().await
}

/// D20: whichever goes first, gossip works for the one that stays.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_sentinels_each_brings_and_takes_its_own_gossip() -> Outcome {
    let world = world().await?;
    let (one, two) = (
        sentinel(&world, "one", "prod"),
        sentinel(&world, "two", "prod"),
    );
    for both in [&one, &two] {
        world.control.push(samples::apply_sentinel(both.clone()));
    }
    let agent = world.agent().start().await?;
    has(&world, &one, &all_five(&one.k8s_name)).await?;
    has(&world, &two, &all_five(&two.k8s_name)).await?;
    let selector = json!({
        "unkey.com/environment.id": one.environment_id,
        "app.kubernetes.io/component": "sentinel",
    });
    world.control.push(samples::delete_sentinel(&one.k8s_name));
    has(&world, &one, &[]).await?;
    has(&world, &two, &all_five(&two.k8s_name)).await?;
    let services: Api<Service> = world.api.within(NAMESPACE);
    let gossip = services
        .get(&format!("{}-gossip-lan", two.k8s_name))
        .await?;
    let spec: Value = serde_json::to_value(gossip.spec)?;
    assert_eq!(spec["selector"], selector);
    assert_eq!(spec["clusterIP"], "None");
    let policy = policies(&world, NAMESPACE);
    let policy = policy.get(&format!("{}-gossip-lan", two.k8s_name)).await?;
    assert_eq!(
        policy.data["spec"]["endpointSelector"]["matchLabels"],
        selector
    );
    world.control.push(samples::delete_sentinel(&two.k8s_name));
    has(&world, &two, &[]).await?;
    agent.stop().await
}

/// NVIDIA/NVSentinel#1542 (B09), D27: a deletion while krane was away left its last word standing.
/// What hangs on nothing is found as well: gossip objects have no owner.
#[tokio::test(flavor = "multi_thread")]
async fn what_happened_while_krane_was_away_is_found_and_told() -> Outcome {
    let world = world().await?;
    let (kept, gone) = (sentinel(&world, "kept", "a"), sentinel(&world, "gone", "b"));
    for both in [&kept, &gone] {
        world.control.push(samples::apply_sentinel(both.clone()));
    }
    let agent = world.agent().start().await?;
    is_told(&world, &kept, Health::Healthy, 1, limits::LONG).await?;
    has(&world, &gone, &all_five(&gone.k8s_name)).await?;
    agent.stop().await?;

    for both in [&kept, &gone] {
        world
            .api
            .delete::<Deployment>(NAMESPACE, &both.k8s_name)
            .await?;
    }
    // Wanted no more, and no state left that would say so.
    world.control.keep_history(false);
    world.control.forget(Kind::Sentinels, &gone.sentinel_id);
    let started = std::time::Instant::now();
    let agent = world.agent().set("resync.interval", "5s").start().await?;
    world
        .control
        .wait_for("kept is told unhealthy", limits::SHORT, |seen| {
            let told = told(seen, &kept.k8s_name)?;
            (told.health() == Health::Unhealthy && told.available_replicas == 0).then_some(())
        })
        .await?;
    has(&world, &kept, &all_five(&kept.k8s_name)).await?;
    has(&world, &gone, &[]).await?;
    println!(
        "what hung on nothing was gone {:?} after the start",
        started.elapsed()
    );
    is_told(&world, &kept, Health::Healthy, 1, limits::LONG).await?;
    agent.stop().await
}
