//! The demo's cluster, and what people and machines do in it.

use std::sync::Arc;
use std::time::Duration;

use krane_actors::ports::Cluster;
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_sim::cluster::{Admin, Options, Pace, Patch, SimClient, SimCluster};
use krane_sim::hooks::{Side, Verdict};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::script::App;

/// As fast as pods may be before nobody sees that they take time.
const PACE: Pace = Pace {
    controller: Duration::from_millis(10),
    schedule: Duration::from_millis(20),
    start: Duration::from_millis(150),
    ready: Duration::from_millis(300),
    stop: Duration::from_millis(400),
    restart: Duration::from_millis(800),
    doubt: Duration::from_secs(5),
    evict: Duration::from_secs(10),
};

/// The cluster. It ends when dropped.
pub(super) struct DemoCluster {
    client: SimClient,
    admin: Admin,
    _controllers: Mutex<JoinSet<()>>,
}

/// A workload as it is.
pub(super) struct Workload {
    pub(super) image: String,
    pub(super) replicas: u64,
}

impl DemoCluster {
    /// An empty cluster that remembers so many events, its controllers and nodes at work. To be called inside the runtime.
    pub(super) fn new(seed: u64, history: usize) -> Self {
        let cluster = SimCluster::new(Options {
            seed,
            history,
            pace: PACE,
            ..Options::default()
        });
        let (client, admin) = (cluster.client(), cluster.admin());
        let mut controllers = JoinSet::new();
        controllers.spawn(cluster.run());
        Self {
            client,
            admin,
            _controllers: Mutex::new(controllers),
        }
    }

    /// krane's way in.
    pub(super) fn port(&self) -> Arc<dyn Cluster> {
        Arc::new(self.client.clone())
    }

    /// The app as it is in the cluster.
    pub(super) fn workload(&self, app: &App) -> Option<Workload> {
        let live = self.admin.get(&reference(app))?;
        let container = &live["spec"]["template"]["spec"]["containers"][0];
        Some(Workload {
            image: container["image"].as_str()?.to_owned(),
            replicas: live["spec"]["replicas"].as_u64()?,
        })
    }

    /// Somebody changes the app's image with kubectl. Whether there was one to change.
    pub(super) fn edit(&self, app: &App) -> bool {
        let image = Patch::Json(json!([{
            "op": "replace",
            "path": "/spec/template/spec/containers/0/image",
            "value": "registry.example/somebody-elses:latest",
        }]));
        let edited = self
            .admin
            .patch(&reference(app), "kubectl-edit", "", &image);
        edited.is_ok()
    }

    /// One pod of the app crashes. Whether there was one.
    pub(super) fn crash(&self, app: &App) -> bool {
        let pods = self.admin.list("Pod", Some(app.namespace));
        let Some(name) = pods.iter().find_map(|pod| ready_pod_of(app, pod)) else {
            return false;
        };
        let pod = ObjectRef::new(Resource::Pod, app.namespace, name);
        self.admin.crash_pod(&pod);
        true
    }

    /// The API server refuses connections and breaks those it has.
    pub(super) fn take_api_server_away(&self) {
        self.client.hooks().set(|side, _| match side {
            Side::Before => Verdict::Fail(Refusal {
                class: RefusalClass::Transient,
                code: 0,
                message: "the connection was refused".to_owned(),
                retry_after: None,
            }),
            Side::After => Verdict::Proceed,
        });
        self.admin.break_watches();
    }

    /// Ends [`take_api_server_away`](Self::take_api_server_away).
    pub(super) fn give_api_server_back(&self) {
        self.client.hooks().clear();
    }
}

fn reference(app: &App) -> ObjectRef {
    ObjectRef::new(Resource::ReplicaSet, app.namespace, app.name)
}

/// The name of a pod, if it is the app's and ready.
fn ready_pod_of<'a>(app: &App, pod: &'a Value) -> Option<&'a str> {
    let list = |value: &'a Value| value.as_array().into_iter().flatten();
    let is_owned = list(&pod["metadata"]["ownerReferences"]).any(|owner| owner["name"] == app.name);
    let is_ready = list(&pod["status"]["conditions"])
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let name = pod["metadata"]["name"].as_str();
    name.filter(|_| is_owned && is_ready)
}
