//! Nodes and pods: placed, played, and patched by tests.

use std::collections::BTreeSet;

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Node};
use krane_testcluster::{Behaviour, ZONES};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};

use crate::support::{eventually, facts, name, namespace, pods, replica_set, shared};

#[tokio::test]
async fn nodes_have_zones_and_taints() {
    let (_, client) = shared().await;
    let nodes = Api::<Node>::all(client)
        .list(&ListParams::default())
        .await
        .unwrap();
    let zones: BTreeSet<_> = nodes
        .iter()
        .map(|node| node.metadata.labels.as_ref().unwrap()["topology.kubernetes.io/zone"].clone())
        .collect();
    assert!(zones.iter().eq(ZONES.iter()));
    let taints: BTreeSet<_> = nodes
        .iter()
        .flat_map(|node| node.spec.as_ref().unwrap().taints.iter().flatten())
        .map(|taint| {
            format!(
                "{}={}:{}",
                taint.key,
                taint.value.as_deref().unwrap_or_default(),
                taint.effect
            )
        })
        .collect();
    let expected = [
        "karpenter.sh/nodepool=untrusted:NoSchedule",
        "node-class=sentinel:NoSchedule",
    ];
    assert!(taints.iter().eq(expected.iter()), "{taints:?}");
}

#[tokio::test]
async fn replica_set_gets_ready_pods_with_addresses() {
    let (_, client) = shared().await;
    namespace(&client, "well").await;
    replica_set(&client, "well", "web", 3, "registry.example/app:1").await;
    let found = eventually("three Ready pods", async || {
        let pods = pods(&client, "well", "web").await;
        (pods.iter().filter(|pod| facts(pod).2).count() == 3).then_some(pods)
    })
    .await;
    let addresses: BTreeSet<_> = found.iter().map(|pod| facts(pod).1.unwrap()).collect();
    assert_eq!(addresses.len(), 3);
    for pod in &found {
        assert!(
            pod.spec
                .as_ref()
                .unwrap()
                .node_name
                .as_ref()
                .unwrap()
                .starts_with("untrusted-")
        );
    }
    Api::<ReplicaSet>::namespaced(client.clone(), "well")
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    eventually("no pods", async || {
        pods(&client, "well", "web").await.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn pods_behave_as_their_image_says() {
    let (cluster, client) = shared().await;
    namespace(&client, "behaviour").await;
    for behaviour in Behaviour::ALL {
        replica_set(
            &client,
            "behaviour",
            behaviour.as_str(),
            1,
            &behaviour.image(),
        )
        .await;
    }
    let one = async |app: &str| pods(&client, "behaviour", app).await.into_iter().next();
    let reaches = async |behaviour: Behaviour,
                         phase: &str,
                         address: bool,
                         ready: bool,
                         waits: Option<&str>| {
        eventually(behaviour.as_str(), async || {
            let pod = one(behaviour.as_str()).await?;
            pod.spec.as_ref()?.node_name.as_ref()?;
            let found = facts(&pod);
            (found.0 == phase
                && found.1.is_some() == address
                && found.2 == ready
                && found.3.as_deref() == waits)
                .then_some(())
        })
        .await;
    };
    reaches(Behaviour::Well, "Running", true, true, None).await;
    reaches(
        Behaviour::ImagePull,
        "Pending",
        true,
        false,
        Some("ErrImagePull"),
    )
    .await;
    reaches(Behaviour::Unready, "Running", true, false, None).await;
    reaches(
        Behaviour::Crash,
        "Running",
        true,
        false,
        Some("CrashLoopBackOff"),
    )
    .await;
    reaches(Behaviour::Slow, "Running", true, true, None).await;
    reaches(Behaviour::Fail, "Failed", false, false, None).await;
    // By now these would have become something else.
    reaches(Behaviour::Pending, "Pending", false, false, None).await;
    reaches(Behaviour::Manual, "Pending", false, false, None).await;
    for behaviour in [Behaviour::Fail, Behaviour::Stuck] {
        Api::<ReplicaSet>::namespaced(client.clone(), "behaviour")
            .delete(behaviour.as_str(), &DeleteParams::background())
            .await
            .unwrap();
    }
    eventually("a Terminating pod", async || {
        one("stuck").await?.metadata.deletion_timestamp
    })
    .await;
    eventually("no failing pods", async || {
        one("fail").await.is_none().then_some(())
    })
    .await;
    let stuck = one("stuck").await.unwrap();
    cluster
        .set_pod_behaviour("behaviour", &name(&stuck), Behaviour::Well)
        .await
        .unwrap();
    eventually("the stuck pod gone", async || {
        one("stuck").await.is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_tests_patch_into_a_pod_stays() {
    let (cluster, client) = shared().await;
    namespace(&client, "patched").await;
    replica_set(&client, "patched", "web", 1, "registry.example/app:1").await;
    let one = async || pods(&client, "patched", "web").await.into_iter().next();
    let pod = eventually("a Ready pod", async || {
        one().await.filter(|pod| facts(pod).2)
    })
    .await;
    let pod = name(&pod);

    cluster.set_pod_ready("patched", &pod, false).await.unwrap();
    // Whoever plays the kubelet has been at work since when it made another pod Ready.
    replica_set(&client, "patched", "later", 1, "registry.example/app:1").await;
    eventually("another Ready pod", async || {
        let pods = pods(&client, "patched", "later").await;
        pods.iter().any(|pod| facts(pod).2).then_some(())
    })
    .await;
    assert!(!facts(&one().await.unwrap()).2);
    cluster.set_pod_ready("patched", &pod, true).await.unwrap();
    assert!(facts(&one().await.unwrap()).2);
    cluster.crash_pod("patched", &pod).await.unwrap();
    let (phase, _, ready, waits) = facts(&one().await.unwrap());
    assert_eq!(
        (phase.as_str(), ready, waits.as_deref()),
        ("Running", false, Some("CrashLoopBackOff"))
    );
    cluster.fail_pod("patched", &pod).await.unwrap();
    eventually("a second pod", async || {
        (pods(&client, "patched", "web").await.len() == 2).then_some(())
    })
    .await;
}
