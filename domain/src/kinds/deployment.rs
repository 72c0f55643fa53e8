//! Customer workloads: one ReplicaSet each, with an autoscaler where they want one, isolated per
//! environment.

mod autoscaler;
mod fields;
mod healthcheck;
mod observe;
mod render;
mod template;
mod validate;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

pub use fields::{FIELD_TABLE, ProtoField};
pub use validate::{validate, validate_delete};

use autoscaler::dependants;
use render::render;

use super::watches::is;
use super::{Keep, LiveKind, Member, Observation, Rules, WantedKind, WatchSpec};
use crate::ids::ObjectKey;
use crate::invalid::Invalid;
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::origin::Origin;
use crate::pod::PodDigest;
use crate::secrets::WorkloadIdentity;

/// The fields of an `ApplyDeployment` message as decoded, before validation.
///
/// Field names and meanings are those of the protocol. Nothing here has been checked.
#[derive(Clone, Default, PartialEq)]
pub struct DeploymentInput {
    /// Field 1.
    pub k8s_namespace: String,
    /// Field 2.
    pub k8s_name: String,
    /// Field 3.
    pub workspace_id: String,
    /// Field 4.
    pub project_id: String,
    /// Field 5.
    pub environment_id: String,
    /// Field 6.
    pub deployment_id: String,
    /// Field 7.
    pub image: String,
    /// Field 8.
    pub replicas: i32,
    /// Field 9.
    pub cpu_millicores: i64,
    /// Field 10.
    pub memory_mib: i64,
    /// Field 11.
    pub build_id: Option<String>,
    /// Field 12. Secret.
    pub encrypted_environment_variables: Vec<u8>,
    /// Field 13.
    pub command: Vec<String>,
    /// Field 14.
    pub port: i32,
    /// Field 15.
    pub shutdown_signal: String,
    /// Field 17, JSON.
    pub healthcheck: Option<Vec<u8>>,
    /// Field 18.
    pub app_id: String,
    /// Field 21.
    pub environment_slug: Option<String>,
    /// Field 22.
    pub region: Option<String>,
    /// Field 23.
    pub git_commit_sha: Option<String>,
    /// Field 24.
    pub git_branch: Option<String>,
    /// Field 25.
    pub git_repo: Option<String>,
    /// Field 26.
    pub git_commit_message: Option<String>,
    /// Field 27.
    pub autoscaling: Option<AutoscalingInput>,
    /// Field 29, `size_mib`.
    pub ephemeral_storage_mib: Option<i64>,
}

/// The fields of an `AutoscalingPolicy` message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoscalingInput {
    /// Field 1.
    pub min_replicas: u32,
    /// Field 2.
    pub max_replicas: u32,
    /// Field 3, percent.
    pub cpu_threshold: Option<i32>,
    /// Field 4, percent.
    pub memory_threshold: Option<i32>,
}

impl fmt::Debug for DeploymentInput {
    /// Leaves out the encrypted variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeploymentInput")
            .field("k8s_namespace", &self.k8s_namespace)
            .field("k8s_name", &self.k8s_name)
            .field("deployment_id", &self.deployment_id)
            .finish_non_exhaustive()
    }
}

/// A workload that passed validation.
#[derive(Clone, PartialEq)]
pub struct DesiredDeployment {
    /// Namespace and name of its ReplicaSet.
    pub key: ObjectKey,
    /// Workspace id; a legal label value.
    pub workspace_id: Arc<str>,
    /// Project id; a legal label value.
    pub project_id: Arc<str>,
    /// App id; a legal label value, may be empty.
    pub app_id: Arc<str>,
    /// Environment id; a legal label value.
    pub environment_id: Arc<str>,
    /// Deployment id; a legal label value.
    pub deployment_id: Arc<str>,
    /// Build id; a legal label value, may be empty.
    pub build_id: Arc<str>,
    /// Container image reference.
    pub image: String,
    /// Pods wanted; with autoscaling only to begin with.
    pub replicas: u32,
    /// How many pods there may be, and what decides; without it there are `replicas`.
    pub autoscaling: Option<Autoscaling>,
    /// CPU limit in thousandths of a core, > 0.
    pub cpu_millicores: u64,
    /// Memory limit in MiB, > 0.
    pub memory_mib: u64,
    /// Entry point override, verbatim; empty for the image's own.
    pub command: Vec<String>,
    /// Size of the scratch volume at `/data` in MiB, > 0; none without.
    pub ephemeral_storage_mib: Option<u64>,
    /// Container port.
    pub port: u16,
    /// Signal other than SIGTERM that stops the process.
    pub shutdown_signal: Option<ShutdownSignal>,
    /// Liveness and readiness probe.
    pub healthcheck: Option<Healthcheck>,
    /// JSON of the encrypted variables as received. Secret: never logged.
    pub encrypted_environment_variables: Vec<u8>,
    /// Optional descriptive variables by name (`UNKEY_ENVIRONMENT_SLUG`, …), fields 21 to 26.
    pub descriptive_variables: BTreeMap<&'static str, String>,
    /// Who wants it.
    pub origin: Origin,
    /// Opaque, told back to whoever follows the scheduler's watch; never empty.
    pub readiness_id: Option<Arc<str>>,
    /// What was wrong without making the state invalid, for the log.
    pub warnings: Vec<Invalid>,
}

impl WantedKind for DesiredDeployment {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn id(&self) -> &Arc<str> {
        &self.deployment_id
    }

    fn member(&self) -> Member {
        let workspace_id = Arc::clone(&self.workspace_id);
        Member::isolated(workspace_id, Arc::clone(&self.environment_id), self.port)
    }

