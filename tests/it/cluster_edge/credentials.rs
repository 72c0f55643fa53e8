//! Which credentials are used, and what happens when they change or fail.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use krane_domain::refusal::RefusalClass;
use krane_kubernetes::{
    ACCOUNT_FOLDER, AccessError, CallLimits, CallTimeouts, KubeAccess, KubeCluster, KubeConnection,
};
use krane_ports::{Cluster, WatchEvent};
use krane_settings::AccessInputs;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::server::{Answer, PATIENCE, Server};
use super::{AGENT, Rig, kubeconfig, live, pod, pods, rendered, replica_set, status};

/// Any certificate will do: the scripted server speaks plain HTTP.
const CA: &str = include_str!("ca.crt");

fn in_pod() -> AccessInputs {
    AccessInputs {
        service_host: Some("10.0.0.1".to_owned()),
        service_port: Some("443".to_owned()),
        kubeconfig_list: Some("/env/one:/env/two".into()),
        home: Some(PathBuf::from("/home/krane")),
        ..AccessInputs::default()
    }
}

fn files(access: &KubeAccess) -> &[PathBuf] {
    match access {
        KubeAccess::Kubeconfig { files, .. } => files,
        KubeAccess::InCluster { .. } => &[],
    }
}

#[test]
fn the_pods_own_account_wins_over_a_kubeconfig_in_the_environment() {
    let access = KubeAccess::choose(&in_pod()).unwrap();
    let KubeAccess::InCluster { server, account } = access else {
        panic!("{access:?}")
    };
    assert_eq!(server, "https://10.0.0.1:443/");
    assert_eq!(account, Path::new(ACCOUNT_FOLDER));
}

#[test]
fn an_ipv6_service_address_gets_its_brackets() {
    let inputs = AccessInputs {
        service_host: Some("fd00::1".to_owned()),
        ..in_pod()
    };
    let access = KubeAccess::choose(&inputs).unwrap();
    assert!(
        access.to_string().contains("https://[fd00::1]:443"),
        "{access}"
    );
}

#[test]
fn a_flag_wins_over_the_pods_own_account() {
    let flag = AccessInputs {
        kubeconfig: Some("/flag".into()),
        ..in_pod()
    };
    assert_eq!(
        files(&KubeAccess::choose(&flag).unwrap()),
        [Path::new("/flag")]
    );
    let context = AccessInputs {
        context: Some("dev".to_owned()),
        ..in_pod()
    };
    let access = KubeAccess::choose(&context).unwrap();
    assert_eq!(
        files(&access),
        [Path::new("/env/one"), Path::new("/env/two")]
    );
    assert!(matches!(access, KubeAccess::Kubeconfig { context: Some(name), .. } if name == "dev"));
}

#[test]
fn outside_a_pod_the_environment_comes_before_the_home_folder() {
    let outside = AccessInputs {
        service_host: None,
        ..in_pod()
    };
    let chosen = KubeAccess::choose(&outside).unwrap();
    assert_eq!(
        files(&chosen),
        [Path::new("/env/one"), Path::new("/env/two")]
    );
    let empty = AccessInputs {
        kubeconfig_list: Some(":".into()),
        ..outside.clone()
    };
    let chosen = KubeAccess::choose(&empty).unwrap();
    assert_eq!(files(&chosen), [Path::new("/home/krane/.kube/config")]);
    let nothing = AccessInputs {
        home: None,
        ..empty
    };
    assert!(matches!(
        KubeAccess::choose(&nothing),
        Err(AccessError::Nothing)
    ));
}

#[test]
fn a_service_address_that_is_none_is_named() {
    for (host, port) in [
        ("10.0.0.1", ""),
        ("10.0.0.1", "tcp://x"),
        ("not a host", "443"),
    ] {
        let inputs = AccessInputs {
            service_host: Some(host.to_owned()),
            service_port: Some(port.to_owned()),
            ..AccessInputs::default()
        };
        let error = KubeAccess::choose(&inputs).unwrap_err();
        assert!(error.to_string().contains(host), "{error}");
    }
}

async fn open(access: KubeAccess) -> Result<KubeConnection, AccessError> {
    KubeConnection::open(access, AGENT, Arc::new(())).await
}

