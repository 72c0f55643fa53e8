//! What the control plane wants over the time of a run.

use std::collections::BTreeSet;

use fastrand::Rng;
use krane_domain::ids::ObjectKey;
use krane_domain::invalid::Invalid;
use krane_domain::kinds::cilium_network_policy::{self, PolicyInput};
use krane_domain::kinds::deployment::{self, AutoscalingInput, DeploymentInput};
use krane_domain::kinds::sentinel::{self, SentinelInput};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::labels;
use serde_json::json;

use crate::kinds::{POLICY, SENTINEL};

/// The annotation of a policy that says from which state it is.
pub(crate) const STAMP: &str = "stamp";

/// The changes of what is wanted, by milliseconds after the start.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// In order of time.
    pub steps: Vec<(u64, Step)>,
    /// Over how many namespaces the workloads are spread.
    pub namespaces: usize,
}

/// Sentinels are numbered from here on.
pub const SENTINELS: usize = 1_000;
/// Policies of the control plane are numbered from here on.
pub const POLICIES: usize = 2_000;

/// One change; workloads, sentinels and policies are numbers.
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
        let sentinels = chance.usize(..3).min(workloads);
        let policies: usize = (0..workloads.min(12)).map(|_| chance.usize(..3)).sum();
        let policies = policies.min(chance.usize(..12));
        let all: Vec<usize> = (0..workloads)
            .chain(SENTINELS..SENTINELS + sentinels)
            .chain(POLICIES..POLICIES + policies)
            .collect();
        for workload in all.iter().copied() {
            let at = if chance.bool() {
                0
            } else {
                chance.u64(..chaos / 2)
            };
            steps.push((at, Step::Want(workload, variant(chance))));
        }
        let mut may_forget = 2;
        for _ in 0..chance.usize(..=workloads.min(30) * 3) {
            let workload = all[chance.usize(..all.len())];
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

    /// The workloads, sentinels and policies it speaks of.
    pub fn subjects(&self) -> BTreeSet<usize> {
        let numbers = self.steps.iter().filter_map(|(_, step)| match step {
            Step::Want(number, _)
            | Step::Delete(number)
            | Step::Poison(number)
            | Step::Forget(number) => Some(*number),
            Step::Garbage => None,
        });
        numbers.collect()
    }

    /// Namespace and name of a workload, sentinel or policy.
    pub fn key(&self, subject: usize) -> ObjectKey {
        let tenant = |number: usize| format!("tenant-{}", number % self.namespaces);
        match subject {
            0..SENTINELS => ObjectKey::new(tenant(subject), format!("app-{subject}")),
            SENTINELS..POLICIES => {
                let name = format!("{SENTINEL}{}", subject - SENTINELS);
                ObjectKey::new(labels::SENTINEL_NAMESPACE, name)
            }
            POLICIES.. => {
                // Two for each workload: one where it is, and one where the sentinels are.
                let number = subject - POLICIES;
                let name = format!("{POLICY}{number}");
                if number.is_multiple_of(2) {
                    ObjectKey::new(tenant(number / 2), name)
                } else {
                    ObjectKey::new(labels::SENTINEL_NAMESPACE, name)
                }
            }
        }
    }

    /// What is wanted; `stamp` is found again on the live object.
    pub fn desired(
        &self,
        workload: usize,
        variant: Variant,
        stamp: u64,
        rules: &Rules,
    ) -> Result<Desired, Invalid> {
        match workload {
            0..SENTINELS => self.deployment(workload, variant, stamp, rules),
            SENTINELS..POLICIES => self.sentinel(workload, variant, stamp, rules),
            POLICIES.. => self.policy(workload, variant, stamp, rules),
        }
    }

    fn deployment(
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

    fn sentinel(
        &self,
        subject: usize,
        variant: Variant,
        stamp: u64,
        rules: &Rules,
    ) -> Result<Desired, Invalid> {
        let key = self.key(subject);
        let number = subject - SENTINELS;
        let input = SentinelInput {
            k8s_name: key.name.to_string(),
            workspace_id: format!("ws_tenant-{}", number % self.namespaces),
            project_id: "proj_1".to_owned(),
            app_id: stamp_text(stamp),
            environment_id: format!("env_{}", number / self.namespaces % 2),
            sentinel_id: format!("s_{}", key.name),
            image: format!("registry.example/sentinel:{}", variant.tag),
            replicas: variant.replicas.into(),
            cpu_millicores: 100,
            memory_mib: 64,
        };
        sentinel::validate(input, rules).map(|desired| Desired::Sentinel(Box::new(desired)))
    }

    fn policy(
        &self,
        subject: usize,
        variant: Variant,
        stamp: u64,
        rules: &Rules,
    ) -> Result<Desired, Invalid> {
        let key = self.key(subject);
        let of = (subject - POLICIES) / 2;
        let selector = json!({"matchLabels": {"unkey.com/deployment.id": format!("d_app-{of}")}});
        let rule = json!({
            "fromEndpoints": [{"matchLabels": {"io.kubernetes.pod.namespace": "sentinel"}}],
            "toPorts": [{"ports": [{"port": variant.port.to_string(), "protocol": "TCP"}]}],
        });
        let policy = json!({
            "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
            "metadata": {
                "name": "theirs", "labels": {"theirs": variant.tag},
                "annotations": {STAMP: stamp_text(stamp)},
            },
            "spec": {
                "description": variant.tag, "endpointSelector": selector, "ingress": [rule],
            },
        });
        let input = PolicyInput {
            k8s_namespace: key.namespace.to_string(),
            k8s_name: key.name.to_string(),
            cilium_network_policy_id: format!("p_{}", key.name),
            policy: policy.to_string().into_bytes(),
        };
        let desired = cilium_network_policy::validate(input, rules)?;
        Ok(Desired::CiliumNetworkPolicy(Box::new(desired)))
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