    fn origin(&self) -> Origin {
        self.origin
    }

    fn workload_identity(&self) -> Option<WorkloadIdentity> {
        Some(WorkloadIdentity {
            deployment_id: Arc::clone(&self.deployment_id),
            workspace_id: Arc::clone(&self.workspace_id),
            environment_id: Arc::clone(&self.environment_id),
            origin: self.origin,
        })
    }

    fn replicas(&self) -> Option<u32> {
        let with_autoscaler = self.autoscaling.map(|policy| policy.min_replicas);
        Some(with_autoscaler.unwrap_or(self.replicas))
    }

    fn reference(&self) -> ObjectRef {
        ObjectRef::new(
            Resource::ReplicaSet,
            Arc::clone(&self.key.namespace),
            Arc::clone(&self.key.name),
        )
    }

    fn render(&self, rules: &Rules, live: Option<&LiveObject>, _keep: Keep) -> Rendered {
        render(self, rules, live)
    }

    fn render_unsure(
        &self,
        rules: &Rules,
        live: Option<&LiveObject>,
        _keep: Keep,
        unknown: &BTreeSet<Resource>,
    ) -> Rendered {
        let rendered = render(self, rules, live);
        match live {
            Some(live) if unknown.contains(&Resource::HorizontalPodAutoscaler) => {
                autoscaler::leave_replicas_of_others(rendered, live)
            }
            Some(_) | None => rendered,
        }
    }

    fn dependant_kinds(&self) -> &'static [Resource] {
        match self.autoscaling {
            Some(_) => &[Resource::HorizontalPodAutoscaler],
            None => &[],
        }
    }

    fn dependants(&self, _rules: &Rules, owner: &LiveObject) -> Vec<Rendered> {
        dependants(self, owner)
    }

    fn unneeded(&self) -> Vec<ObjectRef> {
        autoscaler::unneeded(self)
    }

    fn warnings(&self) -> &[Invalid] {
        &self.warnings
    }
}

/// Customer workloads as they are in the cluster.
pub(super) struct Live;

impl LiveKind for Live {
    fn primary(&self) -> Resource {
        Resource::ReplicaSet
    }

    fn id_label(&self) -> &'static str {
        labels::DEPLOYMENT_ID
    }

    fn watches(&self, rules: &Rules) -> Vec<WatchSpec> {
        let workload = is(labels::COMPONENT, labels::COMPONENT_DEPLOYMENT);
        let policy = is(labels::COMPONENT, labels::COMPONENT_POLICY);
        let not_sent = format!("!{}", labels::NETWORK_POLICY_ID);
        let mut watches = vec![
            WatchSpec::ours(Resource::ReplicaSet, &[&workload]),
            WatchSpec::ours(Resource::Pod, &[&workload]),
            WatchSpec::ours(Resource::HorizontalPodAutoscaler, &[&workload]),
            WatchSpec::ours(Resource::Namespace, &[]),
            WatchSpec::ours(Resource::CiliumNetworkPolicy, &[&policy, &not_sent]),
        ];
        if rules.pull_secret.is_some() {
            // Anything wider is forbidden: the right on Secrets is for this name only.
            watches.push(WatchSpec {
                field_selector: format!("metadata.name={}", labels::PULL_SECRET_NAME),
                ..WatchSpec::of(Resource::Secret, &[])
            });
        }
        watches
    }

    fn member(&self, live: &LiveObject) -> Option<Member> {
        observe::member(live)
    }

    fn workload_of(&self, live: &LiveObject) -> Option<ObjectKey> {
        let is_autoscaler = live.reference.resource == Resource::HorizontalPodAutoscaler;
        is_autoscaler.then(|| live.reference.key())
    }

    fn observe(
        &self,
        live: &LiveObject,
        pods: &[&PodDigest],
        rules: &Rules,
    ) -> Option<Observation> {
        Some(observe::observe(live, pods, rules))
    }

    fn outdated_pod<'a>(
        &self,
        live: &LiveObject,
        pods: &[&'a PodDigest],
        unix_seconds: u64,
    ) -> Option<&'a PodDigest> {
        observe::outdated_pod(live, pods, unix_seconds)
    }
}

impl fmt::Debug for DesiredDeployment {
    /// Leaves out everything that came from the tenant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DesiredDeployment")
            .field("key", &self.key)
            .field("deployment_id", &self.deployment_id)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

/// How many pods a workload may have, and what decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Autoscaling {
    /// The fewest, > 0.
    pub min_replicas: u32,
    /// The most, at least the fewest.
    pub max_replicas: u32,
    /// CPU use to aim for in percent of the request, > 0.
    pub cpu_threshold: Option<u32>,
    /// Memory use to aim for in percent of the request, > 0; no signal without.
    pub memory_threshold: Option<u32>,
}

/// The signals a workload may ask to be stopped with, other than SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownSignal {
    /// `SIGINT`
    Interrupt,
    /// `SIGQUIT`
    Quit,
    /// `SIGKILL`
    Kill,
}

/// A probe, as the control plane describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Healthcheck {
    /// How the probe asks.
    pub method: ProbeMethod,
    /// Absolute path.
    pub path: String,
    /// Seconds between probes; 0 for the API server's default.
    pub interval_seconds: u32,
    /// Seconds a probe may take; 0 for the default.
    pub timeout_seconds: u32,
    /// Failures in a row before action; 0 for the default.
    pub failure_threshold: u32,
    /// Seconds before the first probe.
    pub initial_delay_seconds: u32,
}

/// How a probe asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeMethod {
    /// The kubelet sends an HTTP GET.
    Get,
    /// `wget` inside the container sends an HTTP POST.
    Post,
}
