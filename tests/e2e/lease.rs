//! Two processes, one Lease (D22).

mod chaos;
mod hung_report;
mod proof;
mod side;

use std::time::{Duration, Instant};

use krane_sim::control_plane::{Kind, Seen};
use krane_testharness::{Agent, AgentBuilder, Outcome, World, eventually, limits};

use crate::world;
pub(crate) use side::forget_the_lease;

/// Timings of the suite with faults.
const DURATION: Duration = Duration::from_secs(3);
const RENEW: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(300);

/// An agent that is elected, with the default timings.
fn elected(world: &World) -> AgentBuilder {
    world.agent().set("lease.enabled", "true")
}

async fn is_leader(agent: &Agent) -> Outcome<bool> {
    let held = agent.metrics().await?.get("krane_lease_held");
    Ok(held == Some(1.0))
}

pub(crate) async fn leads(what: &str, agent: &Agent, limit: Duration) -> Outcome<Duration> {
    let began = Instant::now();
    eventually(what, limit, async || match is_leader(agent).await {
        Ok(true) => Ok(began.elapsed()),
        Ok(false) => Err("it stands by".to_owned()),
        Err(failure) => Err(failure.to_string()),
    })
    .await
}

/// Time from now until the newest state is applied by whoever leads.
async fn applies(world: &World, name: &str, limit: Duration) -> Outcome<Duration> {
    let began = Instant::now();
    let state = krane_sim::control_plane::samples::deployment(&world.namespace(0), name);
    world
        .control
        .push(krane_sim::control_plane::samples::apply(state));
    eventually("the next leader applies", limit, async || {
        let live = world.live().await.map_err(|failure| failure.to_string())?;
        let mut all = live.replica_sets.iter();
        let is_there = all.any(|((_, set), _)| set == name);
        is_there
            .then(|| began.elapsed())
            .ok_or_else(|| "not yet".to_owned())
    })
    .await
}

fn streams(world: &World) -> usize {
    world
        .control
        .look(|seen: &Seen| seen.open_watches(Kind::Deployments))
}

/// With the default timings: under 3 s after a clean end, under 20 s after a crash; and the
/// standby is ready all the time, and silent.
#[tokio::test(flavor = "multi_thread")]
async fn a_clean_end_hands_over_in_three_seconds_and_a_crash_in_twenty() -> Outcome {
    let world = world().await?;
    forget_the_lease(&world).await?;
    let first = elected(&world).set("instance_id", "first").start().await?;
    leads("the first leads", &first, limits::SHORT).await?;
    let mut second = elected(&world).set("instance_id", "second").start().await?;
    applies(&world, "one", limits::SHORT).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(is_leader(&first).await? && !is_leader(&second).await?);
    assert_eq!(streams(&world), 1, "the standby opens none");
    let (code, body) = second.health("ready").await?;
    assert_eq!(code, 200, "{body}");
    assert!(
        body.contains("\"role\":\"standby\"") && body.contains("\"holder\":\"first_"),
        "{body}"
    );
    let (_, body) = first.health("ready").await?;
    assert!(body.contains("\"role\":\"leader\""), "{body}");
    let (_, page) = second.admin("/api/v1/health").await?;
    assert!(page.contains("Standing by: first_"), "{page}");

    let began = Instant::now();
    first.stop().await?;
    let ended = began.elapsed();
    leads("the second leads", &second, limits::SHORT).await?;
    let clean = began.elapsed();
    applies(&world, "two", limits::SHORT).await?;
    println!(
        "clean end: over after {ended:?}, the other leads after {clean:?}, has applied after {:?}",
        began.elapsed()
    );
    assert!(clean < Duration::from_secs(3), "{clean:?}");

    let third = elected(&world).set("instance_id", "third").start().await?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!is_leader(&third).await?);
    let began = Instant::now();
    second.kill().await?;
    leads("the third leads", &third, limits::SHORT).await?;
    let crash = began.elapsed();
    let applied = applies(&world, "three", limits::SHORT).await?;
    println!("crash: the other leads after {crash:?}, and applies a new state in {applied:?}");
    assert!(crash < Duration::from_secs(20), "{crash:?}");
    third.stop().await
}
