//! What is wanted, and whether it is there and told.

use krane_domain::ids::Controller;
use krane_domain::labels;
use krane_proto::ctrl::v1::{ApplyCiliumNetworkPolicy, ApplyDeployment, ApplySentinel, Health};
use krane_sim::control_plane::{Report, Status, samples};
use serde_json::{Value, json};

use super::Stage;
use crate::wish::{App, Direction, Policy, SENTINELS, Sentinel, Wish};

/// A wish, and what became of the control plane's newest state of it.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    wish: Wish,
    /// It cannot be.
    is_poisoned: bool,
    /// That was a visitor's doing.
    is_spoilt: bool,
}

impl Stage {
    /// The control plane wants all of this, all at once of each kind.
    pub(crate) fn want<W: Clone + Into<Wish>>(&self, wishes: &[W]) {
        let wishes: Vec<Wish> = wishes.iter().cloned().map(Into::into).collect();
        for wish in &wishes {
            let wanted = Wanted {
                wish: wish.clone(),
                is_poisoned: false,
                is_spoilt: false,
            };
            self.wanted.lock().insert(wish.key(), wanted);
        }
        self.push(&wishes);
    }

    /// The control plane wants of this what no cluster can do.
    pub(crate) fn poison(&self, wish: &Wish) {
        if let Some(wanted) = self.wanted.lock().get_mut(&wish.key()) {
            wanted.is_poisoned = true;
        }
        let no_image = || "no image at all".to_owned();
        match wish {
            Wish::App(app) => {
                let mut message = self.deployment(app);
                message.image = no_image();
                self.control.push(samples::apply(message));
            }
            Wish::Sentinel(sentinel) => {
                let mut message = self::sentinel(sentinel);
                message.image = no_image();
                self.control.push(samples::apply_sentinel(message));
            }
            Wish::Policy(policy) => {
                let message = self::policy(policy, "80-90");
                self.control.push(samples::apply_policy(message));
            }
        }
    }

    /// A visitor makes the control plane want nonsense of this.
    pub(crate) fn spoil(&self, wish: &Wish) {
        self.poison(wish);
        if let Some(wanted) = self.wanted.lock().get_mut(&wish.key()) {
            wanted.is_spoilt = true;
        }
    }

    /// Whether a visitor made this state bad: the story must not mend it on the way.
    pub(crate) fn is_spoilt(&self, wish: &Wish) -> bool {
        let wanted = self.wanted.lock();
        wanted
            .get(&wish.key())
            .is_some_and(|wanted| wanted.is_spoilt)
    }

    /// The control plane wants this gone.
    pub(crate) fn remove(&self, wish: &Wish) {
        self.wanted.lock().remove(&wish.key());
        let key = wish.key();
        match wish {
            Wish::App(app) => {
                self.control.push(samples::delete(&self.deployment(app)));
            }
            Wish::Sentinel(_) => {
                self.control.push(samples::delete_sentinel(&key.name));
            }
            Wish::Policy(_) => {
                let gone = samples::delete_policy(&key.namespace, &key.name);
                self.control.push(gone);
            }
        }
    }

    /// Everything that is wanted and can be.
    pub(crate) fn well(&self) -> Vec<Wish> {
        self.those(|wanted| !wanted.is_poisoned)
    }

    /// Of these, what belongs to one controller.
    pub(crate) fn well_of(&self, controller: Controller) -> Vec<Wish> {
        self.those(|wanted| !wanted.is_poisoned && wanted.wish.controller() == controller)
    }

    /// Everything whose newest state cannot be.
    pub(crate) fn poisoned(&self) -> Vec<Wish> {
        self.those(|wanted| wanted.is_poisoned)
    }

    fn those(&self, which: impl Fn(&Wanted) -> bool) -> Vec<Wish> {
        let wanted = self.wanted.lock();
        let those = wanted.values().filter(|wanted| which(wanted));
        those.map(|wanted| wanted.wish.clone()).collect()
    }

    /// Whether the cluster has it as it is wanted.
    pub(crate) fn is_in_place(&self, wish: &Wish) -> bool {
        let Some(live) = self.cluster.live(wish) else {
            return false;
        };
        match wish {
            Wish::App(app) => is_like(&live, &app.image(), replicas(app.replicas)),
            Wish::Sentinel(sentinel) => {
                is_like(&live, &sentinel.image(), replicas(sentinel.replicas))
                    && self.cluster.has_all_of(sentinel)
            }
            Wish::Policy(policy) => live["spec"] == rule(policy, PORT),
        }
    }

    /// How many instances of the app the control plane was last told of, and how many of them run.
    pub(crate) fn told(&self, app: &App) -> (usize, usize) {
        self.control.look(|seen| {
            let instances = seen
                .report(app.name)
                .map_or(&[][..], |report| report.instances());
            let running = instances
                .iter()
                .filter(|instance| instance.status() == Status::Running);
            (instances.len(), running.count())
        })
    }

