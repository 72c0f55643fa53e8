//! Sentinels: the proxies in front of the workloads of an environment, five objects each.

mod companions;
mod config;
mod form;
mod forms;
mod observe;
mod render;
mod state;
mod template;
#[cfg(test)]
mod tests;
mod validate;

use std::sync::Arc;

pub use validate::{validate, validate_delete};

use super::watches::is;
use super::{Keep, LiveKind, Member, Observation, Rules, WantedKind, WatchSpec};
use crate::ids::ObjectKey;
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::origin::Origin;
use crate::pod::PodDigest;

/// What the names of gossip objects add to that of their sentinel (D20).
pub(super) const GOSSIP_SUFFIX: &str = "-gossip-lan";

/// The fields of an `ApplySentinel` message as decoded, before validation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentinelInput {
    /// Field 1.
    pub k8s_name: String,
    /// Field 2.
    pub workspace_id: String,
    /// Field 3.
    pub project_id: String,
    /// Field 4.
    pub app_id: String,
    /// Field 5.
    pub environment_id: String,
    /// Field 6.
    pub sentinel_id: String,
    /// Field 7.
    pub image: String,
    /// Field 8.
    pub replicas: i32,
    /// Field 9.
    pub cpu_millicores: i64,
    /// Field 10.
    pub memory_mib: i64,
}

/// A sentinel that passed validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredSentinel {
    /// Namespace and name of its Deployment.
    pub key: ObjectKey,
    /// Workspace id; a legal label value.
    pub workspace_id: Arc<str>,
    /// Project id; a legal label value.
    pub project_id: Arc<str>,
    /// App id; a legal label value, may be empty.
    pub app_id: Arc<str>,
    /// Environment id; a legal label value.
    pub environment_id: Arc<str>,
    /// Sentinel id; a legal label value.
    pub sentinel_id: Arc<str>,
    /// Container image reference.
    pub image: String,
    /// Pods wanted.
    pub replicas: u32,
    /// CPU limit in thousandths of a core, > 0.
    pub cpu_millicores: u64,
    /// Memory limit in MiB, > 0.
    pub memory_mib: u64,
    /// Who wants it.
    pub origin: Origin,
}

impl WantedKind for DesiredSentinel {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn id(&self) -> &Arc<str> {
        &self.sentinel_id
    }

    fn member(&self) -> Member {
        Member::tenant(
            Arc::clone(&self.workspace_id),
            Arc::clone(&self.environment_id),
        )
    }

    fn origin(&self) -> Origin {
        self.origin
    }

    fn replicas(&self) -> Option<u32> {
        Some(self.replicas)
    }

    fn reference(&self) -> ObjectRef {
        self.part(Resource::Deployment, "")
    }

    fn render(&self, rules: &Rules, live: Option<&LiveObject>, keep: Keep) -> Rendered {
        render::render(self, rules, live, keep)
    }

    fn dependant_kinds(&self) -> &'static [Resource] {
        &companions::KINDS
    }

    fn dependants(&self, rules: &Rules, owner: &LiveObject) -> Vec<Rendered> {
        companions::companions(self, rules, owner)
    }
}

impl DesiredSentinel {
    /// One of its objects, by kind and what is added to its name.
    fn part(&self, resource: Resource, suffix: &str) -> ObjectRef {
        let ObjectKey { namespace, name } = &self.key;
        ObjectRef::new(resource, Arc::clone(namespace), format!("{name}{suffix}"))
    }
}

/// Sentinels as they are in the cluster.
pub(super) struct Live;

impl LiveKind for Live {
    fn primary(&self) -> Resource {
        Resource::Deployment
    }

    fn id_label(&self) -> &'static str {
        labels::SENTINEL_ID
    }

    fn watches(&self, _rules: &Rules) -> Vec<WatchSpec> {
        let sentinel = is(labels::COMPONENT, labels::COMPONENT_SENTINEL);
        let namespace = labels::SENTINEL_NAMESPACE;
        let ours = |resource| WatchSpec::ours(resource, &[&sentinel]).within(namespace);
        vec![
            ours(Resource::Deployment),
            ours(Resource::Service),
            ours(Resource::PodDisruptionBudget),
            ours(Resource::CiliumNetworkPolicy),
            // Pods that another agent's template made lack our label.
            WatchSpec::of(Resource::Pod, &[&sentinel]).within(namespace),
            WatchSpec::ours(Resource::Namespace, &[]),
        ]
    }

    /// Whatever its labels say: it is there.
    fn member(&self, live: &LiveObject) -> Option<Member> {
        let id = |key| live.label(key).filter(|id| !id.is_empty());
        let ids = id(labels::WORKSPACE_ID).zip(id(labels::ENVIRONMENT_ID));
        Some(ids.map_or(Member::Resident, |(workspace, environment)| {
            Member::tenant(workspace, environment)
        }))
    }

    fn workload_of(&self, live: &LiveObject) -> Option<ObjectKey> {
        companions::sentinel_of(&live.reference)
    }

    fn deleted_first(&self, key: &ObjectKey) -> Vec<ObjectRef> {
        companions::deleted_first(key)
    }

    /// Between a Deployment and its pods are ReplicaSets, which nobody needs to watch for this.
    fn owner(&self, live: &LiveObject) -> Option<Arc<str>> {
        let id = live.label(labels::SENTINEL_ID)?;
        (!id.is_empty()).then(|| id.into())
    }

    fn pod_owner(&self, pod: &PodDigest) -> Option<Arc<str>> {
        pod.sentinel_id.clone()
    }

    fn is_observed_by_status(&self) -> bool {
        true
    }

    fn is_rolled_out(&self, live: &LiveObject) -> bool {
        observe::is_rolled_out(live)
    }

    fn observe(
        &self,
        live: &LiveObject,
        pods: &[&PodDigest],
        _rules: &Rules,
    ) -> Option<Observation> {
        observe::observe(live, pods)
    }
}
