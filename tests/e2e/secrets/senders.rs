//! Pods that ask for their secrets and take no answer.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use krane_proto::krane::v1::DecryptSecretsBlobRequest;
use krane_testharness::attack::{Mean, attacker, binary, raise_open_files};
use krane_testharness::{Outcome, World};

use super::caller::{Got, ask};
use super::vault::Vault;
use super::{DECRYPT, agent, pod_of, request, workload};

/// Pods with a token each; each may ask 20 times at once and twice a second.
const PODS: usize = 16;
const SENDERS: u8 = 64;
/// More answers than there are places.
const ANSWERS: usize = 600;
const LONGEST: Duration = Duration::from_secs(60);

/// (X1): four pods had all places for ever, by giving answers no window. It prints how many answers lay
/// there, and what honest callers got. `KRANE_ATTACKED` names another binary.
#[tokio::test(flavor = "multi_thread")]
async fn pods_that_take_no_answer_leave_places_for_all_others() -> Outcome {
    raise_open_files()?;
    let world = World::shared(binary(crate::KRANE)).await?;
    let vault = Vault::start().await?;
    let all: Vec<_> = (0..=PODS)
        .map(|number| workload(&world, &vault, &format!("pod{number}")))
        .collect();
    world.push_all(&all);
    let agent = agent(&world, &vault).start().await?;
    let mut tokens = Vec::new();
    for wanted in &all {
        let pod = pod_of(&world, wanted).await?;
        let token = world.cluster().pod_token(&wanted.k8s_namespace, &pod, &[]);
        tokens.push(request(wanted, &token.await?));
    }
    let port = agent.rpc_port();
    let honest = tokens.pop().unwrap_or_default();
    let empty = |number: usize| DecryptSecretsBlobRequest {
        encrypted_blob: bytes::Bytes::new(),
        ..tokens[number % PODS].clone()
    };
    let mut mean = Vec::new();
    for sender in 1..=SENDERS {
        mean.push(Mean::connect(attacker(sender), port).await?);
    }
    let before = agent.resident_bytes()?;
    let (start, mut asked_at) = (Instant::now(), Instant::now());
    let (mut lying, mut turned_away, mut served, mut refused) = (0, 0, 0, Vec::new());
    'attack: while lying < ANSWERS && refused.len() < 5 && start.elapsed() < LONGEST {
        for (number, sender) in mean.iter_mut().enumerate() {
            match sender.call(DECRYPT, &empty(number)).await {
                Ok(None) => lying += 1,
                Ok(Some(_)) | Err(_) => turned_away += 1,
            }
            if asked_at.elapsed() > Duration::from_secs(1) {
                asked_at = Instant::now();
                match ask(port, &honest).await {
                    Ok(Got::Secrets(_)) => served += 1,
                    Ok(Got::Refused { code, message, .. }) => {
                        refused.push(format!("{code}: {message}"));
                    }
                    Err(failure) => refused.push(failure.to_string()),
                }
                if refused.len() >= 5 {
                    break 'attack;
                }
            }
        }
    }
    let from = Ipv4Addr::LOCALHOST;
    println!(
        "X1: {lying} answers left lying by {SENDERS} senders ({turned_away} turned away) in {:.0} s; honest calls from {from}: \
         {served} served, {} refused {:?}; RSS {} -> {} MiB",
        start.elapsed().as_secs_f64(),
        refused.len(),
        refused.first(),
        before >> 20,
        agent.resident_bytes()? >> 20,
    );
    assert!(refused.is_empty(), "{refused:?}");
    assert!(served > 0);
    drop(mean);
    agent.stop().await
}