#[tokio::test]
async fn the_named_context_of_merged_files_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let one = kubeconfig(&folder, "one", "http://one:1", "");
    let two = kubeconfig(&folder, "two", "http://two:2", "");
    let files = vec![one, two];
    let current = KubeAccess::Kubeconfig {
        files: files.clone(),
        context: None,
    };
    let current = open(current).await.unwrap();
    assert_eq!((current.host(), current.namespace()), ("one:1", "ns-one"));
    let named = KubeAccess::Kubeconfig {
        files: files.clone(),
        context: Some("two".to_owned()),
    };
    let named = open(named).await.unwrap();
    assert_eq!((named.host(), named.namespace()), ("two:2", "ns-two"));
    let absent = KubeAccess::Kubeconfig {
        files,
        context: Some("three".to_owned()),
    };
    let error = open(absent).await.unwrap_err();
    assert!(error.to_string().contains("--context"), "{error}");
}

#[tokio::test]
async fn a_kubeconfig_that_wants_a_proxy_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = kubeconfig(
        &folder,
        "one",
        "http://one:1",
        "proxy-url: http://proxy:3128",
    );
    let access = KubeAccess::Kubeconfig {
        files: vec![file],
        context: None,
    };
    assert!(matches!(open(access).await, Err(AccessError::Proxy { .. })));
}

/// D34: the parser quotes the lines around a mistake, and in a kubeconfig these hold tokens.
#[tokio::test]
async fn a_malformed_kubeconfig_is_named_with_the_place_and_never_quoted() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        "users:\n- name: u\n  user:\n    token: canary-7\n   x: y\n",
        "users: [{name: u, user: {token: [canary-7]}}]\n",
        "users: canary-7\n",
        "canary-7",
        "{canary-7",
        "\"canary-7\\q\"",
        "users: [{name: u, user: {token: canary-7, exec: {env: canary-7}}}]\n",
    ] {
        let file = folder.path().join("config");
        fs::write(&file, text).unwrap();
        let access = KubeAccess::Kubeconfig {
            files: vec![file],
            context: None,
        };
        let error = open(access).await.unwrap_err();
        let mut shown = format!("{error} {error:?}");
        let mut cause = std::error::Error::source(&error);
        while let Some(next) = cause {
            shown = format!("{shown} {next} {next:?}");
            cause = next.source();
        }
        assert!(!shown.contains("canary"), "{text}: {shown}");
        assert!(shown.contains("line "), "{text}: {shown}");
    }
}

#[tokio::test]
async fn missing_files_are_named_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("absent");
    let error = open(KubeAccess::Kubeconfig {
        files: vec![file],
        context: None,
    })
    .await
    .unwrap_err();
    assert!(error.to_string().contains("absent") && error.to_string().contains("--kubeconfig"));
    let account = folder.path().to_owned();
    let server = "http://10.0.0.1:1".parse().unwrap();
    let error = open(KubeAccess::InCluster { server, account })
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("automountServiceAccountToken"),
        "{error}"
    );
}

/// The folder of a pod's account, in the shape the kubelet gives it: files are symlinks into a
/// folder that is swapped as one.
struct Account {
    folder: TempDir,
    writes: u32,
}

impl Account {
    fn new(token: &str) -> Self {
        let mut account = Self {
            folder: tempfile::tempdir().unwrap(),
            writes: 0,
        };
        account.write(token);
        for name in ["token", "ca.crt", "namespace"] {
            symlink(Path::new("..data").join(name), account.path().join(name)).unwrap();
        }
        account
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&mut self, token: &str) {
        self.writes += 1;
        let data = self.path().join(format!("..{}", self.writes));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("token"), token).unwrap();
        fs::write(data.join("ca.crt"), CA).unwrap();
        fs::write(data.join("namespace"), "krane-system\n").unwrap();
        let fresh = self.path().join("..fresh");
        symlink(&data, &fresh).unwrap();
        fs::rename(fresh, self.path().join("..data")).unwrap();
    }

    async fn connect(&self, server: &Server) -> (Arc<KubeConnection>, Arc<KubeCluster>) {
        let access = KubeAccess::InCluster {
            server: format!("http://{}", server.address).parse().unwrap(),
            account: self.path().to_owned(),
        };
        let connection = Arc::new(open(access).await.unwrap());
        let cluster = KubeCluster::new(
            Arc::clone(&connection),
            CallLimits::default(),
            CallTimeouts::default(),
        );
        (connection, Arc::new(cluster))
    }
}

fn unauthorized() -> Answer {
    Answer::json(401, &status(401, "Unauthorized", "Unauthorized"))
}

