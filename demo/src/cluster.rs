//! The demo's cluster, and what people and machines do in it.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::labels::HOLD_ANNOTATION;
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::secret::Secret;
use krane_ports::{Clock, Cluster, Identities};
use krane_sim::cluster::{Admin, Options, Pace, Patch, SimClient, SimCluster, TokenIssuer};
use krane_sim::hooks::{Side, Verdict};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use krane::run::SystemClock;

use super::wish::{App, Direction, Policy, SENTINELS, Sentinel, Wish};

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

/// How long an app is held, in seconds.
const HOLD: i64 = 3_600;

/// The Secret that sentinels take their database from.
const DATABASE: &str = "database";

/// The cluster. It ends when dropped.
pub(super) struct DemoCluster {
    client: SimClient,
    admin: Admin,
    tokens: TokenIssuer,
    held: Mutex<Option<Wish>>,
    _controllers: Mutex<JoinSet<()>>,
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
        let tokens = cluster.tokens();
        let mut controllers = JoinSet::new();
        controllers.spawn(cluster.run());
        Self {
            client,
            admin,
            tokens,
            held: Mutex::default(),
            _controllers: Mutex::new(controllers),
        }
    }

    /// krane's way in.
    pub(super) fn port(&self) -> Arc<dyn Cluster> {
        Arc::new(self.client.clone())
    }

    /// krane's way to ask whose a token is.
    pub(super) fn identities(&self) -> Arc<dyn Identities> {
        Arc::new(self.client.clone())
    }

    /// The first object of what is wanted, as it is in the cluster.
    pub(super) fn live(&self, wish: &Wish) -> Option<Value> {
        self.get(&reference(wish))
    }

    /// An object as it is in the cluster.
    pub(super) fn get(&self, object: &ObjectRef) -> Option<Value> {
        self.admin.get(object)
    }

    /// Whether everything is there that belongs to a sentinel beside its Deployment.
    pub(super) fn has_all_of(&self, sentinel: &Sentinel) -> bool {
        let (name, gossip) = (sentinel.name(), format!("{}-gossip-lan", sentinel.name()));
        [
            (Resource::Service, &name),
            (Resource::PodDisruptionBudget, &name),
            (Resource::Service, &gossip),
            (Resource::CiliumNetworkPolicy, &gossip),
        ]
        .into_iter()
        .all(|(resource, name)| {
            let object = ObjectRef::new(resource, SENTINELS, name.as_str());
            self.admin.get(&object).is_some()
        })
    }

    /// Somebody changes it with kubectl. Whether it was there to be changed.
    pub(super) fn tamper(&self, wish: &Wish) -> bool {
        let (path, value) = match wish {
            Wish::App(_) => (
                "/spec/template/spec/containers/0/image",
                json!("registry.example/somebody-elses:latest"),
            ),
            Wish::Sentinel(_) => ("/spec/replicas", json!(0)),
            Wish::Policy(Policy { direction, .. }) => match direction {
                Direction::Ingress => ("/spec/ingress/0/fromEndpoints", json!([{}])),
                Direction::Egress => ("/spec/egress/0/toEndpoints", json!([{}])),
            },
        };
        let edit = Patch::Json(json!([{ "op": "replace", "path": path, "value": value }]));
        let edited = self
            .admin
            .patch(&reference(wish), "kubectl-edit", "", &edit);
        edited.is_ok()
    }

    /// Somebody puts the app on hold for an hour, and edits it. Whether it was there.
    pub(super) fn hold(&self, app: &App) -> bool {
        let until = jiff::Timestamp::from_second(SystemClock.unix_seconds().cast_signed() + HOLD);
        let Ok(until) = until else { return false };
        let hold = json!({ "metadata": { "annotations": { HOLD_ANNOTATION: until.to_string() } } });
        let wish = Wish::App(app.clone());
        let annotated = self.admin.patch(
            &reference(&wish),
            "kubectl-annotate",
            "",
            &Patch::Merge(hold),
        );
        if annotated.is_ok() {
            *self.held.lock() = Some(wish.clone());
        }
        annotated.is_ok() && self.tamper(&wish)
    }

    /// Ends [`hold`](Self::hold), if somebody holds something.
    pub(super) fn release(&self) {
        if let Some(wish) = self.held.lock().take() {
            let free = json!({ "metadata": { "annotations": { HOLD_ANNOTATION: null } } });
            // It may be gone by now.
            let _ = self.admin.patch(
                &reference(&wish),
                "kubectl-annotate",
                "",
                &Patch::Merge(free),
            );
        }
    }

    /// Whether somebody holds something.
    pub(super) fn is_held(&self) -> bool {
        self.held.lock().is_some()
    }

    /// Whether the sentinels have the Secret that they take their database from.
    pub(super) fn has_secret(&self) -> bool {
        let secrets = self.admin.list("Secret", Some(SENTINELS));
        let mut names = secrets.iter().map(|secret| &secret["metadata"]["name"]);
        names.any(|name| name == DATABASE)
    }

    /// Somebody gives the sentinels the Secret that they take their database from.
    pub(super) fn give_secret(&self) {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "namespace": SENTINELS, "name": DATABASE },
        });
        // It may be there already.
        let _ = self.admin.create(secret, "kubectl-create");
    }

    /// One pod of the app crashes. Whether there was one.
    pub(super) fn crash(&self, app: &App) -> bool {
        let Some(pod) = self.ready_pod(app) else {
            return false;
        };
        let pod = ObjectRef::new(Resource::Pod, app.namespace, name(&pod));
        self.admin.crash_pod(&pod);
        true
    }

    /// A pod of the app that is ready.
    pub(super) fn ready_pod(&self, app: &App) -> Option<Value> {
        let mut pods = self.admin.list("Pod", Some(app.namespace)).into_iter();
        pods.find(|pod| is_ready_pod_of(app, pod))
    }

    /// The token that a pod of the app finds in its volume.
    pub(super) fn token_of(&self, app: &App) -> Option<Secret> {
        let pod = self.ready_pod(app)?;
        self.tokens.for_pod(app.namespace, name(&pod), &[])
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

fn reference(wish: &Wish) -> ObjectRef {
    let resource = match wish {
        Wish::App(_) => Resource::ReplicaSet,
        Wish::Sentinel(_) => Resource::Deployment,
        Wish::Policy(_) => Resource::CiliumNetworkPolicy,
    };
    let key = wish.key();
    ObjectRef::new(resource, key.namespace, key.name)
}

fn is_ready_pod_of(app: &App, pod: &Value) -> bool {
    let any = |list: &Value, test: &dyn Fn(&Value) -> bool| {
        let mut items = list.as_array().into_iter().flatten();
        items.any(test)
    };
    any(&pod["metadata"]["ownerReferences"], &|owner| {
        owner["name"] == app.name
    }) && any(&pod["status"]["conditions"], &|condition| {
        condition["type"] == "Ready" && condition["status"] == "True"
    })
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
