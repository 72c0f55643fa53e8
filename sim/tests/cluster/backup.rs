//! A cluster restored from a backup (F3).

use std::time::Duration;

use krane_domain::kinds::WatchSpec;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_ports::{Cluster, Item, Listed, WatchEnd, WatchEvent};
use krane_sim::cluster::{Options, SimCluster};
use krane_testcontract::eventually;
use serde_json::json;
use tokio::task::JoinSet;

use futures::StreamExt;

fn replica_set(name: &str, image: &str) -> Rendered {
    let labels = json!({"app.kubernetes.io/managed-by": "krane", "app": name});
    let container = json!({"name": "app", "image": image});
    let body = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "ws", "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    });
    Rendered::new(ObjectRef::new(Resource::ReplicaSet, "ws", name), body)
}

fn spec(resource: Resource) -> WatchSpec {
    WatchSpec {
        resource,
        namespace: None,
        label_selector: "app.kubernetes.io/managed-by=krane".to_owned(),
        field_selector: String::new(),
    }
}

fn version(listed: &Listed) -> u64 {
    listed.resource_version.parse().unwrap()
}

fn pods(listed: &Listed) -> Vec<(String, bool)> {
    let pods = listed.items.iter().map(|item| match item {
        Item::Pod(pod) => (pod.name.to_string(), pod.is_ready),
        Item::Object(object) => panic!("{object:?}"),
    });
    pods.collect()
}

async fn comes_back(bump: u64) {
    let cluster = SimCluster::new(Options::default());
    let mut drivers = JoinSet::new();
    drivers.spawn(cluster.clone().run());
    let (admin, client) = (cluster.admin(), cluster.client());
    admin.create_namespace("ws").unwrap();
    let ready = async || {
        let pods = pods(&client.list(&spec(Resource::Pod)).await.unwrap());
        let is_ready = pods.len() == 1 && pods[0].1;
        is_ready.then(|| pods[0].0.clone())
    };
    let old = client
        .apply(&replica_set("old", "app:1"), None)
        .await
        .unwrap();
    let pod = eventually(ready).await;
    let backup = admin.backup();
    let at = admin.version();

    client.delete(&old.reference, &old.uid).await.unwrap();
    client
        .apply(&replica_set("new", "app:1"), None)
        .await
        .unwrap();
    #[expect(clippy::disallowed_methods, reason = "the clock is a simulated one")]
    tokio::time::sleep(Duration::from_secs(60)).await;
    let seen = client.list(&spec(Resource::ReplicaSet)).await.unwrap();
    let mut broken = client
        .watch(&spec(Resource::ReplicaSet), &seen.resource_version)
        .await
        .unwrap();
    admin.restore(&backup, bump);
    let end = broken.next().await;
    assert!(matches!(end, Some(WatchEvent::Ended(WatchEnd::Failed(_)))));

    let listed = client.list(&spec(Resource::ReplicaSet)).await.unwrap();
    assert_eq!(version(&listed), at + bump);
    let [Item::Object(found)] = &listed.items[..] else {
        panic!("{listed:?}")
    };
    assert_eq!((&found.uid, &found.reference), (&old.uid, &old.reference));
    let mut watch = client
        .watch(&spec(Resource::ReplicaSet), &seen.resource_version)
        .await
        .unwrap();
    if bump > 0 {
        let end = watch.next().await;
        assert!(matches!(end, Some(WatchEvent::Ended(WatchEnd::Expired))));
    } else {
        assert!(version(&listed) < version(&seen));
        let silence = tokio::time::timeout(Duration::from_secs(70), watch.next());
        assert!(silence.await.is_err(), "no event and no bookmark");
    }
    // The controllers go on with what is there.
    assert_eq!(eventually(ready).await, pod);
    let mut changed = replica_set("old", "app:1");
    changed.body["spec"]["replicas"] = json!(3);
    let changed = client.apply(&changed, Some(&old.uid)).await.unwrap();
    assert!(changed.resource_version > at + bump);
    eventually(async || {
        let pods = pods(&client.list(&spec(Resource::Pod)).await.unwrap());
        let is_ready = pods.len() == 3 && pods.iter().all(|pod| pod.1);
        is_ready.then_some(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_came_after_the_backup_is_gone_and_versions_are_lower() {
    comes_back(0).await;
}

#[tokio::test(start_paused = true)]
async fn with_a_bumped_version_every_earlier_watch_expires() {
    comes_back(1_000_000_000).await;
}
