//! Whose pod it is: a copy of everything that `view` shows opens no key ring (X4, D50).

use std::collections::BTreeSet;

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_testharness::{Agent, CANARY, Failure, Outcome, World};
use serde_json::Value;

use super::caller::{Got, ask};
use super::forgery::{Forgery, change_template, forge, stream_is_read, template_has};
use super::vault::Vault;
use super::{agent, pod_of, request, workload};
use crate::lease::{forget_the_lease, leads};
use crate::world;

/// What a pod got with its own token, for this claim.
async fn got(
    world: &World,
    agent: &Agent,
    claim: &ApplyDeployment,
    namespace: &str,
    pod: &str,
) -> Outcome<Got> {
    let token = world.cluster().pod_token(namespace, pod, &[]).await?;
    ask(agent.rpc_port(), &request(claim, &token)).await
}

fn secrets_of(first: &str) -> Got {
    let expected = [("A", first), ("B", "second")]
        .map(|(name, value)| (name.to_owned(), format!("{CANARY}-{value}")));
    Got::Secrets(expected.to_vec())
}

fn words(got: Got) -> Outcome<String> {
    match got {
        Got::Refused {
            status: 401,
            code,
            message,
        } if code == "unauthenticated" => Ok(message),
        other @ (Got::Secrets(_) | Got::Refused { .. }) => {
            Err(Failure::new(format!("not refused as a thief: {other:?}")))
        }
    }
}

async fn count(agent: &Agent, series: &str) -> Outcome<Option<f64>> {
    Ok(agent.metrics().await?.get(series))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_replica_set_and_a_changed_template_get_no_secrets_and_honest_pods_do() -> Outcome
{
    let world = world().await?;
    let vault = Vault::start().await?;
    let own = workload(&world, &vault, "own");
    let mut elsewhere = workload(&world, &vault, "elsewhere");
    elsewhere.k8s_namespace = world.namespace(1);
    let (changed, relabelled) = (
        workload(&world, &vault, "changed"),
        workload(&world, &vault, "relabelled"),
    );
    let rolled = workload(&world, &vault, "rolled");
    world.push_all(&[
        own.clone(),
        elsewhere.clone(),
        changed.clone(),
        relabelled.clone(),
        rolled.clone(),
    ]);
    let agent = agent(&world, &vault).start().await?;
    // Whether the stream was read whole by then or not.
    let pod = pod_of(&world, &own).await?;
    let namespace = &own.k8s_namespace;
    let honest = got(&world, &agent, &own, namespace, &pod).await?;
    assert_eq!(honest, secrets_of("of own"));
    let early = pod_of(&world, &rolled).await?;
    pod_of(&world, &elsewhere).await?;
    stream_is_read(&agent).await?;

    let before = vault.calls();
    let no_token = ask(agent.rpc_port(), &request(&own, "")).await?;
    let mut heard = BTreeSet::from([words(no_token)?]);
    let forgery = Forgery {
        of: &own,
        namespace: &elsewhere.k8s_namespace,
        deployment_id: &own.deployment_id,
        is_marked: false,
    };
    let thief = forge(&world, &forgery).await?;
    let refused = got(&world, &agent, &own, &elsewhere.k8s_namespace, &thief).await?;
    heard.insert(words(refused)?);
    for (of, relabels) in [(&changed, false), (&relabelled, true)] {
        let mut claim = of.clone();
        "env_victim".clone_into(&mut claim.environment_id);
        let blob = vault.blob("env_victim", &[("A", "of a victim"), ("B", "second")]);
        claim.encrypted_environment_variables = blob.clone().into();
        let thief = change_template(&world, of, "env_victim", &blob, relabels).await?;
        let refused = got(&world, &agent, &claim, namespace, &thief).await?;
        heard.insert(words(refused)?);
    }
    assert_eq!(heard.len(), 1, "one opaque text: {heard:?}");
    assert_eq!(vault.calls(), before, "the vault was asked for a thief");
    for (result, times) in [("not_desired", 2.0), ("owner_of_another_environment", 1.0)] {
        let series = format!("krane_secrets_requests_total{{result=\"{result}\"}}");
        assert_eq!(count(&agent, &series).await?, Some(times), "{result}");
    }

    // A ReplicaSet does not roll its pods: both blobs are in use.
    let mut later = rolled.clone();
    later.replicas += 1;
    let blob = vault.blob(&later.environment_id, &[("A", "later"), ("B", "second")]);
    later.encrypted_environment_variables = blob.clone().into();
    world.push_all(std::slice::from_ref(&later));
    template_has(&world, &later, &blob).await?;
    let old = got(&world, &agent, &rolled, namespace, &early).await?;
    assert_eq!(old, secrets_of("of rolled"));
    let new = another_pod(&world, &later, &early).await?;
    let new = got(&world, &agent, &later, namespace, &new).await?;
    assert_eq!(new, secrets_of("later"));
    let honest = got(&world, &agent, &own, namespace, &pod).await?;
    assert_eq!(honest, secrets_of("of own"));
    agent.stop().await
}

/// A running pod of the workload that is not this one.
async fn another_pod(world: &World, of: &ApplyDeployment, known: &str) -> Outcome<String> {
    use krane_testharness::{eventually, limits};
    use kube::ResourceExt as _;
    eventually("another pod runs", limits::LONG, async || {
        let live = world.live().await.map_err(|failure| failure.to_string())?;
        let mut pods = live.pods.values().flatten().filter(|pod| {
            let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
            pod.labels().get("unkey.com/deployment.id") == Some(&of.deployment_id)
                && pod.name_any() != known
                && phase == Some("Running")
        });
        let pod = pods.next().ok_or("none runs")?;
        Ok(pod.name_any())
    })
    .await
}

/// A standby follows no stream: it refuses nothing for that, counts it and shows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_gives_honest_pods_their_secrets_and_says_that_it_did_not_prove_them() -> Outcome
{
    let world = world().await?;
    forget_the_lease(&world).await?;
    let vault = Vault::start().await?;
    let own = workload(&world, &vault, "own");
    world.push_all(std::slice::from_ref(&own));
    let elected = |name| {
        agent(&world, &vault)
            .set("lease.enabled", "true")
            .set("instance_id", name)
    };
    let first = elected("first").start().await?;
    leads("the first leads", &first, krane_testharness::limits::LONG).await?;
    let second = elected("second").start().await?;
    let pod = pod_of(&world, &own).await?;
    stream_is_read(&first).await?;
    for agent in [&first, &second] {
        let honest = got(&world, agent, &own, &own.k8s_namespace, &pod).await?;
        assert_eq!(honest, secrets_of("of own"));
    }
    let series = "krane_secrets_unproved_total{reason=\"standby\"}";
    assert_eq!(count(&first, series).await?, Some(0.0));
    assert_eq!(count(&second, series).await?, Some(1.0));
    let (_, body) = second.admin("/api/v1/health").await?;
    let health: Value = serde_json::from_str(&body)?;
    let why = health["secrets"]["unproved_because"].as_str();
    assert!(why.is_some_and(|why| why.contains("standby")), "{body}");
    let (_, page) = second.admin("/").await?;
    assert!(
        page.contains("are not compared with the desired state"),
        "{page}"
    );
    second.stop().await?;
    first.stop().await
}
