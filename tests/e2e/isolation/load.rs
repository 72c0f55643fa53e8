//! Work for each controller, and how long each piece of it takes.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::TryStreamExt as _;
use krane_proto::ctrl::v1::{ApplyCiliumNetworkPolicy, ApplySentinel};
use krane_sim::control_plane::{Kind, samples};
use krane_testharness::{Outcome, World, eventually, limits};
use kube::Api;
use kube::api::{
    ApiResource, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Objects of each controller.
const OBJECTS: u32 = 20;
/// Between two pieces of work of one controller: more than 500 in half a minute.
const PERIOD: Duration = Duration::from_millis(55);

/// Whom a piece of work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// A state of the stream becomes true of a ReplicaSet.
    Deployments,
    /// An edit of a Deployment is undone: a state that changes one would roll its pods.
    Sentinels,
    /// A state of the stream becomes true of a policy.
    Cilium,
}

impl Subject {
    pub(super) const ALL: [Self; 3] = [Self::Deployments, Self::Sentinels, Self::Cilium];

    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Deployments => Kind::Deployments,
            Self::Sentinels => Kind::Sentinels,
            Self::Cilium => Kind::Policies,
        }
    }

    /// The kind its writes are about.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Deployments => "replicasets",
            Self::Sentinels => "deployments",
            Self::Cilium => "ciliumnetworkpolicies",
        }
    }

    /// Wants an object of this name, different in every round.
    pub(super) fn push(self, world: &World, name: &str, round: u32) {
        let namespace = world.namespace(0);
        match self {
            Self::Deployments => {
                let mut wanted = samples::deployment(&namespace, name);
                wanted.replicas = 0;
                wanted.build_id = Some(format!("build-{round}"));
                world.control.push(samples::apply(wanted));
            }
            Self::Sentinels => {
                let wanted = ApplySentinel {
                    replicas: 0,
                    project_id: format!("proj-{round}"),
                    ..samples::sentinel(name)
                };
                world.control.push(samples::apply_sentinel(wanted));
            }
            Self::Cilium => {
                let policy = json!({ "spec": {
                    "description": format!("round {round}"), "endpointSelector": {},
                    "ingress": [{ "fromEndpoints": [{}] }],
                } });
                let wanted = ApplyCiliumNetworkPolicy {
                    policy: policy.to_string().into_bytes().into(),
                    ..samples::policy(&namespace, name)
                };
                world.control.push(samples::apply_policy(wanted));
            }
        }
    }

    fn api(self, world: &World) -> Api<DynamicObject> {
        let (group, version, kind) = match self {
            Self::Deployments => ("apps", "v1", "ReplicaSet"),
            Self::Sentinels => ("apps", "v1", "Deployment"),
            Self::Cilium => ("cilium.io", "v2", "CiliumNetworkPolicy"),
        };
        let namespace = match self {
            Self::Deployments | Self::Cilium => world.namespace(0),
            Self::Sentinels => crate::sentinels::NAMESPACE.to_owned(),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(world.api.client(), &namespace, &resource)
    }

    /// What tells one round of an object from another.
    fn round_of(self, live: &DynamicObject) -> Option<u32> {
        let text = |pointer: &str| live.data.pointer(pointer).and_then(Value::as_str);
        match self {
            Self::Deployments => {
                let label = live.metadata.labels.as_ref()?.get("unkey.com/build.id")?;
                label.strip_prefix("build-")?.parse().ok()
            }
            // As it should be: the last edit was undone.
            Self::Sentinels => {
                let seconds = live.data.pointer("/spec/minReadySeconds")?.as_u64()?;
                (seconds == 30).then_some(0)
            }
            Self::Cilium => text("/spec/description")?
                .strip_prefix("round ")?
                .parse()
                .ok(),
        }
    }
}

/// Objects that are in place, to be changed again and again.
pub(super) struct Load {
    world_names: BTreeMap<Subject, Vec<String>>,
    apis: BTreeMap<Subject, Api<DynamicObject>>,
    round: AtomicU32,
}

impl Load {
    /// Wants the objects and waits until they are there.
    pub(super) async fn prepare(world: &World) -> Outcome<Self> {
        let mut load = Self {
            world_names: BTreeMap::new(),
            apis: BTreeMap::new(),
            round: AtomicU32::new(1),
        };
        for subject in Subject::ALL {
            let prefix = world.namespace(0);
            let names: Vec<String> = (0..OBJECTS)
                .map(|index| format!("{prefix}-l{index}"))
                .collect();
            for name in &names {
                subject.push(world, name, 0);
            }
            load.world_names.insert(subject, names);
            load.apis.insert(subject, subject.api(world));
        }
        load.is_followed(world).await?;
        Ok(load)
    }

