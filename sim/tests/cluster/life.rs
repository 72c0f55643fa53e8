//! ReplicaSets and their pods, from the outside.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::time::Duration;

use futures::StreamExt;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_domain::pod::{PodDigest, PodPhase};
use krane_ports::{Cluster, Item, WatchEvent};
use krane_sim::cluster::{Admin, Delivery, Lag, Options, SimClient, SimCluster};
use krane_sim::hooks::{Side, Verdict};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

struct Scene {
    cluster: SimCluster,
    client: SimClient,
    admin: Admin,
    _drivers: JoinSet<()>,
}

fn scene(seed: u64) -> Scene {
    let options = Options {
        seed,
        ..Options::default()
    };
    let cluster = SimCluster::new(options);
    let mut drivers = JoinSet::new();
    drivers.spawn(cluster.clone().run());
    let admin = cluster.admin();
    admin.create_namespace("ws").unwrap();
    Scene {
        client: cluster.client(),
        admin,
        cluster,
        _drivers: drivers,
    }
}

fn replica_set(name: &str, replicas: u32, image: &str) -> Rendered {
    let labels = json!({"app.kubernetes.io/managed-by": "krane", "app": name});
    Rendered::new(
        ObjectRef::new(Resource::ReplicaSet, "ws", name),
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": "ws", "labels": labels},
            "spec": {
                "replicas": replicas, "minReadySeconds": 30,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "app", "image": image}]},
                },
            },
        }),
    )
}

fn spec(resource: Resource) -> WatchSpec {
    WatchSpec {
        resource,
        namespace: None,
        label_selector: "app.kubernetes.io/managed-by=krane".to_owned(),
        field_selector: String::new(),
    }
}

impl Scene {
    async fn pods(&self) -> Vec<PodDigest> {
        let listed = self.client.list(&spec(Resource::Pod)).await.unwrap();
        let pods = listed.items.into_iter().filter_map(|item| match item {
            Item::Pod(pod) => Some(pod),
            Item::Object(_) => None,
        });
        pods.collect()
    }

    /// Waits, in the cluster's time, until the pods are as wanted.
    async fn until(&self, what: &str, fits: impl Fn(&[PodDigest]) -> bool) -> Vec<PodDigest> {
        let mut pace = tokio::time::interval(Duration::from_millis(100));
        let waiting = async {
            loop {
                pace.tick().await;
                let pods = self.pods().await;
                if fits(&pods) {
                    return pods;
                }
            }
        };
        let limit = Duration::from_secs(900);
        let pods = timeout(limit, waiting).await;
        pods.unwrap_or_else(|_| panic!("{what}: {:#?}", self.admin.list("Pod", None)))
    }

