//! A restart with everything in place.

use std::time::Instant;

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::Kind;
use krane_testharness::{Agent, Outcome, World, eventually, limits};

use crate::figures::{Figures, Target};

pub(crate) async fn measure(
    world: &World,
    workloads: &[ApplyDeployment],
    figures: &mut Figures,
) -> Outcome {
    println!("restart with {} deployments in place", workloads.len());
    let mark = world.mark()?;
    let started = Instant::now();
    let agent = world.agent().set("resync.interval", "5s").start().await?;
    #[expect(clippy::cast_precision_loss, reason = "a few hundred versions")]
    let newest = world.control.newest(Kind::Deployments) as f64;
    reaches(&agent, "krane_stream_cursor", newest).await?;
    let at_newest = started.elapsed();
    reaches(&agent, "krane_resync_duration_seconds_count", 2.0).await?;
    let resident = agent.resident_bytes()?;
    let writes = world.writes(mark)?.len();
    agent.stop().await?;
    #[expect(clippy::cast_precision_loss, reason = "few, or some megabytes")]
    let (writes, resident) = (writes as f64, resident as f64 / f64::from(1 << 20));
    figures.number(
        "writes of a restart with two resync passes",
        "",
        writes,
        Target::Below(1.0),
    );
    figures.durations(
        "binary start until the cursor is at the newest version",
        [at_newest],
        Target::Below(1000.0),
        Target::None,
    );
    figures.number("memory after it", "MiB", resident, Target::Below(128.0));
    Ok(())
}

async fn reaches(agent: &Agent, metric: &str, value: f64) -> Outcome {
    eventually(&format!("{metric} is {value}"), limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let found = metrics.deployments(metric);
        if found >= value {
            Ok(())
        } else {
            Err(found.to_string())
        }
    })
    .await
}
