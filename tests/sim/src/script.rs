//! What the control plane wants over the time of a run.

use fastrand::Rng;
use krane_domain::desired::Invalid;
use krane_domain::ids::ObjectKey;
use krane_domain::kinds::deployment::{self, AutoscalingInput, DeploymentInput};
use krane_domain::kinds::{Desired, Rules};

/// The changes of what is wanted, by milliseconds after the start.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// In order of time.
    pub steps: Vec<(u64, Step)>,
    /// Over how many namespaces the workloads are spread.
    pub namespaces: usize,
}

/// One change; workloads are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The workload is wanted like this.
    Want(usize, Variant),
    /// It is wanted gone.
    Delete(usize),
    /// What is wanted of it cannot be.
    Poison(usize),
    /// It is forgotten: questions about it are answered "not found".
    Forget(usize),
    /// A message that names nothing.
    Garbage,
}

/// How a workload is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Tag of the image; chooses how its pods behave.
    pub tag: &'static str,
    /// Pods.
    pub replicas: u8,
    /// Port.
    pub port: u16,
    /// Whether an autoscaler may change the number of pods.
    pub is_autoscaled: bool,
}

impl Default for Variant {
    fn default() -> Self {
        Self {
            tag: "1",
            replicas: 1,
            port: 8080,
            is_autoscaled: false,
        }
    }
}

const TAGS: [&str; 10] = [
    "1",
    "2",
    "3",
    "4",
    "slow",
    "unready",
    "pending",
    "image-pull",
    "crash",
    "stuck",
];

impl Script {
    /// Steps at random over this many workloads and this much time.
    pub fn at_random(chance: &mut Rng, workloads: usize, chaos: u64) -> Self {
        let mut steps = Vec::new();
        for workload in 0..workloads {
            let at = if chance.bool() {
                0
            } else {
                chance.u64(..chaos / 2)
            };
            steps.push((at, Step::Want(workload, variant(chance))));
        }
        let mut may_forget = 2;
        for _ in 0..chance.usize(..=workloads.min(30) * 3) {
            let workload = chance.usize(..workloads);
            let step = match chance.u8(..20) {
                0..=10 => Step::Want(workload, variant(chance)),
                11..=14 => Step::Delete(workload),
                15 | 16 => Step::Poison(workload),
                17 => Step::Garbage,
                _ if may_forget > 0 => {
                    may_forget -= 1;
                    Step::Forget(workload)
                }
                _ => Step::Delete(workload),
            };
            steps.push((chance.u64(..chaos), step));
        }
        steps.sort_by_key(|(at, _)| *at);
        Self {
            steps,
            namespaces: chance.usize(1..5),
        }
    }

    /// Exactly these steps, in two namespaces.
    pub fn of(steps: &[(u64, Step)]) -> Self {
        Self {
            steps: steps.to_vec(),
            namespaces: 2,
        }
    }

    /// How many workloads it speaks of.
    pub fn workloads(&self) -> usize {
        let numbers = self.steps.iter().filter_map(|(_, step)| match step {
            Step::Want(number, _)
            | Step::Delete(number)
            | Step::Poison(number)
            | Step::Forget(number) => Some(number + 1),
            Step::Garbage => None,
        });
        numbers.max().unwrap_or(0)
    }

    /// Namespace and name of a workload.
    pub fn key(&self, workload: usize) -> ObjectKey {
        let namespace = workload % self.namespaces;
        ObjectKey::new(format!("tenant-{namespace}"), format!("app-{workload}"))
    }

    /// What is wanted; `stamp` is found again on the live object.
    pub fn desired(
        &self,
        workload: usize,
        variant: Variant,
        stamp: u64,
        rules: &Rules,
    ) -> Result<Desired, Invalid> {
        let key = self.key(workload);
        let input = DeploymentInput {
            k8s_namespace: key.namespace.to_string(),
            k8s_name: key.name.to_string(),
            workspace_id: format!("ws_{}", key.namespace),
            project_id: "proj_1".into(),
            environment_id: format!("env_{}", workload / self.namespaces % 2),
            deployment_id: format!("d_{}", key.name),
            image: format!("registry.example/app:{}", variant.tag),
            replicas: variant.replicas.into(),
            cpu_millicores: 100,
            memory_mib: 64,
            build_id: Some(stamp_text(stamp)),
            port: variant.port.into(),
            autoscaling: variant.is_autoscaled.then_some(AutoscalingInput {
                min_replicas: 1,
                max_replicas: 3,
                cpu_threshold: Some(80),
                memory_threshold: None,
            }),
            ..DeploymentInput::default()
        };
        deployment::validate(input, rules).map(|desired| Desired::Deployment(Box::new(desired)))
    }
}

fn variant(chance: &mut Rng) -> Variant {
    let well = chance.u8(..4) > 0;
    Variant {
        tag: TAGS[chance.usize(..if well { 4 } else { TAGS.len() })],
        replicas: chance.u8(..4),
        port: 8080 + u16::from(chance.u8(..3)),
        is_autoscaled: chance.u8(..5) == 0,
    }
}

/// How a stamp looks on an object.
pub(crate) fn stamp_text(stamp: u64) -> String {
    format!("b_{stamp}")
}

/// The stamp in a label's value.
pub(crate) fn stamp_of(text: &str) -> Option<u64> {
    text.strip_prefix("b_")?.parse().ok()
}