    /// Whether the control plane was told: of an app that all of it runs, of a sentinel how it is. Of
    /// policies nothing is told.
    pub(crate) fn is_told(&self, wish: &Wish) -> bool {
        match wish {
            Wish::App(app) => {
                let all = usize::try_from(app.replicas).unwrap_or(usize::MAX);
                self.told(app) == (all, all)
            }
            Wish::Sentinel(sentinel) => self.control.look(|seen| {
                let Some(Report::Sentinel(told)) = seen.report(&sentinel.name()) else {
                    return false;
                };
                let available = self.cluster.live(wish).as_ref().map_or(0, available);
                i64::from(told.available_replicas) == available
                    && told.health() == health(sentinel, available)
            }),
            Wish::Policy(_) => true,
        }
    }

    /// Whether the control plane was told that the sentinel is healthy.
    pub(crate) fn is_told_healthy(&self, sentinel: &Sentinel) -> bool {
        self.control.look(|seen| {
            let told = seen.report(&sentinel.name());
            matches!(told, Some(Report::Sentinel(told)) if told.health() == Health::Healthy)
        })
    }

    /// Whether the control plane was told that the app is gone.
    pub(crate) fn is_told_gone(&self, app: &App) -> bool {
        self.control.look(|seen| seen.deleted(app.name))
    }

    fn push(&self, wishes: &[Wish]) {
        let apps = wishes.iter().filter_map(|wish| match wish {
            Wish::App(app) => Some(samples::apply(self.deployment(app))),
            Wish::Sentinel(_) | Wish::Policy(_) => None,
        });
        self.control.push_all(apps);
        let sentinels = wishes.iter().filter_map(|wish| match wish {
            Wish::Sentinel(sentinel) => Some(samples::apply_sentinel(self::sentinel(sentinel))),
            Wish::App(_) | Wish::Policy(_) => None,
        });
        self.control.push_all(sentinels);
        let policies = wishes.iter().filter_map(|wish| match wish {
            Wish::Policy(policy) => Some(samples::apply_policy(self::policy(policy, PORT))),
            Wish::App(_) | Wish::Sentinel(_) => None,
        });
        self.control.push_all(policies);
    }

    fn deployment(&self, app: &App) -> ApplyDeployment {
        let sample = samples::deployment(app.namespace, app.name);
        let blob = self.secrets.blob(app, &sample.environment_id);
        ApplyDeployment {
            image: app.image(),
            replicas: replicas(app.replicas),
            encrypted_environment_variables: blob,
            ..sample
        }
    }
}

/// The port of all apps.
const PORT: &str = "8080";

/// Whether a workload has this image and so many replicas.
pub(super) fn is_like(live: &Value, image: &str, replicas: i32) -> bool {
    let spec = &live["spec"];
    spec["template"]["spec"]["containers"][0]["image"] == image && spec["replicas"] == replicas
}

fn available(live: &Value) -> i64 {
    live["status"]["availableReplicas"].as_i64().unwrap_or(0)
}

const fn health(sentinel: &Sentinel, available: i64) -> Health {
    match (sentinel.replicas, available) {
        (0, _) => Health::Paused,
        (_, 0) => Health::Unhealthy,
        _ => Health::Healthy,
    }
}

fn replicas(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The ids are those of the apps behind it.
fn sentinel(sentinel: &Sentinel) -> ApplySentinel {
    let behind = samples::deployment(sentinel.environment, "any");
    ApplySentinel {
        workspace_id: behind.workspace_id,
        project_id: behind.project_id,
        environment_id: behind.environment_id,
        image: sentinel.image(),
        replicas: replicas(sentinel.replicas),
        ..samples::sentinel(&sentinel.name())
    }
}

fn policy(policy: &Policy, port: &str) -> ApplyCiliumNetworkPolicy {
    let (namespace, name) = (policy.namespace(), policy.name());
    let object = json!({
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNetworkPolicy",
        "metadata": { "namespace": namespace, "name": name },
        "spec": rule(policy, port),
    });
    ApplyCiliumNetworkPolicy {
        policy: object.to_string().into_bytes().into(),
        ..samples::policy(namespace, &name)
    }
}

/// The `spec` of a policy.
fn rule(policy: &Policy, port: &str) -> Value {
    let behind = samples::deployment(policy.environment, policy.app);
    let app = json!({
        labels::MANAGED_BY: "krane",
        labels::COMPONENT: "deployment",
        labels::DEPLOYMENT_ID: behind.deployment_id,
    });
    let gate = json!({
        labels::COMPONENT: "sentinel",
        labels::WORKSPACE_ID: behind.workspace_id,
        labels::ENVIRONMENT_ID: behind.environment_id,
    });
    let in_namespace = |labels: &Value, namespace: &str| {
        let mut labels = labels.clone();
        labels["io.kubernetes.pod.namespace"] = namespace.into();
        json!([{ "matchLabels": labels }])
    };
    let ports = json!([{ "ports": [{ "port": port, "protocol": "TCP" }] }]);
    match policy.direction {
        Direction::Ingress => json!({
            "endpointSelector": { "matchLabels": app },
            "ingress": [{
                "fromEndpoints": in_namespace(&gate, SENTINELS),
                "toPorts": ports,
            }],
        }),
        Direction::Egress => json!({
            "endpointSelector": { "matchLabels": gate },
            "egress": [{
                "toEndpoints": in_namespace(&app, policy.environment),
                "toPorts": ports,
            }],
        }),
    }
}
