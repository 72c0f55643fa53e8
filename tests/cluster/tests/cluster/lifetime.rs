//! Faults, and the end: nothing outlives its owner.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use krane_testcluster::{Cluster, Component, Options};
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::support::{eventually, facts, namespace, pods, replica_set};

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

/// The longest way back: everything that talks to the API server has to find it again.
#[tokio::test]
async fn pods_are_made_again_after_the_api_server_and_etcd_died() {
    let cluster = Cluster::start(Options {
        nodes: 1,
        ..Options::default()
    })
    .await
    .unwrap();
    let client = cluster.admin_client().await.unwrap();
    namespace(&client, "again").await;
    for component in [Component::ApiServer, Component::Etcd] {
        cluster.kill(component).unwrap();
    }
    cluster.restart(Component::Etcd).await.unwrap();
    cluster.restart(Component::ApiServer).await.unwrap();
    replica_set(&client, "again", "web", 1, "registry.example/app:1").await;
    eventually("a Ready pod", async || {
        pods(&client, "again", "web")
            .await
            .iter()
            .any(|pod| facts(pod).2)
            .then_some(())
    })
    .await;
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
