//! `krane run --observe` against a scripted control plane and a scripted API server: the whole agent
//! runs, and every write is a dry run.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::process::{Output, Stdio};
use std::sync::Arc;

use krane_proto::ctrl::v1::{ApplyDeployment, DeploymentState, deployment_state};
use krane_testharness::eventually;
use parking_lot::Mutex;
use prost::Message as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::check::{date, free_port};
use crate::cluster_edge::server::{Answer, PATIENCE, Seen, Server as Api};
use crate::control_plane::server::{Call, Server as Control, Stream};

const CANARY: &str = "canary-9d1b6c0a";

/// An empty cluster that takes nothing in. Watches stay open as long as `open` is.
fn empty(seen: &Seen, open: &Mutex<Vec<mpsc::Sender<Vec<u8>>>>) -> Answer {
    if seen.query("watch").is_some() {
        let (sender, pieces) = mpsc::channel(1);
        open.lock().push(sender);
        return Answer::Stream(pieces);
    }
    match seen.method.as_str() {
        "GET" if is_of_one(&seen.path) => {
            let name = seen.path.rsplit('/').next().unwrap_or_default();
            let absent = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
                "message": "not found", "code": 404, "details": {"name": name},
            });
            Answer::json(404, &absent)
        }
        "GET" => Answer::json(
            200,
            &json!({"metadata": {"resourceVersion": "5"}, "items": []}),
        ),
        "PATCH" => {
            let mut body = seen.json();
            // As a real one answers a dry run of a create: no version, for nothing was stored.
            body["metadata"]["uid"] = json!(format!("dry:{}", seen.path));
            Answer::json(201, &body).with_header("date", &date(0))
        }
        other => panic!("{other} {}", seen.path),
    }
}

/// Whether a path is about one object: in a namespace or the namespace itself.
fn is_of_one(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let base = if parts.first() == Some(&"api") { 2 } else { 3 };
    match parts.len().saturating_sub(base) {
        2 => parts[base] != "namespaces" || parts.len() == base + 2,
        4 => true,
        _ => false,
    }
}

fn wanted() -> DeploymentState {
    DeploymentState {
        version: 3,
        state: Some(deployment_state::State::Apply(ApplyDeployment {
            k8s_namespace: "workspace-1".to_owned(),
            k8s_name: "app-1".to_owned(),
            workspace_id: "ws_1".to_owned(),
            project_id: "proj_1".to_owned(),
            environment_id: "env_1".to_owned(),
            deployment_id: "d_1".to_owned(),
            image: "nginx:1".to_owned(),
            replicas: 1,
            cpu_millicores: 250,
            memory_mib: 256,
            ..ApplyDeployment::default()
        })),
    }
}

struct World {
    api: Api,
    control: Control,
    folder: TempDir,
    admin_port: u16,
    metrics_port: u16,
    /// The paths that the control plane was asked by.
    called: BTreeSet<String>,
    streams: Vec<Stream>,
}

