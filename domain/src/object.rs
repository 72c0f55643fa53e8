//! Kubernetes objects as krane sees them: what it renders and what is live.

mod decode;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use decode::Undecodable;
pub(crate) use decode::conceal;
use serde_json::Value;

use crate::ids::ObjectKey;
use crate::labels;

/// The kinds of objects krane reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// `v1/Namespace`
    Namespace,
    /// `cilium.io/v2/CiliumNetworkPolicy`
    CiliumNetworkPolicy,
    /// `v1/Secret`; only the registry pull secret
    Secret,
    /// `apps/v1/ReplicaSet`
    ReplicaSet,
    /// `apps/v1/Deployment`; only sentinels
    Deployment,
    /// `v1/Service`; only of sentinels
    Service,
    /// `policy/v1/PodDisruptionBudget`; only of sentinels
    PodDisruptionBudget,
    /// `autoscaling/v2/HorizontalPodAutoscaler`
    HorizontalPodAutoscaler,
    /// `v1/Pod`; only read
    Pod,
}

impl Resource {
    /// API group, empty for the core group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Namespace | Self::Secret | Self::Service | Self::Pod => "",
            Self::CiliumNetworkPolicy => "cilium.io",
            Self::ReplicaSet | Self::Deployment => "apps",
            Self::PodDisruptionBudget => "policy",
            Self::HorizontalPodAutoscaler => "autoscaling",
        }
    }

    /// API version within the group.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Namespace
            | Self::Secret
            | Self::Pod
            | Self::ReplicaSet
            | Self::Deployment
            | Self::Service
            | Self::PodDisruptionBudget => "v1",
            Self::CiliumNetworkPolicy | Self::HorizontalPodAutoscaler => "v2",
        }
    }

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }

    /// The kind, as in `kind:` of a manifest.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::CiliumNetworkPolicy => "CiliumNetworkPolicy",
            Self::Secret => "Secret",
            Self::ReplicaSet => "ReplicaSet",
            Self::Deployment => "Deployment",
            Self::Service => "Service",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::HorizontalPodAutoscaler => "HorizontalPodAutoscaler",
            Self::Pod => "Pod",
        }
    }

    /// The plural used in URLs; also the closed set of values of the metric label `resource`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::CiliumNetworkPolicy => "ciliumnetworkpolicies",
            Self::Secret => "secrets",
            Self::ReplicaSet => "replicasets",
            Self::Deployment => "deployments",
            Self::Service => "services",
            Self::PodDisruptionBudget => "poddisruptionbudgets",
            Self::HorizontalPodAutoscaler => "horizontalpodautoscalers",
            Self::Pod => "pods",
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Self::Namespace)
    }
}

/// One object of the cluster, by kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The object's kind.
    pub resource: Resource,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// A reference of these parts; the namespace is dropped for cluster-scoped kinds.
    pub fn new(
        resource: Resource,
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        let namespace = if resource.is_namespaced() {
            namespace.into()
        } else {
            Arc::from("")
        };
        Self {
            resource,
            namespace,
            name: name.into(),
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: Arc::clone(&self.namespace),
            name: Arc::clone(&self.name),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.resource.kind();
        if self.namespace.is_empty() {
            write!(f, "{kind} {}", self.name)
        } else {
            write!(f, "{kind} {}/{}", self.namespace, self.name)
        }
    }
}

/// An object as krane wants it: the body of a server-side apply, without uid or resourceVersion.
///
/// Bodies hold no nulls, no empty keyed lists and no duplicate list keys (measured: all three
/// make an apply differ for ever or fail).
#[derive(Clone, PartialEq)]
pub struct Rendered {
    /// Which object this is.
    pub reference: ObjectRef,
    /// The manifest.
    pub body: Value,
    /// The live version that went into the body, when one did: the apply may meet no other, or it
    /// would undo what happened since. Absent for a body that stands for itself.
    pub made_for: Option<u64>,
    /// Whether a pod template in it is not what this krane renders, but kept as it runs until its
    /// turn to roll comes (D44).
    pub keeps_template: bool,
}

impl Rendered {
    /// A manifest that does not depend on what is live.
    pub fn new(reference: ObjectRef, body: Value) -> Self {
        Self {
            reference,
            body,
            made_for: None,
            keeps_template: false,
        }
    }
}

impl fmt::Debug for Rendered {
    /// Names the object only: a body holds encrypted variables and registry credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rendered")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}

/// An object that exists, cut down to what krane compares and reports.
#[derive(Clone, PartialEq)]
pub struct LiveObject {
    /// Which object this is.
    pub reference: ObjectRef,
    /// `metadata.uid`; another object of the same name has another one.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`; orders two views of one object.
    pub resource_version: u64,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_terminating: bool,
    /// Changes exactly when something other than status, resourceVersion and generation changes.
    pub fingerprint: u64,
    /// The object as compact JSON text: managedFields of subresources and noise are cut out.
    pub content: Box<str>,
}

impl LiveObject {
    /// The object as a JSON tree. Costs a parse; keep the result no longer than needed.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.content).unwrap_or(Value::Null)
    }

    /// Whether the object carries krane's label; objects without it are never written.
    pub fn is_ours(&self) -> bool {
        self.label(labels::MANAGED_BY) == Some(labels::MANAGER)
    }

    /// Whether the object with this uid is among its owners. Costs a parse.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        let content = self.value();
        let owners = content.pointer("/metadata/ownerReferences");
        let mut owners = owners.and_then(Value::as_array).into_iter().flatten();
        owners.any(|owner| owner["uid"] == uid)
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

impl fmt::Debug for LiveObject {
    /// Names the object only: its content may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveObject")
            .field("reference", &self.reference)
            .field("uid", &self.uid)
            .field("resource_version", &self.resource_version)
            .finish_non_exhaustive()
    }
}

/// Labels and identity of an object, from a metadata-only read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_terminating: bool,
}

impl Metadata {
    /// Whether the object carries krane's label.
    pub fn is_ours(&self) -> bool {
        self.labels
            .get(labels::MANAGED_BY)
            .is_some_and(|value| value == labels::MANAGER)
    }
}
