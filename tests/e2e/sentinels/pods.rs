//! What pods of sentinels do, and what rolls them.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use krane_proto::ctrl::v1::{ApplySentinel, Health};
use krane_sim::control_plane::samples;
use krane_testcluster::Behaviour;
use krane_testharness::{Outcome, World, eventually, limits};
use kube::ResourceExt as _;
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use serde_json::json;

use super::{NAMESPACE, is_told, sentinel};
use crate::world;

async fn pods_of(world: &World, sentinel: &ApplySentinel) -> Outcome<Vec<Pod>> {
    let selector = format!("unkey.com/sentinel.id={}", sentinel.sentinel_id);
    let params = ListParams::default().labels(&selector);
    let mut pods = world
        .api
        .within::<Pod>(NAMESPACE)
        .list(&params)
        .await?
        .items;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(pods)
}

/// Without its Secret a sentinel cannot start: the page says which one is missing, in the kubelet's
/// words, for krane may not look at it.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_is_named() -> Outcome {
    let world = world().await?;
    let front = ApplySentinel {
        image: Behaviour::Manual.image(),
        ..sentinel(&world, "front", "prod")
    };
    world.control.push(samples::apply_sentinel(front.clone()));
    let agent = world.agent().start().await?;
    let pod = eventually("the pod is there", limits::SHORT, async || {
        let pods = pods_of(&world, &front).await;
        let mut pods = pods.map_err(|failure| failure.to_string())?;
        pods.pop().ok_or_else(|| "none".to_owned())
    })
    .await?;
    let waiting = json!({
        "phase": "Pending",
        "containerStatuses": [{
            "name": "sentinel", "image": front.image, "imageID": "", "ready": false,
            "restartCount": 0,
            "state": { "waiting": {
                "reason": "CreateContainerConfigError",
                "message": "secret \"database\" not found",
            } },
        }],
    });
    world
        .cluster()
        .patch_pod_status(NAMESPACE, &pod.name_any(), &waiting)
        .await?;
    eventually("page and events name it", limits::SHORT, async || {
        for path in ["/api/v1/workloads", "/api/v1/events"] {
            let (_, text) = agent
                .admin(path)
                .await
                .map_err(|failure| failure.to_string())?;
            if !text.contains("secret \\\"database\\\" not found") {
                return Err(format!("{path}: {text}"));
            }
        }
        Ok(())
    })
    .await?;
    agent.stop().await
}

/// D11a: what rotates a Secret puts a variable into the template, once. It stays, and the pods are
/// rolled once.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_secret_rolls_the_pods_once() -> Outcome {
    let world = world().await?;
    let front = sentinel(&world, "front", "prod");
    world.control.push(samples::apply_sentinel(front.clone()));
    let agent = world.agent().set("resync.interval", "5s").start().await?;
    is_told(&world, &front, Health::Healthy, 1, limits::LONG).await?;
    let before = pods_of(&world, &front).await?;
    let params = PatchParams {
        field_manager: Some("Reloader".to_owned()),
        ..PatchParams::default()
    };
    let patch = json!({ "spec": { "template": {
        "metadata": { "annotations": { "reloader.stakater.com/last-reloaded-from": "database" } },
        "spec": { "containers": [{
            "name": "sentinel",
            "env": [{ "name": "STAKATER_DATABASE_SECRET", "value": "0123abcd" }],
        }] },
    } } });
    let deployments = world.api.within::<Deployment>(NAMESPACE);
    let mark = world.mark()?;
    let rotated = deployments
        .patch(&front.k8s_name, &params, &Patch::Strategic(patch))
        .await?;
    let generation = rotated.metadata.generation;
    eventually("other pods run", limits::LONG, async || {
        let now = pods_of(&world, &front).await;
        let now = now.map_err(|failure| failure.to_string())?;
        let is_old = |pod: &Pod| before.iter().any(|old| old.uid() == pod.uid());
        match now.as_slice() {
            [only] if !is_old(only) => Ok(()),
            pods => Err(format!("{} pods", pods.len())),
        }
    })
    .await?;
    // Two passes later nothing was taken back.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let live = deployments.get(&front.k8s_name).await?;
    assert_eq!(live.metadata.generation, generation, "rolled once");
    let writes = world.writes(mark)?;
    assert!(writes.is_empty(), "krane writes nothing: {writes:#?}");
    agent.stop().await
}

/// Waits until the budget of a sentinel counts so many healthy pods.
async fn counts(world: &World, sentinel: &ApplySentinel, healthy: i32) -> Outcome {
    let budgets = world.api.within::<PodDisruptionBudget>(NAMESPACE);
    let what = format!("the budget counts {healthy} healthy pods");
    eventually(&what, limits::LONG, async || {
        let budget = budgets.get(&sentinel.k8s_name).await;
        let status = budget.map_err(|error| error.to_string())?.status;
        match status {
            Some(status) if status.current_healthy == Some(healthy) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// unkeyed/unkey c40134cbc5, PR #6723 (A45): pods that crash-loop counted against the budget, and
/// no node with one on it could be drained.
#[tokio::test(flavor = "multi_thread")]
async fn broken_pods_can_be_evicted_while_the_budget_allows_no_disruption() -> Outcome {
    let world = world().await?;
    let front = ApplySentinel {
        replicas: 2,
        ..sentinel(&world, "front", "prod")
    };
    world.control.push(samples::apply_sentinel(front.clone()));
    let agent = world.agent().start().await?;
    let api = world.api.within::<Pod>(NAMESPACE);
    let evict = async |pod: &Pod| api.evict(&pod.name_any(), &EvictParams::default()).await;

    counts(&world, &front, 2).await?;
    let pods = pods_of(&world, &front).await?;
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        world
            .cluster()
            .crash_pod(NAMESPACE, &pod.name_any())
            .await?;
    }
    counts(&world, &front, 0).await?;
    let budgets = world.api.within::<PodDisruptionBudget>(NAMESPACE);
    let status = budgets.get(&front.k8s_name).await?.status;
    let allowed = status.and_then(|status| status.disruptions_allowed);
    assert_eq!(allowed, Some(0), "a healthy pod would have to stay");
    for pod in &pods {
        evict(pod).await?;
    }
    agent.stop().await
}

/// unkeyed/unkey 8b161adf66, PR #5328 (A25), here for sentinels: health is told as it turns.
#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_as_it_turns() -> Outcome {
    let world = world().await?;
    let fleet: Vec<ApplySentinel> = (0..20)
        .map(|index| sentinel(&world, &format!("s{index}"), &format!("e{index}")))
        .collect();
    for one in &fleet {
        world.control.push(samples::apply_sentinel(one.clone()));
    }
    let agent = world.agent().start().await?;
    for one in &fleet {
        is_told(&world, one, Health::Healthy, 1, limits::VERY_LONG).await?;
    }
    let mut took = Vec::new();
    for one in &fleet {
        let pods = pods_of(&world, one).await?;
        let unready = json!({ "conditions": [
            { "type": "ContainersReady", "status": "False" },
            { "type": "Ready", "status": "False" },
        ] });
        let began = Instant::now();
        for pod in &pods {
            world
                .cluster()
                .patch_pod_status(NAMESPACE, &pod.name_any(), &unready)
                .await?;
        }
        is_told(&world, one, Health::Unhealthy, 0, limits::SHORT).await?;
        took.push(began.elapsed());
    }
    took.sort();
    println!(
        "from the pod's change to the report, controllers of the cluster included: p50 {:?}, max {:?}",
        took[took.len() / 2],
        took[took.len() - 1],
    );
    agent.stop().await
}
