//! The test cluster itself, for real. The first run builds it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    authentication::v1::{TokenReview, TokenReviewSpec},
    core::v1::{ConfigMap, Namespace, Node, Pod, Secret},
};
use krane_testcluster::{AuditMark, Behaviour, Cluster, Component, KRANE_USER, Options, ZONES};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(30);

/// Asks until it is so.
async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = ask().await {
            return value;
        }
        assert!(started.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn shared() -> (&'static Cluster, Client) {
    let cluster = Cluster::shared().await.unwrap();
    (cluster, cluster.admin_client().await.unwrap())
}

async fn namespace(client: &Client, name: &str) {
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

async fn replica_set(client: &Client, namespace: &str, name: &str, replicas: u32, image: &str) {
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

async fn pods(client: &Client, namespace: &str, app: &str) -> Vec<Pod> {
    let parameters = ListParams::default().labels(&format!("app={app}"));
    Api::<Pod>::namespaced(client.clone(), namespace)
        .list(&parameters)
        .await
        .unwrap()
        .items
}

/// Phase, address, readiness and the reason a container waits for.
fn facts(pod: &Pod) -> (String, Option<String>, bool, Option<String>) {
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

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap()
}

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
    tokio::time::sleep(Duration::from_millis(1500)).await;
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

#[tokio::test]
async fn cilium_policies_are_checked_by_their_schema() {
    let (_, client) = shared().await;
    namespace(&client, "cilium").await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "cilium.io",
        "v2",
        "CiliumNetworkPolicy",
    ));
    let api: Api<DynamicObject> = Api::namespaced_with(client, "cilium", &resource);
    let apply = async |name: &str, spec: Value| {
        let object = json!({"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": {"name": name}, "spec": spec});
        api.patch(name, &PatchParams::apply("test"), &Patch::Apply(&object))
            .await
    };
    let ingress = json!([{"toPorts": [{"ports": [{"port": "8080", "protocol": "TCP"}]}]}]);
    apply(
        "good",
        json!({"endpointSelector": {"matchLabels": {"a": "b"}}, "ingress": ingress}),
    )
    .await
    .unwrap();
    let refused = apply("bad", json!({"endpointSelector": "everything"}))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("endpointSelector"),
        "{refused}"
    );
}

#[tokio::test]
async fn krane_has_the_rights_of_the_chart_and_the_audit_log_shows_its_writes() {
    let (cluster, admin) = shared().await;
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/krane/files/rbac.yaml");
    cluster.install_rbac(&chart).await.unwrap();
    let client = cluster.service_account_client().await.unwrap();
    let mark = cluster.audit_mark().unwrap();
    namespace(&client, "from-krane").await;
    Api::<Pod>::all(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
    assert!(
        Api::<Secret>::namespaced(client.clone(), "sentinel")
            .get("database")
            .await
            .is_err()
    );
    assert!(
        Api::<Secret>::namespaced(admin, "sentinel")
            .get("database")
            .await
            .is_ok()
    );

    let entries = eventually("the audit lines", async || {
        let entries = cluster.requests_by(KRANE_USER, mark).unwrap();
        (entries.len() == 3).then_some(entries)
    })
    .await;
    let seen: Vec<_> = entries
        .iter()
        .map(|e| (e.verb.as_str(), e.resource.as_str(), e.code))
        .collect();
    assert_eq!(
        seen,
        [
            ("create", "namespaces", 201),
            ("list", "pods", 200),
            ("get", "secrets", 403)
        ]
    );
    let writes = cluster.writes_by(KRANE_USER, mark).unwrap();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].name, "from-krane");
    assert!(
        !cluster
            .requests_by(KRANE_USER, AuditMark::START)
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn pod_tokens_are_bound_to_their_pod() {
    let (cluster, client) = shared().await;
    namespace(&client, "token").await;
    replica_set(&client, "token", "web", 1, "registry.example/app:1").await;
    let pod = eventually("a pod", async || {
        pods(&client, "token", "web")
            .await
            .into_iter()
            .next()
            .filter(|pod| facts(pod).2)
    })
    .await;
    let token = cluster
        .pod_token("token", &name(&pod), Some("krane"))
        .await
        .unwrap();
    let review = async |token: &str, audience: &str| {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: Some(vec![audience.to_owned()]),
            },
            ..TokenReview::default()
        };
        Api::<TokenReview>::all(client.clone())
            .create(&PostParams::default(), &review)
            .await
            .unwrap()
            .status
            .unwrap()
    };
    let status = review(&token, "krane").await;
    assert_eq!(status.authenticated, Some(true), "{status:?}");
    let extra = status.user.unwrap().extra.unwrap();
    assert_eq!(
        extra["authentication.kubernetes.io/pod-uid"],
        [pod.metadata.uid.clone().unwrap()]
    );
    assert_ne!(
        review(&token, "somebody else").await.authenticated,
        Some(true)
    );
}

#[tokio::test]
async fn the_api_server_dies_and_comes_back() {
    let options = Options {
        kwok: false,
        controllers: false,
        cilium: false,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let client = cluster.admin_client().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "krane");
    let map = serde_json::from_value(json!({"metadata": {"name": "kept"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();

    cluster.kill_api_server().unwrap();
    assert_eq!(cluster.pid(Component::ApiServer), None);
    assert!(maps.get("kept").await.is_err());
    cluster.start_api_server().await.unwrap();
    // The same client: address, certificate and token are the same.
    maps.get("kept").await.unwrap();
    assert!(
        cluster
            .start_api_server()
            .await
            .unwrap_err()
            .to_string()
            .contains("running already")
    );

    cluster.pause(Component::Etcd).unwrap();
    let frozen = tokio::time::timeout(
        Duration::from_secs(1),
        maps.create(&PostParams::default(), &map),
    )
    .await;
    assert!(frozen.is_err(), "{frozen:?}");
    cluster.resume(Component::Etcd).unwrap();
    eventually("answers again", async || maps.get("kept").await.ok()).await;

    assert!(
        cluster
            .pause(Component::Kwok)
            .unwrap_err()
            .to_string()
            .contains("not part of this cluster")
    );
    cluster.install_cilium().await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_after_drop() {
    let options = Options {
        kwok: false,
        controllers: false,
        ..Options::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let folder = cluster.folder().to_owned();
    // A stopped process dies, too.
    cluster.pause(Component::ApiServer).unwrap();
    assert!(!processes_of(&folder).is_empty());
    drop(cluster);
    assert_eq!(processes_of(&folder), Vec::<String>::new());
    assert!(!folder.exists());
}

#[tokio::test]
async fn nothing_is_left_after_the_owner_was_killed() {
    let (mut owner, folder) = up(&[]);
    assert_eq!(
        processes_of(&folder).len(),
        6,
        "five programs and the janitor: {:?}",
        processes_of(&folder)
    );
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("nothing left", async || {
        (processes_of(&folder).is_empty() && !folder.exists()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn nothing_is_left_after_the_end_of_input() {
    let (mut owner, folder) = up(&["--until-stdin-closes", "--no-kwok", "--no-controllers"]);
    drop(owner.stdin.take());
    assert!(owner.wait().unwrap().success());
    assert_eq!(processes_of(&folder), Vec::<String>::new());
    assert!(!folder.exists());
}

/// A cluster of another process, and its folder.
fn up(arguments: &[&str]) -> (Child, PathBuf) {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_krane-testcluster"))
        .arg("up")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").unwrap();
    (owner, Path::new(kubeconfig).parent().unwrap().to_owned())
}

/// Command lines that name the folder of a cluster.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&*folder))
        .collect()
}
