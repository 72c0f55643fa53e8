//! Random requests about a few objects, from a seed.

mod bases;
mod wants;

use std::sync::Arc;

use fastrand::Rng;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use serde_json::{Value, json};

use crate::edits::{
    AUTOSCALER_EDITS, AUTOSCALER_INTRUSIONS, Change, Edit, POLICY_EDITS, POLICY_INTRUSIONS,
    REPLICA_SET_EDITS, REPLICA_SET_INTRUSIONS,
};
use crate::twins::{Step, Uid};
pub use bases::{autoscaler, policy, replica_set, secret};
use wants::{ANY, FAULTS, Mutation, POLICY, POLICY_FAULTS, REPLICA_SET, REPLICA_SET_FAULTS};

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

/// Requests about one object.
pub fn sequence(seed: u64, namespace: &str, length: usize) -> Vec<Named> {
    let mut chance = Rng::with_seed(seed);
    let name = format!("s-{seed}");
    let base = match chance.u8(..10) {
        0..7 => replica_set(namespace, &name),
        7..9 => policy(namespace, &name),
        _ => secret(namespace),
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
            Resource::CiliumNetworkPolicy => &POLICY,
            Resource::HorizontalPodAutoscaler
            | Resource::Deployment
            | Resource::Service
            | Resource::PodDisruptionBudget
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
            Resource::CiliumNetworkPolicy => &POLICY_FAULTS,
            Resource::HorizontalPodAutoscaler
            | Resource::Deployment
            | Resource::Service
            | Resource::PodDisruptionBudget
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
        let edits: Vec<Edit> = match object.resource {
            Resource::ReplicaSet => [&REPLICA_SET_EDITS[..], &REPLICA_SET_INTRUSIONS].concat(),
            Resource::CiliumNetworkPolicy => [&POLICY_EDITS[..], &POLICY_INTRUSIONS].concat(),
            Resource::HorizontalPodAutoscaler => {
                [&AUTOSCALER_EDITS[..], &AUTOSCALER_INTRUSIONS].concat()
            }
            Resource::Deployment
            | Resource::Service
            | Resource::PodDisruptionBudget
            | Resource::Secret
            | Resource::Namespace
            | Resource::Pod => Vec::new(),
        };
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