/// kubernetes-client/python#1768, kubernetes/kubernetes#77651 (B43): the token on disk is replaced,
/// the old one is refused.
#[tokio::test]
async fn a_rotated_token_is_used_at_the_first_401_and_watches_stay_open() {
    let (valid, is_valid) = watch::channel("first".to_owned());
    let (feed, pieces) = mpsc::channel(1);
    let pieces = Mutex::new(Some(pieces));
    let server = Server::start(move |seen| {
        if seen.bearer() != *is_valid.borrow() {
            return unauthorized();
        }
        match seen.query("watch") {
            Some(_) => Answer::Stream(pieces.lock().unwrap().take().unwrap()),
            None => Answer::json(200, &live(7)),
        }
    })
    .await;
    let mut account = Account::new("first");
    let (connection, cluster) = account.connect(&server).await;
    assert_eq!(connection.namespace(), "krane-system");
    let mut events = cluster.watch(&pods(), "1").await.unwrap();
    cluster.get(&replica_set()).await.unwrap();

    account.write("second");
    valid.send("second".to_owned()).unwrap();
    cluster.apply(&rendered(), None).await.unwrap();
    assert_eq!(connection.unauthorized_total(), 1);
    assert_eq!(server.requests().last().unwrap().bearer(), "second");

    let event = json!({"type": "ADDED", "object": pod("a", 2)});
    feed.send(format!("{event}\n").into_bytes()).await.unwrap();
    let event = timeout(PATIENCE, events.next()).await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Applied(_))));
}

/// kubernetes/kubernetes#77651 (B43): many calls meet the old token at once.
#[tokio::test]
async fn many_calls_that_meet_an_old_token_build_one_client() {
    let (valid, is_valid) = watch::channel("first".to_owned());
    let (gate, is_open) = watch::channel(false);
    let server = Server::start(move |seen| {
        if seen.bearer() == *is_valid.borrow() {
            Answer::json(200, &live(7))
        } else {
            Answer::After(is_open.clone(), Box::new(unauthorized()))
        }
    })
    .await;
    let mut account = Account::new("first");
    let (connection, cluster) = account.connect(&server).await;
    account.write("second");
    valid.send("second".to_owned()).unwrap();
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let cluster = Arc::clone(&cluster);
        calls.spawn(async move { cluster.get(&replica_set()).await.is_ok() });
    }
    server.wait_for_requests(20).await;
    gate.send(true).unwrap();
    assert!(calls.join_all().await.into_iter().all(|is_ok| is_ok));
    assert_eq!(connection.unauthorized_total(), 20);
    assert_eq!(connection.rebuilds_total(), 1);
    assert_eq!(server.requests().len(), 40);
}

#[tokio::test]
async fn credentials_that_stay_refused_are_tried_twice_and_named() {
    let rig = Rig::answering(unauthorized).await;
    let refusal = rig.cluster.get(&replica_set()).await.unwrap_err();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Unauthenticated, 401)
    );
    assert_eq!(rig.connection.unauthorized_total(), 2);
    assert_eq!(rig.server.requests().len(), 2);
    let refusal = rig.cluster.watch(&pods(), "1").await.err().unwrap();
    assert_eq!(refusal.class, RefusalClass::Unauthenticated);
}

#[tokio::test]
async fn a_401_without_a_readable_token_names_the_file() {
    let server = Server::start(|_| unauthorized()).await;
    let account = Account::new("first");
    let (_, cluster) = account.connect(&server).await;
    fs::remove_file(account.path().join("token")).unwrap();
    let refusal = cluster.get(&replica_set()).await.unwrap_err();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Unauthenticated, 401)
    );
    assert!(refusal.message.contains("/token"), "{refusal}");
}

#[tokio::test]
async fn tokens_show_in_no_output() {
    let rig = Rig::answering(unauthorized).await;
    let refusal = rig.cluster.get(&replica_set()).await.unwrap_err();
    let texts = format!(
        "{:?} {:?} {refusal:?} {refusal}",
        rig.connection, rig.cluster
    );
    assert!(!texts.contains("secret-token"), "{texts}");
}

/// The worker of a kube client lives in the runtime that built it; once it is gone every later
/// request fails, until the client is built again.
#[test]
fn a_client_whose_worker_died_is_built_again() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let serving = runtime();
    let server = serving.block_on(Server::start(|_| Answer::json(200, &live(7))));
    let account = Account::new("first");
    let first = runtime();
    let (_, cluster) = first.block_on(account.connect(&server));
    first.block_on(cluster.get(&replica_set())).unwrap();
    drop(first);
    let second = runtime();
    second.block_on(cluster.get(&replica_set())).unwrap();
}
