//! How quickly pods get their secrets, on a real clock: cluster and vault are in memory, so what
//! is measured is krane.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use krane_domain::secret::Secret;
use krane_ports::{DecryptRequest, SecretsDesk};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::world::{Subject, TokenWorld};
use crate::times::Times;

/// On the way to krane and back, within a cluster.
const ROUND_TRIP: Duration = Duration::from_micros(500);
/// Variables of each pod.
const VARIABLES: usize = 20;

/// How a measurement went.
#[derive(Clone, Debug)]
pub struct Load {
    /// How long answers with secrets took.
    pub times: Times,
    /// Answers without secrets.
    pub refused: usize,
    /// From the first request to the last answer.
    pub took: Duration,
}

/// Requests at this rate for so many seconds, by so many pods in turn; with `flood`, while one
/// more pod asks without a pause from 64 connections.
pub fn decrypt_load(pods: u64, rate: u64, seconds: u64, flood: bool) -> Result<Load, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .map_err(|problem| problem.to_string())?;
    runtime.block_on(run(pods, rate, seconds, flood))
}

async fn run(pods: u64, rate: u64, seconds: u64, flood: bool) -> Result<Load, String> {
    let world = Arc::new(TokenWorld::start(None).await?);
    let mut callers = Vec::new();
    for (number, subject) in (0..).zip(world.many(pods + 1, VARIABLES).await?) {
        let token = world.own_token(&subject)?;
        callers.push(Arc::new((subject, token, address(number))));
    }
    let Some(greedy) = callers.pop() else {
        return Err("nobody asks".to_owned());
    };
    let mut flooding = JoinSet::new();
    for _ in 0..if flood { 64 } else { 0 } {
        let (world, greedy) = (Arc::clone(&world), Arc::clone(&greedy));
        flooding.spawn(async move {
            loop {
                let _ = world.desk.decrypt(request(&greedy)).await;
                // No connection asks quicker than its way there and back.
                pass_until(Instant::now() + ROUND_TRIP).await;
            }
        });
    }
    let latencies = Arc::new(Mutex::new(Vec::new()));
    let began = Instant::now();
    let mut asking = JoinSet::new();
    for number in 0..rate * seconds {
        pass_until(
            began
                + Duration::from_secs(1) * u32::try_from(number).unwrap_or(0)
                    / u32::try_from(rate).unwrap_or(1),
        )
        .await;
        let index = usize::try_from(number % pods).unwrap_or_default();
        let (world, caller) = (Arc::clone(&world), Arc::clone(&callers[index]));
        let latencies = Arc::clone(&latencies);
        asking.spawn(async move {
            let asked = Instant::now();
            let answer = world.desk.decrypt(request(&caller)).await;
            if answer.is_ok_and(|secrets| secrets.len() == VARIABLES) {
                latencies.lock().push(asked.elapsed());
            }
        });
    }
    while asking.join_next().await.is_some() {}
    let took = began.elapsed();
    flooding.shutdown().await;
    world.stop().await;
    let times = Times::of(std::mem::take(&mut *latencies.lock()));
    let asked = usize::try_from(rate * seconds).unwrap_or(usize::MAX);
    Ok(Load {
        refused: asked - times.count(),
        times,
        took,
    })
}

fn request((subject, token, peer): &(Subject, Secret, IpAddr)) -> DecryptRequest {
    DecryptRequest {
        blob: subject.blob.clone(),
        environment_id: subject.environment_id.clone(),
        deployment_id: subject.deployment_id.clone(),
        token: token.clone(),
        peer: Some(*peer),
    }
}

/// Each pod has an address of its own.
fn address(number: u64) -> IpAddr {
    let number = u32::try_from(number).unwrap_or_default();
    IpAddr::V4(Ipv4Addr::from(0x0a00_0001 + number))
}

async fn pass_until(moment: Instant) {
    sleep_until(moment).await;
}
