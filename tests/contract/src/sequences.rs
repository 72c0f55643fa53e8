//! Random requests about a few objects, from a seed.

mod bases;
mod wants;

use std::sync::Arc;

use fastrand::Rng;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use serde_json::{Value, json};

use crate::edits::{Change, DEPLOYMENT_EXEMPT, Edit, undone};
use crate::twins::{Step, Uid};
pub use bases::{autoscaler, policy, replica_set, secret};
pub use bases::{deployment, disruption_budget, gossip_policy, headless_service, service};
use wants::{ANY, FAULTS, Mutation, POLICY, POLICY_FAULTS, REPLICA_SET, REPLICA_SET_FAULTS};
use wants::{DEPLOYMENT, DEPLOYMENT_FAULTS, DISRUPTION_BUDGET, DISRUPTION_BUDGET_FAULTS};
use wants::{SERVICE, SERVICE_FAULTS};

/// A request with its name.
#[derive(Clone)]
pub struct Named {
    /// What it is, in words.
    pub name: String,
    /// The request.
    pub step: Step,
    /// What krane wants of the object at that time.
    pub wanted: Option<Rendered>,
}

/// The one namespace in which krane may write the objects of sentinels.
pub const SENTINEL: &str = "sentinel";

/// Requests about one object.
pub fn sequence(seed: u64, namespace: &str, length: usize) -> Vec<Named> {
    let mut chance = Rng::with_seed(seed);
    let name = format!("s-{seed}");
    let base = match chance.u8(..20) {
        0..7 => replica_set(namespace, &name),
        7..9 => policy(namespace, &name),
        9 => secret(namespace),
        10..14 => deployment(SENTINEL, &name),
        14..16 => service(SENTINEL, &name),
        16..18 => headless_service(SENTINEL, &name),
        18 => disruption_budget(SENTINEL, &name),
        _ => gossip_policy(SENTINEL, &name),
    };
    let mut sequence = Sequence {
        wanted: base.clone(),
        base,
        applied: None,
        chance,
    };
    let mut steps = vec![sequence.apply(true)];
    steps.extend((1..length).map(|_| sequence.next()));
    steps
}

struct Sequence {
    base: Rendered,
    wanted: Rendered,
    applied: Option<Rendered>,
    chance: Rng,
}

impl Sequence {
    fn next(&mut self) -> Named {
        let object = self.base.reference.clone();
        match self.chance.u8(..20) {
            0..9 => self.apply(false),
            9 => self.named("krane takes over", Step::Adopt(object)),
            10 => {
                let uid = [Uid::Live, Uid::Live, Uid::Wrong][self.chance.usize(..3)];
                self.named(&format!("krane deletes {uid:?}"), Step::Delete(object, uid))
            }
            11 => self.named("somebody deletes", Step::Remove(object)),
            _ => self.change(object),
        }
    }

    fn named(&self, name: &str, step: Step) -> Named {
        Named {
            name: name.to_owned(),
            step,
            wanted: self.applied.clone(),
        }
    }

    /// krane applies something else than before, or the same again.
    fn apply(&mut self, is_first: bool) -> Named {
        let mut names = Vec::new();
        if self.chance.u8(..4) == 0 {
            self.wanted = self.base.clone();
            names.push("base");
        }
        let mutations: &[(&str, Mutation)] = match self.base.reference.resource {
            Resource::ReplicaSet => &REPLICA_SET,
            Resource::Deployment => &DEPLOYMENT,
            Resource::Service => &SERVICE,
            Resource::PodDisruptionBudget => &DISRUPTION_BUDGET,
            Resource::CiliumNetworkPolicy => &POLICY,
            Resource::HorizontalPodAutoscaler
            | Resource::Secret
            | Resource::Namespace
            | Resource::Pod => &ANY,
        };
        let count = if is_first { 0 } else { self.chance.usize(..3) };
        for _ in 0..count {
            let (name, mutation) = mutations[self.chance.usize(..mutations.len())];
            names.push(name);
            mutation(&mut self.wanted.body, &mut self.chance);
        }
        let mut sent = self.wanted.clone();
        let faults: &[(&str, Mutation)] = match self.base.reference.resource {
            Resource::ReplicaSet => &REPLICA_SET_FAULTS,
            Resource::Deployment => &DEPLOYMENT_FAULTS,
            Resource::Service => &SERVICE_FAULTS,
            Resource::PodDisruptionBudget => &DISRUPTION_BUDGET_FAULTS,
            Resource::CiliumNetworkPolicy => &POLICY_FAULTS,
            Resource::HorizontalPodAutoscaler
            | Resource::Secret
            | Resource::Namespace
            | Resource::Pod => &FAULTS,
        };
        if self.chance.u8(..6) == 0 {
            let (name, fault) = faults[self.chance.usize(..faults.len())];
            names.push(name);
            fault(&mut sent.body, &mut self.chance);
        }
        let uid = [Uid::Any, Uid::Live, Uid::Live, Uid::Live, Uid::Wrong][self.chance.usize(..5)];
        let uid = if is_first { Uid::Any } else { uid };
        self.applied = Some(sent.clone());
        self.named(
            &format!("krane applies {uid:?} {names:?}"),
            Step::Apply(sent, uid),
        )
    }

    fn change(&mut self, object: ObjectRef) -> Named {
        let mut edits = match object.resource {
            // Of the one that krane may write nothing is to be left for others to see.
            Resource::Secret => Vec::new(),
            Resource::ReplicaSet
            | Resource::Deployment
            | Resource::Service
            | Resource::PodDisruptionBudget
            | Resource::HorizontalPodAutoscaler
            | Resource::CiliumNetworkPolicy
            | Resource::Namespace
            | Resource::Pod => undone(&self.base),
        };
        if object.resource == Resource::Deployment {
            edits.extend(DEPLOYMENT_EXEMPT);
        }
        let mut new = self.base.body.clone();
        new["metadata"]["labels"] = json!({"app": "theirs"});
        let edits: Vec<Edit> = edits.into_iter().chain(GENERAL).collect();
        let edit = edits[self.chance.usize(..edits.len())];
        let name = format!("somebody: {}", edit.name);
        self.named(&name, Step::Change(object, Arc::new(edit.change), new))
    }
}

/// Edits of any object.
const GENERAL: [Edit; 6] = [
    Edit {
        name: "label and annotation added",
        change: |_| {
            Change::Merge(
                json!({"metadata": {"labels": {"theirs": "a"}, "annotations": {"x": "y"}}}),
            )
        },
    },
    Edit {
        name: "forced apply of a label",
        change: |live| Change::Apply("gitops", labelled(live, "a")),
    },
    Edit {
        name: "apply of another label value, giving way",
        change: |live| Change::Propose("gitops", labelled(live, "b")),
    },
    Edit {
        name: "managed fields wiped",
        change: |_| Change::Merge(json!({"metadata": {"managedFields": [{}]}})),
    },
    Edit {
        name: "managed-by label removed",
        change: |_| {
            Change::Merge(json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}))
        },
    },
    Edit {
        name: "put as it is",
        change: |live| Change::Put(live.clone()),
    },
];

fn labelled(live: &Value, value: &str) -> Value {
    json!({
        "apiVersion": live["apiVersion"], "kind": live["kind"],
        "metadata": {"name": live["metadata"]["name"], "labels": {"unkey.com/workspace.id": value}},
    })
}
