//! One controller is broken: the others do not notice.

mod load;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krane_sim::control_plane::{Code, samples};
use krane_testharness::{Action, Agent, Call, Failure, Outcome, Proxy, World};
use tokio::time::Instant;

use self::load::{Load, Subject};
use crate::faulty;

/// Seconds of each measurement; the table of `scripts/isolation` takes 30.
fn seconds() -> u64 {
    let text = std::env::var("KRANE_ISOLATION_SECONDS").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// How a controller is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// Its stream brings messages that make no sense, and ends all the time.
    Garbage,
    /// Every lane it starts panics.
    Panics,
    /// The API server never answers about its kind.
    HangingCalls,
    /// Its stream actor panics until the controller is parked, again and again.
    Parked,
}

const BREAKS: [Break; 4] = [
    Break::Garbage,
    Break::Panics,
    Break::HangingCalls,
    Break::Parked,
];

/// Times of the other two beside times with nothing broken, in one table.
///
/// In a run of the whole suite each way to break is tried on one controller; with
/// `KRANE_ISOLATION=all`, on each.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_breaks_one_controller_the_others_are_as_quick_as_before() -> Outcome {
    let world = World::quiet(faulty()).await?;
    let proxy = Proxy::start(&world).await?;
    let builder = world
        .agent()
        .kubeconfig(proxy.kubeconfig())
        .set("resync.interval", "24h");
    let mut agent = builder.start().await?;
    let load = Load::prepare(&world).await?;
    let is_whole = std::env::var("KRANE_ISOLATION").is_ok_and(|value| value == "all");
    let length = Duration::from_secs(seconds());
    // The first measurement warms everything up and is not compared.
    load.measure(&world, &Subject::ALL, length / 2).await?;
    let before = load.measure(&world, &Subject::ALL, length).await?;
    println!("| broken | how | measured | samples | p50 | p99 | p99 undisturbed | ratio |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut worst: f64 = 0.0;
    for (index, how) in BREAKS.into_iter().enumerate() {
        for (turn, broken) in Subject::ALL.into_iter().enumerate() {
            if !is_whole && turn != index % Subject::ALL.len() {
                continue;
            }
            let others: Vec<Subject> = Subject::ALL
                .into_iter()
                .filter(|other| *other != broken)
                .collect();
            let wanted = world.control.backup();
            let stop = Arc::new(AtomicBool::new(false));
            let (times, broke) = tokio::join!(
                async {
                    let times = load.measure(&world, &others, length).await;
                    stop.store(true, Ordering::Relaxed);
                    times
                },
                spoil(&world, &proxy, broken, how, &stop),
            );
            broke?;
            has_broken(&agent, how).await?;
            worst = worst.max(print(&before, &times?, broken, how)?);
            // All that was pushed to break something is wanted no more.
            proxy.pass();
            agent.kill().await?;
            world.control.restore(&wanted);
            agent = builder.start().await?;
            load.is_followed(&world).await?;
        }
    }
    println!("the worst p99 is {worst:.2} times that of undisturbed controllers");
    // Whoever stands still is waited for ten seconds; how little is noticed, the table says.
    assert!(
        worst < 20.0,
        "{worst:.2} times as long: the others stood still"
    );
    agent.stop().await
}

/// Makes sure that faults inside of the process did strike.
async fn has_broken(agent: &Agent, how: Break) -> Outcome {
    let metrics = agent.metrics().await?;
    let struck = match how {
        Break::Garbage | Break::HangingCalls => return Ok(()),
        Break::Panics => metrics.sum("krane_lane_panics_total"),
        Break::Parked => metrics.sum("krane_actor_restarts_total"),
    };
    assert!(struck >= 3.0, "{how:?} struck {struck} times");
    Ok(())
}

/// Breaks a controller until told to stop.
async fn spoil(
    world: &World,
    proxy: &Proxy,
    broken: Subject,
    how: Break,
    stop: &AtomicBool,
) -> Outcome {
    let kind = broken.kind();
    let plural = broken.plural();
    let mut round = 0_u32;
    if how == Break::HangingCalls {
        proxy.script(move |call: &Call| {
            if call.resource == plural && call.is_write() {
                Action::Hang
            } else {
                Action::Pass
            }
        });
    }
    let next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        match how {
            Break::Garbage => {
                world.control.push_raw(kind, |_| samples::garbage());
                if round.is_multiple_of(40) {
                    world.control.cut_streams_of(kind, Code::Internal);
                }
            }
            Break::Panics => broken.push(world, &format!("fault-panic-{round}"), round),
            Break::HangingCalls => broken.push(world, &format!("hangs-{}", round % 40), round),
            Break::Parked if round == 1 => broken.push(world, "fault-stream", round),
            Break::Parked => broken.push(world, &format!("unread-{}", round % 40), round),
        }
        tokio::time::sleep_until(next + Duration::from_millis(50) * round).await;
    }
    Ok(())
}

fn print(
    before: &BTreeMap<Subject, Vec<Duration>>,
    times: &BTreeMap<Subject, Vec<Duration>>,
    broken: Subject,
    how: Break,
) -> Result<f64, Failure> {
    let mut worst: f64 = 0.0;
    for (subject, times) in times {
        let undisturbed = before
            .get(subject)
            .and_then(|times| percentile(times, 99))
            .ok_or_else(|| Failure::new("nothing was measured undisturbed"))?;
        let (Some(median), Some(long)) = (percentile(times, 50), percentile(times, 99)) else {
            return Err(Failure::new(format!(
                "{subject:?} stood still while {broken:?} was broken"
            )));
        };
        let ratio = long.as_secs_f64() / undisturbed.as_secs_f64();
        worst = worst.max(ratio);
        println!(
            "| {broken:?} | {how:?} | {subject:?} | {} | {median:.1?} | {long:.1?} | \
             {undisturbed:.1?} | {ratio:.2} |",
            times.len(),
        );
    }
    Ok(worst)
}

fn percentile(times: &[Duration], percent: usize) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort();
    let index = (sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?);
    sorted.get(index).copied()
}
