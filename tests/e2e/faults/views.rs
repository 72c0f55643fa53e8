//! Views of the cluster that are not filled yet, or have a gap.

use std::time::Duration;

use krane_sim::control_plane::{Kind, Method, Report, samples};
use krane_testharness::{Action, Call, Outcome, Proxy, limits};
use kube::ResourceExt as _;
use tokio::{sync::watch, time::sleep};

use crate::world;

use super::through;

/// Anvil and Sieve, start order (C18): an empty view that is not filled yet looks like "nothing exists".
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_concluded_before_the_first_lists() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(6, 2);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    agent.stop().await?;

    let (open, gate) = watch::channel(false);
    let proxy = Proxy::start(&world).await?;
    proxy.script(move |call: &Call| {
        let is_held = call.is_list() && matches!(call.resource.as_str(), "replicasets" | "pods");
        if is_held {
            Action::Hold(gate.clone())
        } else {
            Action::Pass
        }
    });
    let gone = wanted.split_off(5);
    world.control.push_all(gone.iter().map(samples::delete));
    wanted[0].memory_mib = 512;
    world.control.push(samples::apply(wanted[0].clone()));
    let before = world.control.look(|seen| seen.requests.len());
    let mark = world.mark()?;
    let mut agent = world
        .agent()
        .set("resync.interval", "5s")
        .kubeconfig(proxy.kubeconfig())
        .spawn()?;
    proxy
        .wait_for("both lists wait", limits::LONG, |records| {
            (records
                .iter()
                .filter(|record| record.call.is_list())
                .count()
                >= 4)
                .then_some(())
        })
        .await?;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(agent.health("ready").await?.0, 503);
    world.control.look(|seen| {
        for request in &seen.requests[before..] {
            // Policies need neither list: their controller waits for nobody else's.
            let is_expected = [Method::Heartbeat, Method::Watch(Kind::Policies)];
            assert!(is_expected.contains(&request.method), "{request:?}");
        }
    });
    assert!(world.writes(mark)?.is_empty());
    open.send_replace(true);
    agent.ready(limits::LONG).await?;
    world
        .settles("all is as wanted", &wanted, &gone, limits::LONG)
        .await?;
    let zero = world.control.look(|seen| {
        let mut since = seen.requests[before..].iter();
        since.any(|request| {
            matches!(&request.asked, krane_sim::control_plane::Asked::Report(Report::Update { name, instances })
                if instances.is_empty() && *name != wanted[0].k8s_name)
        })
    });
    assert!(!zero, "a report of no instances was sent");
    agent.stop().await
}

/// Sieve, unobserved state, instaclustr/cassandra-operator#398 (C05): what came and went while nobody looked.
#[tokio::test(flavor = "multi_thread")]
async fn deletions_that_no_event_told_of_are_found() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(2, 1);
    world.push_all(&wanted);
    let proxy = Proxy::start(&world).await?;
    let agent = through(&world, &proxy).await?;
    world
        .settles("both run", &wanted, &[], limits::LONG)
        .await?;
    let live = world.live().await?;
    let former = live
        .replica_sets
        .values()
        .map(kube::ResourceExt::uid)
        .collect::<Vec<_>>();

    proxy.script(|call: &Call| {
        if call.is_watch() || call.is_list() {
            Action::status(503, "ServiceUnavailable", "not now")
        } else {
            Action::Pass
        }
    });
    proxy.cut();
    // A pod is replaced, and a ReplicaSet by another one of its name.
    let first = live
        .replica_sets
        .values()
        .next()
        .map(|set| live.pods_of(set)[0].name_any());
    let first = first.unwrap_or_default();
    world
        .cluster()
        .delete_pod_now(&wanted[0].k8s_namespace, &first)
        .await?;
    let sets = world
        .api
        .within::<k8s_openapi::api::apps::v1::ReplicaSet>(&wanted[1].k8s_namespace);
    let mut copy = sets.get(&wanted[1].k8s_name).await?;
    world
        .api
        .delete::<k8s_openapi::api::apps::v1::ReplicaSet>(
            &wanted[1].k8s_namespace,
            &wanted[1].k8s_name,
        )
        .await?;
    copy.metadata.uid = None;
    copy.metadata.resource_version = None;
    copy.metadata.managed_fields = None;
    sets.create(&kube::api::PostParams::default(), &copy)
        .await?;
    sleep(Duration::from_secs(4)).await;
    proxy.pass();
    world
        .settles("only what is there now is told", &wanted, &[], limits::LONG)
        .await?;
    let now: Vec<_> = world
        .live()
        .await?
        .replica_sets
        .values()
        .map(kube::ResourceExt::uid)
        .collect();
    assert_ne!(former, now);
    agent.stop().await
}