    async fn ready(&self, count: usize) -> Vec<PodDigest> {
        self.until(&format!("{count} ready"), |pods| {
            pods.len() == count && pods.iter().all(PodDigest::is_running_and_ready)
        })
        .await
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_gets_the_pods_it_wants_and_counts_them() {
    let scene = scene(1);
    let mut object = replica_set("web", 3, "registry.example/app:1");
    let live = scene.client.apply(&object, None).await.unwrap();
    let pods = scene.ready(3).await;
    assert!(
        pods.iter()
            .all(|pod| pod.owner.as_deref() == Some(&*live.uid))
    );
    let ips: BTreeSet<_> = pods.iter().map(|pod| pod.ip.clone()).collect();
    assert!(ips.len() == 3 && !ips.contains(&None));
    let while_they_become_available = timeout(Duration::from_secs(40), pending::<()>());
    while_they_become_available.await.unwrap_err();
    let status = scene.admin.get(&object.reference).unwrap()["status"].clone();
    assert_eq!(
        status,
        json!({
            "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "observedGeneration": 1,
        })
    );
    object.body["spec"]["replicas"] = json!(1);
    scene.client.apply(&object, Some(&live.uid)).await.unwrap();
    scene.ready(1).await;
    scene
        .client
        .delete(&object.reference, &live.uid)
        .await
        .unwrap();
    scene.until("none left", <[_]>::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn pods_crash_are_evicted_and_lose_their_node() {
    let scene = scene(2);
    let object = replica_set("web", 2, "registry.example/app:1");
    scene.client.apply(&object, None).await.unwrap();
    let pods = scene.ready(2).await;
    let first = ObjectRef::new(Resource::Pod, "ws", &*pods[0].name);
    scene.admin.crash_pod(&first);
    assert!(!scene.pods().await.iter().all(|pod| pod.is_ready));
    scene.ready(2).await;

    scene.admin.evict_pod(&first);
    scene
        .until("one failed, two ready", |pods| {
            let failed = pods.iter().filter(|pod| pod.phase == PodPhase::Failed);
            failed.count() == 1 && pods.iter().filter(|pod| pod.is_ready).count() == 2
        })
        .await;

    let running = scene
        .pods()
        .await
        .into_iter()
        .find(|pod| pod.is_ready)
        .unwrap();
    let lost = ObjectRef::new(Resource::Pod, "ws", &*running.name);
    let node = scene.admin.get(&lost).unwrap()["spec"]["nodeName"].clone();
    scene.admin.lose_node(node.as_str().unwrap());
    let about = |pods: &[PodDigest]| pods.iter().find(|pod| pod.uid == running.uid).cloned();
    scene
        .until("not ready, then terminating", |pods| {
            about(pods).is_some_and(|pod| pod.is_terminating && !pod.is_ready)
        })
        .await;
    scene.admin.return_node(node.as_str().unwrap());
    scene.until("ended", |pods| about(pods).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn tags_choose_how_pods_behave() {
    let scene = scene(3);
    let tags = ["pending", "image-pull", "unready", "crash", "stuck", "slow"];
    for tag in tags {
        let object = replica_set(tag, 1, &format!("registry.example/app:{tag}"));
        scene.client.apply(&object, None).await.unwrap();
    }
    let pods = scene
        .until("all settled", |pods| {
            pods.iter().filter(|pod| pod.is_ready).count() == 2
        })
        .await;
    let of = |tag: &str| pods.iter().find(|pod| pod.name.starts_with(tag)).unwrap();
    assert_eq!(
        (of("pending").phase, of("pending").ip.clone()),
        (PodPhase::Pending, None)
    );
    assert_eq!(of("image-pull").phase, PodPhase::Pending);
    assert!(of("image-pull").ip.is_some());
    assert_eq!(of("unready").phase, PodPhase::Running);
    assert!(of("stuck").is_ready && of("slow").is_ready);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_ends_with_everything_in_it() {
    let scene = scene(4);
    let object = replica_set("web", 2, "registry.example/app:1");
    scene.client.apply(&object, None).await.unwrap();
    scene.ready(2).await;
    let namespace = ObjectRef::new(Resource::Namespace, "", "ws");
    scene.admin.delete(&namespace, None).unwrap();
    scene.until("none left", <[_]>::is_empty).await;
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    while scene.admin.get(&namespace).is_some() {
        pace.tick().await;
    }
    assert!(scene.client.get(&object.reference).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn hooks_refuse_lose_and_hang_calls() {
    let scene = scene(5);
    let object = replica_set("web", 0, "registry.example/app:1");
    scene.client.hooks().set(|side, op| match (side, op.call) {
        (Side::Before, "apply") => Verdict::LoseAnswer,
        (Side::Before, "get") => Verdict::Hang,
        _ => Verdict::Proceed,
    });
    let refusal = scene.client.apply(&object, None).await.unwrap_err();
    assert_eq!(refusal.code, 0);
    assert!(scene.admin.get(&object.reference).is_some());
    let limit = Duration::from_secs(60);
    timeout(limit, scene.client.get(&object.reference))
        .await
        .unwrap_err();
    let other = scene.cluster.client();
    assert!(other.get(&object.reference).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lags_shows_the_past_and_catches_up() {
    let scene = scene(6);
    let object = replica_set("web", 0, "registry.example/app:1");
    let listed = scene
        .client
        .list(&spec(Resource::ReplicaSet))
        .await
        .unwrap();
    let before: u64 = listed.resource_version.parse().unwrap();
    scene.client.set_lag(Lag::At(before));
    let from = &listed.resource_version;
    let mut events = scene
        .client
        .watch(&spec(Resource::ReplicaSet), from)
        .await
        .unwrap();
    let created = scene.client.apply(&object, None).await.unwrap();
    assert!(scene.client.get(&object.reference).await.unwrap().is_none());
    let stale = scene
        .client
        .list(&spec(Resource::ReplicaSet))
        .await
        .unwrap();
    assert!(stale.items.is_empty() && stale.resource_version == *from);
    assert!(
        timeout(Duration::from_secs(30), events.next())
            .await
            .is_err()
    );
    scene.client.set_lag(Lag::None);
    let event = timeout(Duration::from_secs(30), events.next())
        .await
        .unwrap();
    assert!(
        matches!(event, Some(WatchEvent::Applied(Item::Object(live))) if live.uid == created.uid)
    );
}

#[tokio::test(start_paused = true)]
async fn events_are_dropped_repeated_and_swapped() {
    let options = Options {
        has_controllers: false,
        ..Options::default()
    };
    let quiet = SimCluster::new(options);
    quiet.admin().create_namespace("ws").unwrap();
    let client = quiet.client();
    let from = quiet.admin().version().to_string();
    let fates: BTreeMap<&str, Delivery> = [
        ("a", Delivery::Drop),
        ("b", Delivery::Repeat),
        ("c", Delivery::Swap),
    ]
    .into();
    client.deliveries().set(move |_, event| match event {
        WatchEvent::Applied(Item::Object(live)) => {
            let fate = fates.get(&*live.reference.name).copied();
            fate.unwrap_or(Delivery::Deliver)
        }
        WatchEvent::Applied(Item::Pod(_))
        | WatchEvent::Deleted(_)
        | WatchEvent::Bookmark(_)
        | WatchEvent::Undecodable(_)
        | WatchEvent::Ended(_) => Delivery::Deliver,
    });
    let mut events = client
        .watch(&spec(Resource::ReplicaSet), &from)
        .await
        .unwrap();
    for name in ["a", "b", "c", "d"] {
        let object = replica_set(name, 0, "registry.example/app:1");
        client.apply(&object, None).await.unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        if let Some(WatchEvent::Applied(Item::Object(live))) = events.next().await {
            seen.push(live.reference.name.to_string());
        }
    }
    assert_eq!(seen, ["b", "b", "d", "c"]);
}

async fn history(seed: u64) -> Vec<String> {
    let scene = scene(seed);
    for (name, replicas) in [("a", 2), ("b", 3)] {
        let object = replica_set(name, replicas, "registry.example/app:1");
        scene.client.apply(&object, None).await.unwrap();
    }
    let pods = scene.ready(5).await;
    pods.into_iter()
        .map(|pod| {
            format!(
                "{} {} {} {:?}",
                pod.name, pod.uid, pod.resource_version, pod.ip
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_seed_decides_everything() {
    assert_eq!(history(11).await, history(11).await);
    assert_ne!(history(11).await, history(12).await);
}
