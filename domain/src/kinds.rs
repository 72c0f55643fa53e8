//! The kinds of desired state: one folder each, one variant each.
//!
//! Actors handle [`Desired`] without looking into it; everything that differs between kinds is
//! a function here.

pub mod deployment;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use rules::{Password, PullSecret, ReportAddress, Rules};

use crate::desired::Invalid;
use crate::ids::{Controller, ObjectKey, SharedKey};
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::pod::PodDigest;
use crate::report::Report;

/// Value of [`labels::RENDERER_ANNOTATION`]: raised whenever the same state renders differently.
pub const RENDERER: &str = "1";

/// A validated desired state of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Desired {
    /// A customer workload.
    Deployment(Box<deployment::DesiredDeployment>),
}

impl Desired {
    /// The object the state is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Deployment(desired) => &desired.key,
        }
    }

    /// The control plane's id of it.
    pub fn id(&self) -> &Arc<str> {
        match self {
            Self::Deployment(desired) => &desired.deployment_id,
        }
    }

    /// Pods wanted; with autoscaling at least that many.
    pub fn replicas(&self) -> u32 {
        match self {
            Self::Deployment(desired) => desired
                .autoscaling
                .map_or(desired.replicas, |policy| policy.min_replicas),
        }
    }

    /// The shared objects that must be in place before the workload is written (D14).
    ///
    /// The isolation policy is always among them; see [`can_do_without`].
    pub fn needs(&self, rules: &Rules) -> Vec<SharedKey> {
        match self {
            Self::Deployment(desired) => {
                shared_keys(&desired.key.namespace, &desired.member(), rules)
            }
        }
    }

    /// Which object the primary one is.
    pub fn reference(&self) -> ObjectRef {
        match self {
            Self::Deployment(desired) => desired.reference(),
        }
    }

    /// The primary object, given what is live in its place.
    pub fn render(&self, rules: &Rules, live: Option<&LiveObject>) -> Rendered {
        match self {
            Self::Deployment(desired) => deployment::render(desired, rules, live),
        }
    }

    /// The objects that hang on the live primary one, in the order in which they are applied.
    pub fn dependants(&self, owner: &LiveObject) -> Vec<Rendered> {
        match self {
            Self::Deployment(desired) => deployment::dependants(desired, owner),
        }
    }

    /// What may hang on the primary object because an earlier state needed it, and this one does
    /// not.
    pub fn unneeded(&self) -> Vec<ObjectRef> {
        match self {
            Self::Deployment(desired) => deployment::unneeded(desired),
        }
    }

    /// What it contributes to the shared objects of its namespace.
    pub fn member(&self) -> Member {
        match self {
            Self::Deployment(desired) => desired.member(),
        }
    }

    /// What was wrong with the message without making it invalid.
    pub fn warnings(&self) -> &[Invalid] {
        match self {
            Self::Deployment(desired) => &desired.warnings,
        }
    }
}

/// What one workload, wanted or live, contributes to the shared objects of its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The workspace whose sentinels may reach it.
    pub workspace_id: Arc<str>,
    /// The environment whose sentinels may reach it.
    pub environment_id: Arc<str>,
    /// The port they reach.
    pub port: u16,
}

/// The shared objects that a member of this namespace is part of.
pub fn shared_keys(namespace: &Arc<str>, member: &Member, rules: &Rules) -> Vec<SharedKey> {
    let mut keys = vec![
        SharedKey::Namespace(Arc::clone(namespace)),
        SharedKey::IsolationPolicy {
            namespace: Arc::clone(namespace),
            environment: Arc::clone(&member.environment_id),
        },
    ];
    if rules.pull_secret.is_some() {
        keys.push(SharedKey::PullSecret(Arc::clone(namespace)));
    }
    keys
}

/// What a live workload contributes; `None` when its labels name no workspace or environment.
pub fn member_of_live(live: &LiveObject) -> Option<Member> {
    match live.reference.resource {
        Resource::ReplicaSet => deployment::member_of_live(live),
        Resource::Namespace
        | Resource::CiliumNetworkPolicy
        | Resource::Secret
        | Resource::HorizontalPodAutoscaler
        | Resource::Pod => None,
    }
}

