//! Two hundred deployments through everything that happens to them.

use std::time::Instant;

use k8s_openapi::api::apps::v1::ReplicaSet;
use krane_sim::control_plane::{Kind, samples};
use krane_testharness::{Agent, Outcome, World, eventually, limits};
use serde_json::json;

use crate::world;

const DEPLOYMENTS: usize = 200;
const NAMESPACES: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_deployments_follow_every_change_from_either_side() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(DEPLOYMENTS, NAMESPACES);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    let started = Instant::now();
    world
        .settles("all run and are reported", &wanted, &[], limits::VERY_LONG)
        .await?;
    println!(
        "{DEPLOYMENTS} deployments settled {:?} after the agent was ready",
        started.elapsed()
    );

    // Edited by the control plane.
    for (index, deployment) in wanted.iter_mut().enumerate().take(40) {
        if index % 2 == 0 {
            deployment.image = "registry.example/app:well2".to_owned();
        } else {
            deployment.replicas = 2;
        }
        world.control.push(samples::apply(deployment.clone()));
    }
    // Scaled and deleted by hand.
    for deployment in &wanted[40..60] {
        scale(&world, &deployment.k8s_namespace, &deployment.k8s_name, 3).await?;
    }
    for deployment in &wanted[60..80] {
        world
            .api
            .delete::<ReplicaSet>(&deployment.k8s_namespace, &deployment.k8s_name)
            .await?;
    }
    // Deleted by the control plane.
    let gone = wanted.split_off(180);
    for deployment in &gone {
        world.control.push(samples::delete(deployment));
    }
    world
        .settles("every change has its effect", &wanted, &gone, limits::LONG)
        .await?;
    cursor_is_at_the_newest(&world, &agent).await?;
    agent.stop().await?;

    // Edited, scaled and deleted while krane is away.
    wanted[0].memory_mib = 512;
    world.control.push(samples::apply(wanted[0].clone()));
    scale(&world, &wanted[1].k8s_namespace, &wanted[1].k8s_name, 0).await?;
    world
        .api
        .delete::<ReplicaSet>(&wanted[2].k8s_namespace, &wanted[2].k8s_name)
        .await?;
    let late = wanted.pop();
    world.control.push_all(late.iter().map(samples::delete));
    let agent = world.agent().start().await?;
    world
        .settles("krane catches up", &wanted, late.as_slice(), limits::LONG)
        .await?;
    cursor_is_at_the_newest(&world, &agent).await?;
    agent.stop().await
}

/// Design, targets: a restart with everything in place writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_with_everything_in_place_writes_nothing() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(DEPLOYMENTS, NAMESPACES);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    world
        .settles("all run and are reported", &wanted, &[], limits::VERY_LONG)
        .await?;
    agent.stop().await?;

    let mark = world.mark()?;
    let started = Instant::now();
    let agent = world.agent().set("resync.interval", "2s").start().await?;
    cursor_is_at_the_newest(&world, &agent).await?;
    println!(
        "cursor at the newest version {:?} after the start",
        started.elapsed()
    );
    eventually("two passes over all objects", limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let passes = metrics.deployments("krane_resync_duration_seconds_count");
        if passes >= 2.0 {
            Ok(())
        } else {
            Err(format!("{passes} passes"))
        }
    })
    .await?;
    world
        .settles("all is as it was", &wanted, &[], limits::LONG)
        .await?;
    let writes = world.writes(mark)?;
    assert!(
        writes.is_empty(),
        "{} writes, the first: {:#?}",
        writes.len(),
        writes[0]
    );
    agent.stop().await
}

async fn scale(world: &World, namespace: &str, name: &str, replicas: i32) -> Outcome {
    let patch = json!({"spec": {"replicas": replicas}});
    world
        .api
        .edit::<ReplicaSet>(namespace, name, patch)
        .await
        .map(drop)
}

async fn cursor_is_at_the_newest(world: &World, agent: &Agent) -> Outcome {
    #[expect(clippy::cast_precision_loss, reason = "a few hundred versions")]
    let newest = world.control.newest(Kind::Deployments) as f64;
    eventually(
        "the cursor is at the newest version",
        limits::LONG,
        async || {
            let metrics = agent
                .metrics()
                .await
                .map_err(|failure| failure.to_string())?;
            let cursor = metrics.deployments("krane_stream_cursor");
            if cursor >= newest {
                Ok(())
            } else {
                Err(format!("at {cursor} of {newest}"))
            }
        },
    )
    .await
}