    /// Waits until all objects are there, and krane follows what is wanted of each kind.
    pub(super) async fn is_followed(&self, world: &World) -> Outcome {
        for (subject, names) in &self.world_names {
            let Some(api) = self.apis.get(subject) else {
                continue;
            };
            for name in names {
                eventually(
                    &format!("{subject:?} {name} is there"),
                    limits::LONG,
                    async || {
                        api.get(name)
                            .await
                            .map(drop)
                            .map_err(|error| error.to_string())
                    },
                )
                .await?;
            }
        }
        world
            .control
            .wait_for("all streams are open", limits::LONG, |seen| {
                let mut kinds = Subject::ALL.into_iter().map(Subject::kind);
                kinds.all(|kind| seen.open_watches(kind) > 0).then_some(())
            })
            .await?;
        Ok(())
    }

    /// Changes objects of these one after the other for so long. Each time is from the change to
    /// the moment a watch shows that krane has brought it about.
    pub(super) async fn measure(
        &self,
        world: &World,
        subjects: &[Subject],
        length: Duration,
    ) -> Outcome<BTreeMap<Subject, Vec<Duration>>> {
        let all = subjects.iter().map(|subject| async move {
            let times = self.measure_one(world, *subject, length).await?;
            Outcome::Ok((*subject, times))
        });
        futures::future::try_join_all(all)
            .await
            .map(|all| all.into_iter().collect())
    }

    async fn measure_one(
        &self,
        world: &World,
        subject: Subject,
        length: Duration,
    ) -> Outcome<Vec<Duration>> {
        let (Some(api), Some(names)) = (self.apis.get(&subject), self.world_names.get(&subject))
        else {
            return Ok(Vec::new());
        };
        let listed = api.list(&ListParams::default().limit(1)).await?;
        let version = listed.metadata.resource_version.unwrap_or_default();
        let events = api.watch(&WatchParams::default(), &version).await?;
        let (tell, mut pieces) = mpsc::unbounded_channel::<(String, u32, Instant)>();
        let driver = async {
            let began = Instant::now();
            let mut turn = 0_u32;
            while began.elapsed() < length {
                let name = &names[(turn % OBJECTS) as usize];
                let round = self.round.fetch_add(1, Ordering::Relaxed);
                let at = Instant::now();
                if subject == Subject::Sentinels {
                    let params = PatchParams {
                        field_manager: Some("kubectl-edit".to_owned()),
                        ..PatchParams::default()
                    };
                    // Never twice the same, or krane would take its time.
                    let edit = json!({ "spec": { "minReadySeconds": 31 + round % 500 } });
                    api.patch(name, &params, &Patch::Merge(edit)).await?;
                    let _ = tell.send((name.clone(), 0, at));
                } else {
                    let _ = tell.send((name.clone(), round, at));
                    subject.push(world, name, round);
                }
                turn += 1;
                sleep_until(began + PERIOD * turn).await;
            }
            drop(tell);
            Outcome::Ok(())
        };
        let watcher = async {
            let mut events = pin!(events);
            let mut open: BTreeMap<String, (u32, Instant)> = BTreeMap::new();
            let mut times = Vec::new();
            let mut is_over = false;
            let patience = Instant::now() + length + Duration::from_secs(10);
            while !(is_over && open.is_empty()) {
                tokio::select! {
                    biased;
                    piece = pieces.recv(), if !is_over => match piece {
                        Some((name, round, at)) => drop(open.insert(name, (round, at))),
                        None => is_over = true,
                    },
                    event = events.try_next() => {
                        let Some(event) = event? else { break };
                        let (WatchEvent::Added(live) | WatchEvent::Modified(live)) = event else {
                            continue;
                        };
                        let name = live.metadata.name.clone().unwrap_or_default();
                        let is_it = open.get(&name).is_some_and(|(round, _)| {
                            subject.round_of(&live) == Some(*round)
                        });
                        if is_it && let Some((_, at)) = open.remove(&name) {
                            times.push(at.elapsed());
                        }
                    }
                    () = sleep_until(patience) => break,
                }
            }
            // What never came took at least this long.
            times.extend(open.into_values().map(|(_, at)| at.elapsed()));
            Outcome::Ok(times)
        };
        let (outcome, times) = tokio::join!(driver, watcher);
        outcome?;
        times
    }
}
