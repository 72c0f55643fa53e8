//! Pods ask the real binary for their secrets, with real tokens of a real API server.

mod caller;
mod forgery;
mod permissions;
mod rate;
mod senders;
mod tokens;
mod vault;
mod whose_pod;

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_proto::krane::v1::DecryptSecretsBlobRequest;
use krane_sim::control_plane::samples;
use krane_testharness::{AgentBuilder, CANARY, Collector, Failure, Outcome, World};

use self::caller::{Got, ask};
use self::vault::Vault;
use crate::world;

const DECRYPT: &str = "/krane.v1.SecretsService/DecryptSecretsBlob";

/// A workload with two variables.
fn workload(world: &World, vault: &Vault, name: &str) -> ApplyDeployment {
    let mut wanted = samples::deployment(&world.namespace(0), name);
    let variables = [("A", &*format!("of {name}")), ("B", "second")];
    wanted.encrypted_environment_variables = vault.blob(&wanted.environment_id, &variables).into();
    wanted
}

fn agent(world: &World, vault: &Vault) -> AgentBuilder {
    world
        .agent()
        .set("vault.url", &vault.url())
        .variable("UNKEY_VAULT_TOKEN", vault::TOKEN)
}

/// The name of the only running pod of a workload.
async fn pod_of(world: &World, wanted: &ApplyDeployment) -> Outcome<String> {
    let selector = format!("unkey.com/deployment.id={}", wanted.deployment_id);
    forgery::running(world, &wanted.k8s_namespace, &selector).await
}

fn request(wanted: &ApplyDeployment, token: &str) -> DecryptSecretsBlobRequest {
    DecryptSecretsBlobRequest {
        encrypted_blob: wanted.encrypted_environment_variables.clone(),
        environment_id: wanted.environment_id.clone(),
        token: token.to_owned(),
        deployment_id: wanted.deployment_id.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_gets_its_secrets_and_a_thief_gets_the_same_words_whatever_it_tries() -> Outcome {
    let world = world().await?;
    let vault = Vault::start().await?;
    let (own, other) = (
        workload(&world, &vault, "own"),
        workload(&world, &vault, "other"),
    );
    world.push_all(&[own.clone(), other.clone()]);
    let collector = Collector::start().await?;
    let agent = agent(&world, &vault)
        .set("observability.tracing.endpoint", &collector.url())
        .set("observability.tracing.sample_rate", "1")
        .start()
        .await?;
    let (pod, thief) = (pod_of(&world, &own).await?, pod_of(&world, &other).await?);
    let of = async |pod: &str| -> Outcome<String> {
        let token = world.cluster().pod_token(&own.k8s_namespace, pod, &[]);
        Ok(token.await?)
    };
    let (token, stolen) = (of(&pod).await?, of(&thief).await?);
    let port = agent.rpc_port();

    let got = ask(port, &request(&own, &token)).await?;
    let expected = [("A", "of own"), ("B", "second")]
        .map(|(name, value)| (name.to_owned(), format!("{CANARY}-{value}")));
    assert_eq!(got, Got::Secrets(expected.to_vec()));
    let asked = vault.calls();

    let mut words = std::collections::BTreeSet::new();
    let unbound = world
        .cluster()
        .service_account_token(&own.k8s_namespace, "default");
    for token in [&*stolen, &*unbound.await?, "", "canary-5f1c0d-no-token"] {
        match ask(port, &request(&own, token)).await? {
            Got::Refused {
                status,
                code,
                message,
            } => {
                assert_eq!((status, &*code), (401, "unauthenticated"), "{message}");
                words.insert(message);
            }
            Got::Secrets(_) => return Err(Failure::new("a thief got secrets")),
        }
    }
    assert_eq!(words.len(), 1, "{words:?}");
    assert_eq!(vault.calls(), asked, "the vault was asked for a thief");

    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = world.api.within(&own.k8s_namespace);
    pods.delete(&pod, &kube::api::DeleteParams::default().grace_period(0))
        .await?;
    let after = ask(port, &request(&own, &token)).await?;
    assert!(
        matches!(&after, Got::Refused { status: 401, .. }),
        "{after:?}"
    );
    let metrics = agent.metrics().await?;
    let granted = metrics.get("krane_secrets_requests_total{result=\"granted\"}");
    assert_eq!(granted, Some(1.0));
    // Stops the agent, and searches its log and all else that it shows for every canary above.
    agent.stop().await?;
    let traces = collector.text();
    assert!(traces.contains("TraceService/Export") && traces.contains("own"));
    assert!(!traces.contains(CANARY));
    assert!(!traces.contains(&*token) && !traces.contains(&*stolen));
    Ok(())
}
