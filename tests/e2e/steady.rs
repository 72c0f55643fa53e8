//! A cluster in which nothing happens.

use std::time::Duration;

use krane_proto::ctrl::v1::{ApplyDeployment, ApplySentinel, Health};
use krane_sim::control_plane::{Report, samples};
use krane_testharness::{Failure, Outcome, World, eventually, limits};

use crate::KRANE;

/// Deployments, sentinels, policies, and seconds of rest: `KRANE_STEADY=1000,100,500,180` for the
/// real size, which takes eight minutes.
fn size() -> Outcome<[usize; 4]> {
    let text = std::env::var("KRANE_STEADY").unwrap_or_else(|_| "100,10,50,65".to_owned());
    let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
    numbers.ok_or_else(|| Failure::new(format!("KRANE_STEADY={text} is no four numbers")))
}

/// Design, targets: a quiet minute with passes and replays going on writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn with_everything_in_place_of_every_kind_nothing_is_written() -> Outcome {
    let world = World::shared(KRANE).await?;
    let [deployments, sentinels, policies, seconds] = size()?;
    let wanted: Vec<ApplyDeployment> = world.deployments(deployments, deployments.div_ceil(5));
    world.push_all(&wanted);
    let fleet: Vec<ApplySentinel> = (0..sentinels)
        .map(|index| samples::sentinel(&format!("{}-s{index}", world.namespace(0))))
        .collect();
    let states = fleet.iter().cloned().map(samples::apply_sentinel);
    world.control.push_all(states);
    let names = (0..policies).map(|index| (world.namespace(index % 20), format!("p{index}")));
    let states =
        names.map(|(namespace, name)| samples::apply_policy(samples::policy(&namespace, &name)));
    world.control.push_all(states.collect::<Vec<_>>());

    let interval = if seconds < 120 { "20s" } else { "60s" };
    let agent = world
        .agent()
        .set("resync.interval", interval)
        .set("replay.interval", interval)
        .start()
        .await?;
    world
        .settles("all deployments run", &wanted, &[], limits::VERY_LONG)
        .await?;
    world
        .control
        .wait_for("all sentinels are healthy", limits::VERY_LONG, |seen| {
            let is_healthy = |one: &ApplySentinel| matches!(seen.report(&one.k8s_name), Some(Report::Sentinel(told)) if told.health() == Health::Healthy);
            fleet.iter().all(is_healthy).then_some(())
        })
        .await?;
    eventually(
        "every cursor is at the newest",
        limits::VERY_LONG,
        async || {
            let metrics = agent
                .metrics()
                .await
                .map_err(|failure| failure.to_string())?;
            for (controller, newest) in [
                ("deployments", deployments),
                ("sentinels", sentinels),
                ("cilium", policies),
            ] {
                let series = format!("krane_stream_cursor{{controller=\"{controller}\"}}");
                #[allow(clippy::cast_precision_loss, reason = "thousands")]
                let is_there = metrics
                    .get(&series)
                    .is_some_and(|cursor| (cursor - newest as f64).abs() < 0.5);
                if !is_there {
                    return Err(format!("{series} is {:?}", metrics.get(&series)));
                }
            }
            Ok(())
        },
    )
    .await?;

    let mark = world.mark()?;
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let writes = world.writes(mark)?;
    assert!(
        writes.is_empty(),
        "{} writes, the first: {:#?}",
        writes.len(),
        writes.first()
    );
    let metrics = agent.metrics().await?;
    println!(
        "{deployments} deployments, {sentinels} sentinels, {policies} policies: 0 writes in \
         {seconds} s, with passes and replays every {interval} ({} states replayed)",
        metrics.sum("krane_replayed_states_total"),
    );
    agent.stop().await
}
