//! Deployments with what hangs on them, from the outside.

use std::time::Duration;

use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_ports::Cluster;
use krane_sim::cluster::{Admin, Options, SimClient, SimCluster};
use krane_testcontract::sequences::{deployment, disruption_budget, service};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

struct Scene {
    client: SimClient,
    admin: Admin,
    _drivers: JoinSet<()>,
}

fn scene(seed: u64) -> Scene {
    let cluster = SimCluster::new(Options {
        seed,
        ..Options::default()
    });
    let mut drivers = JoinSet::new();
    drivers.spawn(cluster.clone().run());
    let admin = cluster.admin();
    admin.create_namespace("ws").unwrap();
    Scene {
        client: cluster.client(),
        admin,
        _drivers: drivers,
    }
}

fn web(replicas: u32, image: &str) -> Rendered {
    let mut rendered = deployment("ws", "web");
    rendered.body["spec"]["replicas"] = json!(replicas);
    rendered.body["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    rendered
}

fn secret(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ws"},
        "stringData": {"UNKEY_DATABASE_PRIMARY": "x"},
    })
}

impl Scene {
    fn status(&self) -> Value {
        let object = ObjectRef::new(Resource::Deployment, "ws", "web");
        self.admin.get(&object).unwrap()["status"].clone()
    }

    fn is_observed(&self) -> bool {
        let object = ObjectRef::new(Resource::Deployment, "ws", "web");
        let live = self.admin.get(&object).unwrap();
        live["status"]["observedGeneration"] == live["metadata"]["generation"]
    }

    fn count(&self, field: &str) -> u64 {
        self.status()[field].as_u64().unwrap_or_default()
    }

    /// Waits, in the cluster's time; `always` holds the whole time.
    async fn until(&self, what: &str, always: impl Fn() -> bool, fits: impl Fn() -> bool) {
        let mut pace = tokio::time::interval(Duration::from_millis(100));
        let waiting = async {
            loop {
                pace.tick().await;
                assert!(always(), "until {what}: {:#}", self.status());
                if fits() {
                    return;
                }
            }
        };
        let waited = timeout(Duration::from_secs(900), waiting).await;
        assert!(
            waited.is_ok(),
            "{what}: {:#?}",
            self.admin.list("Pod", None)
        );
    }

    async fn available(&self, count: u64) {
        let fits = || {
            self.is_observed()
                && self.count("availableReplicas") == count
                && self.count("updatedReplicas") == count
                && self.count("replicas") == count
                && self.admin.list("Pod", None).len() as u64 == count
        };
        let what = format!("{count} available");
        self.until(&what, || true, fits).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_gets_its_pods_and_says_so() {
    let scene = scene(1);
    scene.admin.create(secret("database"), "somebody").unwrap();
    scene
        .client
        .apply(&web(3, "registry.example/web:1"), None)
        .await
        .unwrap();
    scene.available(3).await;
    let mut status = scene.status();
    status.as_object_mut().unwrap().remove("conditions");
    // The revision that its controller notes down counts as a change.
    let expected = json!({
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
        "availableReplicas": 3,
    });
    assert_eq!(status, expected);
    for replicas in [1, 0, 2] {
        let object = web(replicas, "registry.example/web:1");
        scene.client.apply(&object, None).await.unwrap();
        scene.available(replicas.into()).await;
    }
    let sets = scene.admin.list("ReplicaSet", None);
    let [set] = &sets[..] else {
        panic!("{sets:#?}")
    };
    let hash = set["metadata"]["labels"]["pod-template-hash"]
        .as_str()
        .unwrap();
    assert_eq!(set["metadata"]["name"], format!("web-{hash}"));
    assert_eq!(
        set["spec"]["selector"]["matchLabels"]["pod-template-hash"],
        hash
    );
}

#[tokio::test(start_paused = true)]
async fn another_template_is_rolled_out_without_a_gap() {
    let scene = scene(2);
    scene.admin.create(secret("database"), "somebody").unwrap();
    scene
        .client
        .apply(&web(2, "registry.example/web:1"), None)
        .await
        .unwrap();
    scene.available(2).await;
    scene
        .client
        .apply(&web(2, "registry.example/web:2"), None)
        .await
        .unwrap();
    let is_rolled = || {
        scene.is_observed()
            && scene.count("updatedReplicas") == 2
            && scene.count("unavailableReplicas") == 0
            && scene.count("replicas") == 2
    };
    let no_gap = || scene.count("availableReplicas") >= 2 && scene.count("replicas") <= 3;
    scene.until("rolled out", no_gap, is_rolled).await;
    scene.available(2).await;
    for pod in scene.admin.list("Pod", None) {
        assert_eq!(
            pod["spec"]["containers"][0]["image"],
            "registry.example/web:2"
        );
    }
    // One that never works leaves the pods of before.
    scene
        .client
        .apply(&web(2, "registry.example/web:unready"), None)
        .await
        .unwrap();
    let wait = timeout(Duration::from_secs(600), std::future::pending::<()>());
    wait.await.unwrap_err();
    assert_eq!(
        (
            scene.count("availableReplicas"),
            scene.count("updatedReplicas")
        ),
        (2, 1)
    );
    assert_eq!(scene.count("unavailableReplicas"), 1);
    // Back to what was before: its ReplicaSet is used again.
    scene
        .client
        .apply(&web(2, "registry.example/web:2"), None)
        .await
        .unwrap();
    scene.available(2).await;
    assert_eq!(scene.admin.list("ReplicaSet", None).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_owns_goes_with_it() {
    let scene = scene(3);
    scene.admin.create(secret("database"), "somebody").unwrap();
    let live = scene
        .client
        .apply(&web(2, "registry.example/web:1"), None)
        .await
        .unwrap();
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": &*live.uid,
    }]);
    for mut owned in [service("ws", "web"), disruption_budget("ws", "web")] {
        owned.body["metadata"]["ownerReferences"] = owner.clone();
        scene.client.apply(&owned, None).await.unwrap();
    }
    scene.available(2).await;
    scene
        .client
        .delete(&live.reference, &live.uid)
        .await
        .unwrap();
    let kinds = [
        "Deployment",
        "ReplicaSet",
        "Pod",
        "Service",
        "PodDisruptionBudget",
    ];
    let is_empty = || {
        kinds
            .iter()
            .all(|kind| scene.admin.list(kind, None).is_empty())
    };
    scene.until("nothing left", || true, is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_a_secret_it_needs() {
    let scene = scene(4);
    scene
        .client
        .apply(&web(1, "registry.example/web:1"), None)
        .await
        .unwrap();
    let state = || {
        let pods = scene.admin.list("Pod", None);
        let pod = pods.first().cloned().unwrap_or_default();
        pod["status"]["containerStatuses"][0]["state"].clone()
    };
    let waits = || state()["waiting"]["reason"] == "CreateContainerConfigError";
    scene.until("it waits", || true, waits).await;
    assert_eq!(
        state()["waiting"]["message"],
        "secret \"database\" not found"
    );
    scene.admin.create(secret("otel"), "somebody").unwrap();
    let wait = timeout(Duration::from_secs(60), std::future::pending::<()>());
    wait.await.unwrap_err();
    assert!(waits() && scene.count("readyReplicas") == 0);
    scene.admin.create(secret("database"), "somebody").unwrap();
    scene.available(1).await;
}
