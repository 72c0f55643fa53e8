//! Objects that tests make, and waiting for states.

use std::time::{Duration, Instant};

use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{Namespace, Pod},
};
use krane_testcluster::Cluster;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(30);

/// Asks until it is so.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = ask().await {
            return value;
        }
        assert!(started.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn shared() -> (&'static Cluster, Client) {
    let cluster = Cluster::shared().await.unwrap();
    (cluster, cluster.admin_client().await.unwrap())
}

pub(crate) async fn namespace(client: &Client, name: &str) {
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

pub(crate) async fn replica_set(
    client: &Client,
    namespace: &str,
    name: &str,
    replicas: u32,
    image: &str,
) {
    let object = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "runtimeClassName": "gvisor",
                    "tolerations": [{"key": "karpenter.sh/nodepool", "operator": "Equal", "value": "untrusted", "effect": "NoSchedule"}],
                    "containers": [{"name": "main", "image": image}],
                },
            },
        },
    }))
    .unwrap();
    Api::<ReplicaSet>::namespaced(client.clone(), namespace)
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

pub(crate) async fn pods(client: &Client, namespace: &str, app: &str) -> Vec<Pod> {
    let parameters = ListParams::default().labels(&format!("app={app}"));
    Api::<Pod>::namespaced(client.clone(), namespace)
        .list(&parameters)
        .await
        .unwrap()
        .items
}

/// Phase, address, readiness and the reason a container waits for.
pub(crate) fn facts(pod: &Pod) -> (String, Option<String>, bool, Option<String>) {
    let status = pod.status.clone().unwrap_or_default();
    let ready = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let waits = status
        .container_statuses
        .iter()
        .flatten()
        .find_map(|container| container.state.clone()?.waiting?.reason);
    (
        status.phase.unwrap_or_default(),
        status.pod_ip,
        ready,
        waits,
    )
}

pub(crate) fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap()
}
