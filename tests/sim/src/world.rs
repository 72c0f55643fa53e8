//! What the script and the faults do to the world.

mod others;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::invalid::Invalid;
use krane_domain::labels;
use krane_domain::object::{ObjectRef, Resource};
use krane_sim::cluster::Patch;
use krane_sim::control_plane::SimControlPlane;
use krane_sim::control_plane::memory::{Backup, Order};
use serde_json::{Value, json};

use crate::judge::stamp;
use crate::kinds::{controller_of, is_primary};
use crate::ledger::Want;
use crate::plan::{ACTORS, Fault, WorldFault};
use crate::script::{Script, Step};
use crate::shared::Shared;

/// Everything that changes the world in a run.
pub(crate) struct World {
    shared: Arc<Shared>,
    script: Script,
    stamp: u64,
    copies: Vec<Copy>,
    lost: Option<Copy>,
    /// Objects that lost our label, and which process saw it.
    unlabelled: Vec<(ObjectRef, u64)>,
}

/// What all control planes want at a moment, and what that means.
type Copy = ([Backup; 3], BTreeMap<ObjectKey, Want>);

/// What the driver has to do itself.
pub(crate) enum Deed {
    Kill(&'static str),
    Crash,
    Lag(u64, u64),
    /// This follows so many milliseconds later.
    Later(u64, Undo),
    Nothing,
}

/// The end of something that lasts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Undo {
    Control,
    Cluster,
    Memory,
    Lag,
    Definition,
    Secret,
    Pod(ObjectRef),
    Node(String),
}

impl World {
    pub(crate) fn new(shared: &Arc<Shared>, script: Script) -> Self {
        Self {
            shared: Arc::clone(shared),
            script,
            stamp: 0,
            copies: Vec::new(),
            lost: None,
            unlabelled: Vec::new(),
        }
    }

    /// One step of the script.
    pub(crate) fn take_step(&mut self, step: Step) {
        self.shared
            .with(|ledger| ledger.note(&format!("script: {step:?}")));
        if self.lost.is_some() {
            // It comes back with what it had; what was said meanwhile would be lost.
            self.undo(&Undo::Memory);
        }
        let shared = Arc::clone(&self.shared);
        let of = |key: &ObjectKey| shared.control(controller_of(key));
        self.stamp += 1;
        let (workload, want) = match step {
            Step::Want(workload, variant) => {
                let rules = &self.shared.rules;
                match self.script.desired(workload, variant, self.stamp, rules) {
                    Ok(desired) => {
                        of(desired.key()).apply(desired.clone());
                        (workload, Want::Apply(desired))
                    }
                    Err(problem) => {
                        let key = self.script.key(workload);
                        of(&key).poison(&key, problem);
                        (workload, Want::Poison)
                    }
                }
            }
            Step::Delete(workload) => {
                let key = self.script.key(workload);
                of(&key).delete(&key);
                (workload, Want::Delete)
            }
            Step::Poison(workload) => {
                let invalid =
                    Invalid::new("image", format!("bad in {}", self.stamp), "send another");
                let key = self.script.key(workload);
                of(&key).poison(&key, invalid);
                (workload, Want::Poison)
            }
            Step::Forget(workload) => {
                let key = self.script.key(workload);
                of(&key).forget(&key);
                (workload, Want::Unknown)
            }
            Step::Garbage => {
                let which = usize::try_from(self.stamp).unwrap_or_default();
                let control = &shared.controls[which % shared.controls.len()];
                control.garbage("no case is set");
                return;
            }
        };
        let key = self.script.key(workload);
        let wants = self.shared.with(|ledger| {
            ledger.want(&key, want);
            ledger.wants.clone()
        });
        self.copies.push((self.backup(), wants));
    }

    fn backup(&self) -> [Backup; 3] {
        std::array::from_fn(|index| self.shared.controls[index].backup())
    }

