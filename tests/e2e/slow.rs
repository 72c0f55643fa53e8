//! Admission webhooks that do not answer, and writes that wait for them (F32, D49).

use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::ReplicaSet;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_testharness::{Action, Call, Outcome, Proxy, Signal, World, eventually, limits};
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world;

/// A webhook that the API server reaches and never hears of; it goes on after the time-out.
fn dead_webhook(name: &str, port: u16, namespace: &str) -> Value {
    json!({
        "name": name,
        "clientConfig": {"url": format!("https://127.0.0.1:{port}/")},
        "rules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["replicasets"],
            "operations": ["CREATE", "UPDATE"],
        }],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    })
}

async fn is_there(world: &World, wanted: &ApplyDeployment, since: Instant) -> Outcome<Duration> {
    let sets = world.api.within::<ReplicaSet>(&wanted.k8s_namespace);
    let name = &wanted.k8s_name;
    eventually(name, limits::LONG, async || {
        let found = sets.get_opt(name).await;
        let found = found.map_err(|error| error.to_string())?;
        found.ok_or_else(|| "it is not there".to_owned())
    })
    .await?;
    Ok(since.elapsed())
}

/// Two of 10 s each stand in the way: mutating ones are called one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_dead_webhooks_hold_up_arrives_once_and_holds_up_no_other() -> Outcome {
    let world = world().await?;
    // The kernel accepts, and nobody reads.
    let nobody = TcpListener::bind("127.0.0.1:0").await?;
    let port = nobody.local_addr()?.port();
    let wanted = world.deployments(4, 2);
    let (slow, others) = (&wanted[0], [&wanted[1], &wanted[3]]);
    let namespace = &slow.k8s_namespace;
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": format!("dead-{namespace}")},
        "webhooks": [
            dead_webhook("one.dead.example", port, namespace),
            dead_webhook("two.dead.example", port, namespace),
        ],
    }))?;
    let webhooks = world.api.all::<MutatingWebhookConfiguration>();
    webhooks
        .create(&PostParams::default(), &configuration)
        .await?;
    let mark = world.mark()?;
    let agent = world.agent().start().await?;

    let began = Instant::now();
    world.push_all(&wanted);
    for other in others {
        let took = is_there(&world, other, began).await?;
        println!("{} is there after {took:?}", other.k8s_name);
        assert!(took < Duration::from_secs(15), "it waited: {took:?}");
    }
    for slow in [&wanted[0], &wanted[2]] {
        let took = is_there(&world, slow, began).await?;
        println!("{} is there after {took:?}", slow.k8s_name);
        // More than writes had before, or the webhooks were not asked.
        assert!(took > Duration::from_secs(16), "{took:?}");
    }
    world
        .settles("all run and are reported", &wanted, &[], limits::LONG)
        .await?;
    let writes = world.writes(mark)?;
    for deployment in &wanted {
        let of_it = writes
            .iter()
            .filter(|write| write.resource == "replicasets" && write.name == deployment.k8s_name);
        assert_eq!(of_it.count(), 1, "{} was written once", deployment.k8s_name);
    }
    agent.stop().await?;
    world.api.delete_global(&configuration).await
}

/// D41: the limit of a write is longer than a process may take to end.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_while_writes_hang_ends_it_in_time() -> Outcome {
    let world = world().await?;
    let proxy = Proxy::start(&world).await?;
    proxy.script(|call: &Call| {
        if call.is_write() {
            Action::Hang
        } else {
            Action::Pass
        }
    });
    world.push_all(&world.deployments(20, 10));
    let mut agent = world.agent().kubeconfig(proxy.kubeconfig()).spawn()?;
    proxy
        .wait_for("writes that hang", limits::LONG, |records| {
            let writes = records.iter().filter(|record| record.call.is_write());
            (writes.count() >= 10).then_some(())
        })
        .await?;
    let signaled = Instant::now();
    agent.signal(Signal::TERM)?;
    let status = agent.wait(Duration::from_secs(10)).await?;
    println!("{status} {:?} after SIGTERM", signaled.elapsed());
    assert!(status.success(), "{status}");
    Ok(())
}
