//! How many pods are served in a second, where each answer takes a real API server three requests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krane_testharness::{Failure, Outcome, eventually, limits};
use tokio::task::JoinSet;

use super::caller::{Got, ask};
use super::vault::Vault;
use super::{agent, request, workload};
use crate::world;

const PODS: i32 = 12;
/// Requests of each pod, within what one pod may ask at once.
const REQUESTS: usize = 20;
const VARIABLES: usize = 20;
/// Requests on their way at a time.
const AT_ONCE: usize = 8;

/// A figure for people; the machine decides it. That all are answered, and rightly, is asserted.
#[tokio::test(flavor = "multi_thread")]
async fn pods_that_start_at_once_all_get_their_secrets_and_the_rate_is_printed() -> Outcome {
    let world = world().await?;
    let vault = Vault::start().await?;
    let mut wanted = workload(&world, &vault, "many");
    wanted.replicas = PODS;
    let variables: BTreeMap<String, String> = (0..VARIABLES)
        .map(|number| (format!("VARIABLE_{number:02}"), format!("value {number}")))
        .collect();
    let listed: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    wanted.encrypted_environment_variables = vault.blob(&wanted.environment_id, &listed).into();
    world.push_all(std::slice::from_ref(&wanted));
    let agent = agent(&world, &vault).start().await?;
    let running = eventually("all of its pods run", limits::LONG, async || {
        let live = world.live().await.map_err(|failure| failure.to_string())?;
        let pods: Vec<String> = live
            .pods
            .values()
            .flatten()
            .map(kube::ResourceExt::name_any)
            .collect();
        let all = usize::try_from(PODS).unwrap_or_default();
        (pods.len() == all)
            .then_some(pods)
            .ok_or_else(|| "not yet".to_owned())
    });
    let mut requests = Vec::new();
    for pod in running.await? {
        let token = world.cluster().pod_token(&wanted.k8s_namespace, &pod, &[]);
        let request = request(&wanted, &token.await?);
        requests.extend(std::iter::repeat_n(request, REQUESTS));
    }
    let (port, all) = (agent.rpc_port(), requests.len());
    let start = Instant::now();
    let (mut running, mut times) = (JoinSet::new(), Vec::new());
    let mut waiting = requests.into_iter();
    loop {
        while running.len() < AT_ONCE
            && let Some(request) = waiting.next()
        {
            running.spawn(async move {
                let start = Instant::now();
                let got = ask(port, &request).await;
                got.map(|got| (got, start.elapsed()))
            });
        }
        let Some(done) = running.join_next().await else {
            break;
        };
        let (got, took): (Got, Duration) = done??;
        match got {
            Got::Secrets(secrets) if secrets.len() == VARIABLES => times.push(took),
            Got::Secrets(_) | Got::Refused { .. } => {
                return Err(Failure::new(format!("a pod got {got:?}")));
            }
        }
    }
    let took = start.elapsed();
    times.sort();
    let rate = f64::from(u32::try_from(all)?) / took.as_secs_f64();
    println!(
        "{all} decrypts of {VARIABLES} variables on a real API server, {AT_ONCE} at a time: \
         {rate:.0} per second, p50 {:.1?}, p99 {:.1?}",
        times[all / 2],
        times[all * 99 / 100],
    );
    assert_eq!(times.len(), all);
    agent.stop().await
}
