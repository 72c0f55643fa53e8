//! Pods cut down to what a report needs.

mod decode;
#[cfg(test)]
mod tests;

use std::sync::Arc;

/// About 200 bytes of a pod; krane keeps no pod objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodDigest {
    /// The pod's namespace.
    pub namespace: Arc<str>,
    /// The pod's name.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`; orders two views of one pod.
    pub resource_version: u64,
    /// `metadata.creationTimestamp`, in seconds since the Unix epoch; 0 when unreadable.
    pub created_at: u64,
    /// UID of the controlling owner, if there is one.
    pub owner: Option<Arc<str>>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// Ready and ContainersReady are both `True`.
    pub is_ready: bool,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_terminating: bool,
    /// `status.podIP`, if assigned.
    pub ip: Option<Arc<str>>,
    /// CPU limit of the first container, 0 without one.
    pub cpu_millicores: i64,
    /// Memory limit of the first container in MiB, truncated, 0 without one.
    pub memory_mib: i64,
    /// The annotation [`crate::labels::TEMPLATE_ANNOTATION`].
    pub template: Option<Arc<str>>,
    /// The label [`crate::labels::SENTINEL_ID`].
    pub sentinel_id: Option<Arc<str>>,
    /// Why a container cannot be made from what the pod names, in the kubelet's words: a missing
    /// Secret, for example.
    pub config_error: Option<Arc<str>>,
}

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// Accepted, not all containers started.
    Pending,
    /// Bound to a node, at least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, one of them badly.
    Failed,
    /// Not known to the node, or not known to krane.
    Unknown,
}
