//! The Kubernetes adapter against a scripted API server.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod credentials;
mod events;
mod failures;
mod lists;
mod logs;
mod requests;
pub(crate) mod server;
mod slow;
mod watches;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_kubernetes::{
    ApiObserver, CallLimits, CallTimeouts, KubeAccess, KubeCluster, KubeConnection, Liveness,
    RequestDone,
};
use krane_ports::Item;
use serde_json::{Value, json};
use tempfile::TempDir;

use server::{Answer, Seen, Server};

const AGENT: HeaderValue = HeaderValue::from_static("krane/0.1.0");

/// What an [`ApiObserver`] was told: verb, resource, code.
#[derive(Default)]
struct Recorder(Mutex<Vec<(&'static str, &'static str, String)>>);

impl ApiObserver for Recorder {
    fn request(&self, done: &RequestDone<'_>) {
        let entry = (done.verb.name(), done.resource, done.code.to_owned());
        self.0.lock().unwrap().push(entry);
    }
}

/// A scripted API server and the adapter in front of it.
struct Rig {
    server: Server,
    cluster: Arc<KubeCluster>,
    connection: Arc<KubeConnection>,
    recorder: Arc<Recorder>,
    _folder: TempDir,
}

impl Rig {
    async fn new(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(CallLimits::default(), CallTimeouts::default(), script).await
    }

    async fn with(
        limits: CallLimits,
        timeouts: CallTimeouts,
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::with_liveness(limits, timeouts, Liveness::default(), script).await
    }

    async fn with_liveness(
        limits: CallLimits,
        timeouts: CallTimeouts,
        liveness: Liveness,
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let server = Server::start(script).await;
        let folder = tempfile::tempdir().unwrap();
        let file = kubeconfig(&folder, "config", &format!("http://{}", server.address), "");
        let access = KubeAccess::Kubeconfig {
            files: vec![file],
            context: None,
        };
        let recorder = Arc::new(Recorder::default());
        let observer = Arc::clone(&recorder) as Arc<dyn ApiObserver>;
        let connection = KubeConnection::open_with(access, AGENT, observer, liveness).await;
        let connection = Arc::new(connection.unwrap());
        let cluster = Arc::new(KubeCluster::new(Arc::clone(&connection), limits, timeouts));
        Self {
            server,
            cluster,
            connection,
            recorder,
            _folder: folder,
        }
    }

    /// An adapter whose server always gives this answer.
    async fn answering(answer: impl Fn() -> Answer + Send + Sync + 'static) -> Self {
        Self::new(move |_| answer()).await
    }
}

fn short_timeouts() -> CallTimeouts {
    CallTimeouts::fixed(Duration::from_millis(100))
}

/// A kubeconfig with the token `secret-token`; `cluster_line` is added to its cluster.
fn kubeconfig(folder: &TempDir, name: &str, server: &str, cluster_line: &str) -> PathBuf {
    let file = folder.path().join(name);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
         contexts: [{{name: {name}, context: {{cluster: {name}, user: {name}, namespace: ns-{name}}}}}]\n\
         users: [{{name: {name}, user: {{token: secret-token}}}}]\n\
         clusters:\n- name: {name}\n  cluster:\n    server: {server}\n    {cluster_line}\n"
    );
    fs::write(&file, text).unwrap();
    file
}

fn replica_set() -> ObjectRef {
    ObjectRef::new(Resource::ReplicaSet, "ws-1", "app-1")
}

fn rendered() -> Rendered {
    Rendered::new(
        replica_set(),
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"namespace": "ws-1", "name": "app-1", "labels": {"a": "b"}},
            "spec": {"replicas": 1},
        }),
    )
}

/// The ReplicaSet as an API server returns it.
fn live(version: u64) -> Value {
    let mut live = rendered().body;
    live["metadata"]["uid"] = json!("u-1");
    live["metadata"]["resourceVersion"] = json!(version.to_string());
    live
}

fn pod(name: &str, version: u64) -> Value {
    json!({
        "metadata": {
            "namespace": "ws-1", "name": name, "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(),
        },
        "status": {"phase": "Running"},
    })
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

fn not_found() -> Answer {
    let mut body = status(404, "NotFound", "replicasets.apps \"app-1\" not found");
    body["details"] = json!({"name": "app-1", "group": "apps", "kind": "replicasets"});
    Answer::json(404, &body)
}

fn no_such_api() -> Answer {
    Answer::text(404, "text/plain; charset=utf-8", "404 page not found\n")
}

fn pods() -> WatchSpec {
    WatchSpec {
        resource: Resource::Pod,
        namespace: None,
        label_selector: "app.kubernetes.io/managed-by=krane".to_owned(),
        field_selector: String::new(),
    }
}

fn replica_sets() -> WatchSpec {
    WatchSpec {
        resource: Resource::ReplicaSet,
        ..pods()
    }
}

fn name(item: &Item) -> &str {
    match item {
        Item::Object(object) => &object.reference.name,
        Item::Pod(pod) => &pod.name,
    }
}