    /// What happens to the world.
    pub(crate) fn strike(&mut self, fault: WorldFault) -> Deed {
        let shared = Arc::clone(&self.shared);
        shared.with(|ledger| {
            ledger.count(Fault::World(0, fault).kind());
            ledger.note(&format!("fault: {fault:?}"));
        });
        let (controls, admin) = (&shared.controls, &shared.admin);
        let each = |act: &dyn Fn(&SimControlPlane)| controls.iter().for_each(act);
        match fault {
            WorldFault::ControlAway(time) => {
                each(&SimControlPlane::take_away);
                return Deed::Later(time, Undo::Control);
            }
            WorldFault::ControlFrozen(time) => {
                each(&SimControlPlane::freeze);
                return Deed::Later(time, Undo::Control);
            }
            WorldFault::CutStreams => each(&|control| control.cut_streams("unavailable")),
            WorldFault::HoldHeaders(hold) => each(&|control| control.hold_headers_back(hold)),
            WorldFault::Order(order) => {
                shared.with(|ledger| ledger.is_disordered |= order % 4 >= 2);
                let order = match order % 4 {
                    0 => Order::ByVersion,
                    1 => Order::Twice,
                    2 => Order::Reversed,
                    _ => Order::Shuffled,
                };
                each(&|control| control.replay_order(order));
            }
            WorldFault::History => {
                each(&|control| control.keep_history(true));
                shared.with(|ledger| ledger.has_history = true);
            }
            WorldFault::Squat(which) => self.squat(which),
            WorldFault::Restore(age) => self.restore(age.into()),
            WorldFault::Amnesia(time) => {
                if self.lost.is_none() {
                    let wants = shared.with(|ledger| {
                        let now = tokio::time::Instant::now();
                        let wants = ledger.wants.clone();
                        for (key, want) in &mut ledger.wants {
                            ledger.unwanted_at.insert(key.clone(), now);
                            *want = Want::Unknown;
                        }
                        wants
                    });
                    self.lost = Some((self.backup(), wants));
                    each(&SimControlPlane::lose_memory);
                }
                return Deed::Later(time, Undo::Memory);
            }
            WorldFault::ClusterAway(time) => {
                shared.is_cluster_away.store(true, Ordering::Relaxed);
                admin.break_watches();
                return Deed::Later(time, Undo::Cluster);
            }
            WorldFault::BreakWatches => admin.break_watches(),
            WorldFault::Compact => {
                admin.compact();
                admin.break_watches();
            }
            WorldFault::Lag(versions, time) => return Deed::Lag(versions.into(), time),
            WorldFault::SkipVersions(count) => admin.skip_versions(count.into()),
            WorldFault::CrashPod(which) => {
                if let Some(pod) = self.pod(which) {
                    admin.crash_pod(&pod);
                }
            }
            WorldFault::EvictPod(which) => {
                if let Some(pod) = self.pod(which) {
                    admin.evict_pod(&pod);
                }
            }
            WorldFault::DeletePod(which) => {
                if let Some(pod) = self.pod(which) {
                    let _ = admin.delete(&pod, None);
                }
            }
            WorldFault::UnreadyPod(which, time) => {
                if let Some(pod) = self.pod(which) {
                    admin.set_pod_ready(&pod, false);
                    return Deed::Later(time, Undo::Pod(pod));
                }
            }
            WorldFault::LoseNode(which, time) => {
                let nodes = admin.nodes();
                if let Some(node) = nodes.get(usize::from(which) % nodes.len().max(1)) {
                    admin.lose_node(node);
                    return Deed::Later(time, Undo::Node(node.to_string()));
                }
            }
            WorldFault::Edit(which, how) => self.edit(which, how),
            WorldFault::Delete(which) => {
                if let Some(object) = self.object(which) {
                    let _ = admin.delete(&object, None);
                }
            }
            WorldFault::Unlabel(which) => {
                if let Some(object) = self.object(which) {
                    let patch =
                        json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}});
                    let _ = admin.patch(&object, "kubectl-label", "", &Patch::Merge(patch));
                    let uid = admin.get(&object).unwrap_or_default();
                    let uid = uid["metadata"]["uid"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned();
                    // A process that never saw it with our label cannot know that it is its own.
                    let epoch = shared.with(|ledger| {
                        let is_known = ledger.shown.iter().any(|(shown, _)| **shown == *uid);
                        if is_known { ledger.epoch } else { 0 }
                    });
                    self.unlabelled.push((object, epoch));
                }
            }
            WorldFault::DeleteNamespace(which) => {
                let namespaces = admin.list("Namespace", None);
                let which = usize::from(which) % namespaces.len().max(1);
                if let Some(name) = namespaces.get(which).map(name_of) {
                    let namespace = ObjectRef::new(Resource::Namespace, "", name);
                    let _ = admin.delete(&namespace, None);
                    // Its policies are made anew, and the first workload has to wait for them.
                }
            }
            WorldFault::DefinitionAway(time) => {
                admin.remove_definition("CiliumNetworkPolicy");
                return Deed::Later(time, Undo::Definition);
            }
            WorldFault::SecretAway(time) => {
                let namespace = labels::SENTINEL_NAMESPACE;
                let secret = ObjectRef::new(Resource::Secret, namespace, "database");
                let _ = admin.delete(&secret, None);
                return Deed::Later(time, Undo::Secret);
            }
            WorldFault::Kill(which) => return Deed::Kill(ACTORS[which % ACTORS.len()]),
            WorldFault::Crash => return Deed::Crash,
        }
        Deed::Nothing
    }

    /// Ends what lasts.
    pub(crate) fn undo(&mut self, what: &Undo) {
        let shared = Arc::clone(&self.shared);
        shared.with(|ledger| ledger.note(&format!("over: {what:?}")));
        match what {
            Undo::Control => shared.controls.iter().for_each(SimControlPlane::give_back),
            Undo::Secret => shared.put_secret(),
            Undo::Cluster => shared.is_cluster_away.store(false, Ordering::Relaxed),
            Undo::Memory => {
                if let Some((backup, wants)) = self.lost.take() {
                    shared.restore(&backup);
                    shared.with(|ledger| ledger.wants = wants);
                }
            }
            Undo::Lag => {}
            Undo::Definition => shared.admin.add_definition("CiliumNetworkPolicy"),
            Undo::Pod(pod) => shared.admin.set_pod_ready(pod, true),
            Undo::Node(node) => shared.admin.return_node(node),
        }
    }

    /// What only a person can mend is mended. `has_forgotten`: the process does not know any more
    /// what it knew.
    pub(crate) fn mend(&self, has_forgotten: bool) {
        let shared = &self.shared;
        let present = shared.with(|ledger| ledger.epoch);
        for (object, epoch) in &self.unlabelled {
            if has_forgotten || *epoch != present {
                let labels = json!({"app.kubernetes.io/managed-by": "krane"});
                let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
                let _ = shared.admin.patch(object, "kubectl-label", "", &patch);
            }
        }
        let kinds = ["ReplicaSet", "Deployment", "CiliumNetworkPolicy"];
        let all = kinds.iter().flat_map(|kind| shared.admin.list(kind, None));
        for object in all {
            if object["metadata"]["labels"]["app"] == "squatter"
                && let Some(object) = reference_of(&object)
            {
                let _ = shared.admin.delete(&object, None);
            }
        }
        for pod in shared.admin.list("Pod", None) {
            // A pod that never ends keeps its namespace.
            if pod["metadata"]["deletionTimestamp"].is_string()
                && let Some(pod) = reference_of(&pod)
            {
                let _ = shared.admin.delete(&pod, Some(0));
            }
        }
    }

    fn restore(&mut self, age: usize) {
        if self.lost.is_some() {
            return;
        }
        let Some(index) = self.copies.len().checked_sub(age + 1) else {
            return;
        };
        let (backup, wants) = self.copies[index].clone();
        self.copies.truncate(index + 1);
        self.shared.restore(&backup);
        let admin = &self.shared.admin;
        let live: Vec<Value> = Controller::ALL
            .into_iter()
            .flat_map(|controller| admin.list(controller.primary().kind(), None))
            .collect();
        self.shared.with(|ledger| {
            let now = tokio::time::Instant::now();
            ledger.was_restored = true;
            ledger.floor.clear();
            ledger.forget_received();
            for key in ledger.wants.keys() {
                ledger.unwanted_at.insert(key.clone(), now);
            }
            // What was made after the copy is known to nobody.
            let unknown = ledger.wants.keys().filter(|key| !wants.contains_key(*key));
            let unknown: Vec<ObjectKey> = unknown.cloned().collect();
            ledger.wants = wants;
            for key in unknown {
                ledger.wants.insert(key, Want::Unknown);
            }
            ledger.reached = live
                .iter()
                .filter_map(|object| Some((reference_of(object)?, stamp(object)?)))
                .filter(|(reference, _)| is_primary(reference))
                .map(|(reference, stamp)| (reference.key(), stamp))
                .collect();
        });
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn reference_of(object: &Value) -> Option<ObjectRef> {
    let resource = match object["kind"].as_str()? {
        "Namespace" => Resource::Namespace,
        "CiliumNetworkPolicy" => Resource::CiliumNetworkPolicy,
        "Secret" => Resource::Secret,
        "ReplicaSet" => Resource::ReplicaSet,
        "Pod" => Resource::Pod,
        "HorizontalPodAutoscaler" => Resource::HorizontalPodAutoscaler,
        "Deployment" => Resource::Deployment,
        "Service" => Resource::Service,
        "PodDisruptionBudget" => Resource::PodDisruptionBudget,
        _ => return None,
    };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    Some(ObjectRef::new(resource, namespace, name_of(object)))
}
