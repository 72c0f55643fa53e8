//! One bad state among a hundred holds up none of the others.

use std::time::{Duration, Instant};

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Kind, samples};
use krane_testharness::{Agent, Failure, Outcome, World, eventually, limits};

use crate::faulty;

const DEPLOYMENTS: usize = 100;
const NAMESPACES: usize = 20;
/// After this a lane is cut off.
const LANE_DEADLINE: Duration = Duration::from_secs(90);

/// slawlor/ractor#282 (B49), D4: an invalid state, one that does not decode and one whose lane panics each stay
/// alone in quarantine; the others take as long as without them.
#[tokio::test(flavor = "multi_thread")]
async fn poison_and_a_panicking_lane_delay_nobody() -> Outcome {
    let world = World::quiet(faulty()).await?;
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    // The first round makes the namespaces and is not compared.
    roll_out(&world, Vec::new()).await?;
    let mut without = vec![roll_out(&world, Vec::new()).await?];
    let namespace = world.namespace(0);
    let invalid = ApplyDeployment {
        replicas: -1,
        ..samples::deployment(&namespace, "invalid")
    };
    let panics = samples::deployment(&namespace, "fault-panic");
    let unreadable = samples::deployment(&namespace, "unreadable");
    let first_bad = world.control.newest(Kind::Deployments) + DEPLOYMENTS as u64 / 2 + 1;
    let bad = vec![invalid.clone(), panics.clone(), unreadable.clone()];
    let with = roll_out(&world, bad).await?;
    in_quarantine(&agent, 3.0).await?;
    let metrics = agent.metrics().await?;
    assert!(metrics.deployments("krane_lane_panics_total") >= 1.0);
    let cursor = metrics.deployments("krane_stream_cursor");
    #[expect(clippy::cast_precision_loss, reason = "a few hundred versions")]
    let first_bad = first_bad as f64;
    assert!(
        cursor < first_bad,
        "the cursor, {cursor}, waits below {first_bad}"
    );

    for _ in 0..2 {
        without.push(roll_out(&world, Vec::new()).await?);
    }
    without.sort();
    println!("without: {without:?}; with poison: {with:?}");
    assert!(
        with <= without[2] * 4,
        "{with:?} is much more than {without:?}: the others waited"
    );

    // A newer state of the same object ends its quarantine.
    for state in [invalid, panics, unreadable] {
        world.control.push(samples::delete(&state));
    }
    in_quarantine(&agent, 0.0).await?;
    agent.stop().await
}

/// A lane that never comes back is cut off after its deadline; until then it has one of 32 places.
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_lane_delays_nobody() -> Outcome {
    let world = World::shared(faulty()).await?;
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    let hangs = samples::deployment(&world.namespace(0), "fault-hang");
    world.control.push(samples::apply(hangs));
    let took = roll_out(&world, Vec::new()).await?;
    println!("{DEPLOYMENTS} deployments beside a hanging lane: {took:?}");
    assert!(took < LANE_DEADLINE, "they waited for it: {took:?}");
    agent.stop().await
}

/// From the push to the last report that all of a hundred new deployments run; they are deleted again afterwards. The
/// bad states are in their middle, the last of them does not decode.
async fn roll_out(world: &World, mut bad: Vec<ApplyDeployment>) -> Outcome<Duration> {
    let deployment = |index: usize| {
        samples::deployment(
            &world.namespace(1 + index % NAMESPACES),
            &format!("d{index}"),
        )
    };
    let good: Vec<_> = (0..DEPLOYMENTS).map(deployment).collect();
    let unreadable = bad.pop();
    let (first, second) = good.split_at(DEPLOYMENTS / 2);
    let started = Instant::now();
    world.push_all(first);
    world.push_all(&bad);
    if let Some(state) = unreadable {
        world
            .control
            .push_spoiled(samples::apply(state), samples::truncated);
    }
    world.push_all(second);
    let all_run = |seen: &krane_sim::control_plane::Seen| {
        good.iter()
            .all(|state| seen.running(&state.k8s_name))
            .then(Instant::now)
    };
    let ended = world
        .control
        .wait_for("all good ones run", limits::VERY_LONG, all_run)
        .await?;
    world.control.push_all(good.iter().map(samples::delete));
    let all_gone = |seen: &krane_sim::control_plane::Seen| {
        good.iter()
            .all(|state| seen.deleted(&state.k8s_name))
            .then_some(())
    };
    world
        .control
        .wait_for("all good ones are gone", limits::VERY_LONG, all_gone)
        .await?;
    Ok(ended - started)
}

async fn in_quarantine(agent: &Agent, count: f64) -> Outcome {
    eventually("the quarantine", limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure: Failure| failure.to_string())?;
        let quarantined = metrics.deployments("krane_quarantined");
        if (quarantined - count).abs() < 0.5 {
            Ok(())
        } else {
            Err(format!("{quarantined}, not {count}"))
        }
    })
    .await
}