/// The workload that a live object hangs on, by its name; `None` for what belongs to none.
pub fn workload_of_dependant(live: &LiveObject) -> Option<ObjectKey> {
    match live.reference.resource {
        Resource::HorizontalPodAutoscaler => Some(live.reference.key()),
        Resource::ReplicaSet
        | Resource::Namespace
        | Resource::CiliumNetworkPolicy
        | Resource::Secret
        | Resource::Pod => None,
    }
}

/// Which object a shared key stands for, members or not.
pub fn shared_reference(key: &SharedKey) -> ObjectRef {
    deployment::shared_reference(key)
}

/// A shared object rendered from all its members; `None` when there is nothing to render: no
/// member is left, or no registry is configured.
///
/// Members are those of the key: of the namespace, and for a policy of its environment.
pub fn render_shared(key: &SharedKey, members: &[Member], rules: &Rules) -> Option<Rendered> {
    deployment::render_shared(key, members, rules)
}

/// Whether workloads may run without this object when the cluster does not know its kind (D18).
pub fn can_do_without(key: &SharedKey, rules: &Rules) -> bool {
    match key {
        SharedKey::IsolationPolicy { .. } => !rules.is_cilium_required,
        SharedKey::Namespace(_) | SharedKey::PullSecret(_) => false,
    }
}

/// Whether a live isolation policy lets through all that is wanted, and more.
pub fn only_loses_ports(rendered: &Rendered, live: &LiveObject) -> bool {
    deployment::only_loses_ports(rendered, live)
}

/// The shared key that a live namespace, isolation policy or pull secret belongs to.
pub fn shared_key_of(live: &LiveObject) -> Option<SharedKey> {
    deployment::shared_key_of(live)
}

impl Controller {
    /// The kind of the objects the control plane speaks about.
    pub const fn primary(self) -> Resource {
        match self {
            Self::Deployments => Resource::ReplicaSet,
        }
    }

    /// Everything the controller lists and watches, its primary kind first.
    pub fn watches(self, rules: &Rules) -> Vec<WatchSpec> {
        match self {
            Self::Deployments => deployment::watches(rules),
        }
    }

    /// Whether the control plane takes reports about these objects.
    pub const fn has_reports(self) -> bool {
        match self {
            Self::Deployments => true,
        }
    }
}

/// The control-plane id of a live object; `None` when its label is absent or empty, and then
/// nobody is asked or told about the object (D15).
pub fn question_id(controller: Controller, live: &LiveObject) -> Option<Arc<str>> {
    let label = match controller {
        Controller::Deployments => labels::DEPLOYMENT_ID,
    };
    live.label(label).filter(|id| !id.is_empty()).map(Arc::from)
}

/// What the pods of a live object say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What the control plane is to be told.
    pub report: Report,
    /// Living pods made from another template than the live one (D16).
    pub outdated: usize,
    /// Instances that take traffic.
    pub running: usize,
}

/// What to report about a live object with these pods. Pods of other owners are left out (D23).
pub fn observe(
    controller: Controller,
    live: &LiveObject,
    pods: &[&PodDigest],
    rules: &Rules,
) -> Observation {
    match controller {
        Controller::Deployments => deployment::observe(live, pods, rules),
    }
}

/// The pod of a live object to replace next, if any (D16).
pub fn outdated_pod<'a>(
    controller: Controller,
    live: &LiveObject,
    pods: &[&'a PodDigest],
    unix_seconds: u64,
) -> Option<&'a PodDigest> {
    match controller {
        Controller::Deployments => deployment::outdated_pod(live, pods, unix_seconds),
    }
}

/// What a controller watches: one list and watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSpec {
    /// The kind of objects.
    pub resource: Resource,
    /// Restrict to one namespace; all when absent.
    pub namespace: Option<&'static str>,
    /// Label selector, empty for none.
    pub label_selector: String,
    /// Field selector, empty for none.
    pub field_selector: String,
}

impl WatchSpec {
    /// Whether an object with these labels is shown. Knows the terms that are used: `key=value`
    /// and `!key`.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut terms = self
            .label_selector
            .split(',')
            .filter(|term| !term.is_empty());
        terms.all(
            |term| match (term.strip_prefix('!'), term.split_once('=')) {
                (Some(key), _) => !labels.contains_key(key),
                (None, Some((key, value))) => labels.get(key).is_some_and(|live| live == value),
                (None, None) => labels.contains_key(term),
            },
        )
    }
}