impl World {
    async fn new() -> Self {
        let open = Arc::new(Mutex::new(Vec::new()));
        Self {
            api: Api::start(move |seen| empty(seen, &open)).await,
            control: Control::start().await,
            folder: TempDir::new().unwrap(),
            admin_port: free_port(),
            metrics_port: free_port(),
            called: BTreeSet::new(),
            streams: Vec::new(),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let (config, kubeconfig) = (self.file("krane.toml"), self.file("kubeconfig"));
        std::fs::write(
            &config,
            format!(
                "region = 'us-east-1.aws'\nrpc_port = {}\nadmin.listen = '127.0.0.1:{}'\n\
                 observability.metrics.prometheus_port = {}\n\
                 cilium.required = false\nreplay.interval = '0'\n\
                 control.url = '{}'\ncontrol.token = '{CANARY}'\nlease.enabled = true\n",
                free_port(),
                self.admin_port,
                self.metrics_port,
                self.control.url(),
            ),
        )
        .unwrap();
        std::fs::write(
            &kubeconfig,
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                 contexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n\
                 users: [{{name: c, user: {{token: t}}}}]\n\
                 clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\n",
                self.api.address
            ),
        )
        .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_krane"));
        command
            .args(["run", "--observe", "--config"])
            .arg(&config)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(arguments)
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Answers the control plane's calls: streams stay open, and that of deployments says this, as
    /// does the answer to a question about one.
    async fn serve(&mut self, states: &[DeploymentState]) {
        loop {
            let call: Call = self.control.call().await;
            self.called.insert(call.path.clone());
            if call.path.ends_with("/WatchDeployments") {
                let mut stream = call.open();
                for state in states {
                    stream.message(state.encode_to_vec()).await;
                }
                self.streams.push(stream);
            } else if call.path.contains("/Watch") {
                self.streams.push(call.open());
            } else if let ([state], true) = (states, call.path.ends_with("DeploymentState")) {
                call.answer(state).await;
            } else {
                call.refuse(5, "unknown");
            }
        }
    }

    fn written(&self) -> Vec<Seen> {
        let mut requests = self.api.requests();
        requests.retain(|seen| seen.method != "GET");
        requests
    }
}

fn summary(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains(CANARY), "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

/// Body of a page of the agent, empty when it does not answer.
async fn page(port: u16, path: &str) -> String {
    let ask = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    ask.await.unwrap_or_default()
}

/// Runs it until the page names this workload, none is on its way, every stream is open and was
/// replayed, and the control plane was asked about every object; then interrupts it.
async fn observed(states: &[DeploymentState], until: &str) -> (World, Output) {
    let mut world = World::new().await;
    let child = world.command(&["-o", "json"]).spawn().unwrap();
    let process = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    let (port, metrics_port) = (world.admin_port, world.metrics_port);
    let interrupt = async {
        let workloads = eventually("the page tells of the workload", PATIENCE, async || {
            let text = page(port, "/api/v1/workloads").await;
            let is_on_its_way = ["queued", "applying"]
                .iter()
                .any(|state| text.contains(&format!(r#""state":"{state}""#)));
            if text.contains(until) && !is_on_its_way {
                Ok(())
            } else {
                Err(text)
            }
        });
        workloads
            .await
            .unwrap_or_else(|failure| panic!("{failure}"));
        let asked = eventually("every controller has asked", PATIENCE, async || {
            let text = page(port, "/api/v1/controllers").await;
            if text.matches(r#""resync":{"#).count() == 3 {
                Ok(())
            } else {
                Err(text)
            }
        });
        asked.await.unwrap_or_else(|failure| panic!("{failure}"));
        let health = page(port, "/api/v1/health").await;
        let words = "observe mode: nothing is written";
        assert!(health.to_lowercase().contains(words), "{health}");
        // Two agents that both say that they write would alarm somebody.
        let metrics = page(metrics_port, "/metrics").await;
        assert!(metrics.contains("\nkrane_lease_held 0\n"), "{metrics}");
        kill_process(process, Signal::INT).unwrap();
    };
    let (output, ()) = tokio::select! {
        both = async { tokio::join!(child.wait_with_output(), interrupt) } => both,
        () = world.serve(states) => panic!("the control plane ended"),
    };
    (world, output.unwrap())
}

#[tokio::test]
async fn what_would_be_made_is_rehearsed_and_told_and_nothing_is_written() {
    let (world, output) = observed(&[wanted()], r#""app-1""#).await;
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(1), "{summary:#}");
    assert_eq!(summary["kind"], "ObserveSummary");
    let entries = summary["entries"].as_array().unwrap();
    let told: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} {}", entry["what"], entry["object"]).replace('"', ""))
        .collect();
    for expected in [
        "create Namespace workspace-1",
        "create ReplicaSet workspace-1/app-1",
    ] {
        assert!(told.iter().any(|it| it == expected), "{told:?}");
    }
    let written = world.written();
    for seen in &written {
        assert_eq!(seen.query("dryRun"), Some("All"), "{seen:?}");
    }
    // Each object once: lanes come to rest.
    let paths: BTreeSet<&str> = written.iter().map(|seen| seen.path.as_str()).collect();
    assert_eq!(paths.len(), written.len(), "{paths:?}");
    assert!(
        !paths.iter().any(|path| path.contains("leases")),
        "{paths:?}"
    );
    for path in &world.called {
        let is_question = path.contains("/Watch") || path.contains("/GetDesired");
        assert!(is_question, "{path}");
    }
}

/// One thing is wrong, and whoever is woken reads it once.
#[tokio::test]
async fn an_api_server_that_nobody_ever_reached_is_one_problem() {
    let mut world = World::new().await;
    world.api.address = format!("127.0.0.1:{}", free_port());
    let child = world.command(&[]).spawn().unwrap();
    let port = world.admin_port;
    let told = eventually("it is told once", PATIENCE, async || {
        let text = page(port, "/api/v1/health").await;
        let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let health: Value = serde_json::from_str(body).unwrap_or_default();
        let problems = health["problems"].as_array().cloned().unwrap_or_default();
        let about_the_cluster: Vec<_> = problems
            .iter()
            .filter(|it| it["kind"] != "writes_off" && it["kind"] != "lease_unreachable")
            .collect();
        match &about_the_cluster[..] {
            [only] if only["kind"] == "api_server_away" && only["since"].is_string() => Ok(()),
            _ => Err(text),
        }
    });
    let told = tokio::select! {
        told = told => told,
        () = world.serve(&[]) => panic!("the control plane ended"),
    };
    told.unwrap_or_else(|failure| panic!("{failure}"));
    drop(child);
}

#[tokio::test]
async fn a_cluster_in_which_nothing_would_change_ends_with_0() {
    let (world, output) = observed(&[], "").await;
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(0), "{summary:#}");
    for part in ["unsettled", "obstacles", "entries"] {
        assert_eq!(summary[part], json!([]), "{summary:#}");
    }
    assert_eq!(world.written().len(), 0);
}

#[tokio::test]
async fn a_state_that_krane_would_set_aside_is_no_calm() {
    let mut bad = wanted();
    if let Some(deployment_state::State::Apply(apply)) = &mut bad.state {
        apply.k8s_name = "app-bad".to_owned();
        apply.image = String::new();
    }
    let (world, output) = observed(&[bad], r#""app-bad""#).await;
    let summary = summary(&output);
    assert_eq!(output.status.code(), Some(1), "{summary:#}");
    let obstacle = &summary["obstacles"][0];
    assert_eq!(obstacle["object"], "workspace-1/app-bad", "{summary:#}");
    assert_eq!(obstacle["state"], "quarantined", "{summary:#}");
    assert_eq!(world.written().len(), 0);
}

#[tokio::test]
async fn who_looked_for_too_short_a_time_is_told_what_was_not_looked_at() {
    let mut world = World::new().await;
    let mut command = world.command(&["--for", "2s"]);
    let output = tokio::select! {
        output = command.output() => output.unwrap(),
        () = world.serve(&[]) => panic!("the control plane ended"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(69), "{text}");
    assert!(!text.contains("✔"), "{text}");
    for controller in ["deployments", "cilium", "sentinels"] {
        assert!(text.contains(&format!("  {controller}: the ")), "{text}");
    }
}
