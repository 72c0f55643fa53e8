//! (F31, D38b) A kind that krane may not list, on a real API server.

use std::time::Instant;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::rbac::v1::ClusterRole;
use krane_proto::ctrl::v1::{ApplyDeployment, AutoscalingPolicy};
use krane_testcluster::Options;
use krane_testharness::{Agent, Outcome, Quiet, World, eventually, limits};
use kube::api::PostParams;

use super::caller::{Got, ask};
use super::vault::Vault;
use super::{agent, pod_of, request, workload};
use crate::KRANE;

/// krane may do everything with autoscalers, or nothing.
async fn allow_autoscalers(world: &World, are_allowed: bool) -> Outcome {
    let api: kube::Api<ClusterRole> = world.api.all();
    let mut role = api.get("krane").await?;
    let rules = role.rules.get_or_insert_default();
    let mut own = rules[0].clone();
    let group = "autoscaling".to_owned();
    rules.retain(|rule| !rule.api_groups.iter().flatten().any(|it| *it == group));
    if are_allowed {
        own.api_groups = Some(vec![group]);
        own.resources = Some(vec!["horizontalpodautoscalers".to_owned()]);
        own.verbs = ["get", "list", "watch", "create", "patch", "delete"]
            .map(str::to_owned)
            .to_vec();
        rules.push(own);
    }
    api.replace("krane", &PostParams::default(), &role).await?;
    Ok(())
}

fn scaled(plain: &ApplyDeployment) -> ApplyDeployment {
    ApplyDeployment {
        autoscaling: Some(AutoscalingPolicy {
            min_replicas: 1,
            max_replicas: 4,
            ..AutoscalingPolicy::default()
        }),
        ..plain.clone()
    }
}

async fn is_there(world: &World, wanted: &ApplyDeployment) -> Outcome<bool> {
    let sets: kube::Api<ReplicaSet> = world.api.within(&wanted.k8s_namespace);
    Ok(sets.get_opt(&wanted.k8s_name).await?.is_some())
}

async fn has_autoscaler(world: &World, wanted: &ApplyDeployment) -> Result<(), String> {
    let all: kube::Api<HorizontalPodAutoscaler> = world.api.within(&wanted.k8s_namespace);
    match all.get_opt(&wanted.k8s_name).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err("it has none".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Waits until it is said that this one is blocked, and which permission is missing.
async fn is_said_to_be_blocked(agent: &Agent, wanted: &ApplyDeployment) -> Outcome {
    let permission = "list and watch horizontalpodautoscalers";
    eventually("the permission is named", limits::LONG, async || {
        let health = agent.admin("/api/v1/health").await;
        let (_, text) = health.map_err(|failure| failure.to_string())?;
        if text.contains(&wanted.k8s_name) && text.contains(permission) {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_one_permission_krane_is_ready_and_blocks_only_what_needs_it() -> Outcome {
    let world = World::own(KRANE, Options::default(), Quiet::Beside).await?;
    let vault = Vault::start().await?;
    let [plain, first, second, third] =
        ["plain", "first", "second", "third"].map(|name| workload(&world, &vault, name));
    let (first, second) = (scaled(&first), scaled(&second));
    allow_autoscalers(&world, false).await?;
    world.push_all(&[first.clone(), plain.clone()]);
    let started = Instant::now();
    let mut agent = agent(&world, &vault).start().await?;
    println!("ready {:?} after the start", started.elapsed());

    let pod = pod_of(&world, &plain).await?;
    let token = world
        .cluster()
        .pod_token(&plain.k8s_namespace, &pod, &[])
        .await?;
    let got = ask(agent.rpc_port(), &request(&plain, &token)).await?;
    assert!(matches!(got, Got::Secrets(_)), "{got:?}");
    is_said_to_be_blocked(&agent, &first).await?;
    assert!(!is_there(&world, &first).await?);

    allow_autoscalers(&world, true).await?;
    let given = Instant::now();
    eventually("the first is applied", limits::LONG, async || {
        has_autoscaler(&world, &first).await
    })
    .await?;
    println!("applied {:?} after the permission", given.elapsed());

    // A watch that is open stays open without the permission; this ends it.
    allow_autoscalers(&world, false).await?;
    world.cluster().kill_api_server()?;
    world.cluster().start_api_server().await?;
    world.push_all(&[second.clone(), third.clone()]);
    is_said_to_be_blocked(&agent, &second).await?;
    pod_of(&world, &third).await?;
    assert!(!is_there(&world, &second).await?);
    // The watches of other controllers may just be opening again.
    eventually("krane is ready", limits::SHORT, async || {
        match agent.health("ready").await {
            Ok((200, _)) => Ok(()),
            Ok((status, text)) => Err(format!("{status}: {text}")),
            Err(failure) => Err(failure.to_string()),
        }
    })
    .await?;
    allow_autoscalers(&world, true).await?;
    let given = Instant::now();
    eventually("the second is applied", limits::LONG, async || {
        has_autoscaler(&world, &second).await
    })
    .await?;
    println!("applied {:?} after the permission", given.elapsed());
    assert!(agent.is_running(), "without a restart");
    agent.stop().await
}
