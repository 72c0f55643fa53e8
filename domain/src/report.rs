//! What krane tells the control plane about the cluster.

use std::sync::Arc;

use crate::ids::ObjectKey;

/// One report about one object; the newest replaces all earlier ones.
///
/// Only the name of the object goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// All instances of one workload; an empty list clears them.
    Instances {
        /// The ReplicaSet.
        key: ObjectKey,
        /// In pod-name order.
        instances: Vec<Instance>,
    },
    /// How one sentinel is.
    Health {
        /// The Deployment.
        key: ObjectKey,
        /// The control plane's id of it; never empty.
        id: Arc<str>,
        /// Pods that have been ready for long enough.
        available: u32,
        /// What that means.
        health: Health,
        /// The image all pods run; empty while a rollout is under way.
        running_image: String,
    },
    /// The object is gone.
    Gone {
        /// The object that was.
        key: ObjectKey,
        /// The control plane's id of it, where that is still known.
        id: Option<Arc<str>>,
    },
}

impl Report {
    /// The object this is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Instances { key, .. } | Self::Health { key, .. } | Self::Gone { key, .. } => key,
        }
    }

    /// Whether it says that the object is gone.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }

    /// The control plane's id of the object, where the report carries it.
    pub fn id(&self) -> Option<&Arc<str>> {
        match self {
            Self::Instances { .. } => None,
            Self::Health { id, .. } => Some(id),
            Self::Gone { id, .. } => id.as_ref(),
        }
    }

    /// Instances that take traffic, and all of them where that is known; `None` when the object is
    /// gone.
    pub fn running(&self) -> Option<(usize, Option<usize>)> {
        match self {
            Self::Instances { instances, .. } => {
                let running = instances
                    .iter()
                    .filter(|instance| instance.status == InstanceStatus::Running);
                Some((running.count(), Some(instances.len())))
            }
            Self::Health { available, .. } => {
                Some((usize::try_from(*available).unwrap_or(usize::MAX), None))
            }
            Self::Gone { .. } => None,
        }
    }
}

/// One pod as the control plane routes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The pod's name.
    pub pod: Arc<str>,
    /// Host and port.
    pub address: String,
    /// Whether traffic may go there.
    pub status: InstanceStatus,
    /// CPU limit of the first container, 0 without one.
    pub cpu_millicores: i64,
    /// Memory limit of the first container in MiB, 0 without one.
    pub memory_mib: i64,
}

/// Whether an instance takes traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStatus {
    /// It has an address and is not ready.
    Pending,
    /// It is running and ready.
    Running,
}

/// How a sentinel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// At least one pod is available.
    Healthy,
    /// Pods are wanted and none is available.
    Unhealthy,
    /// No pods are wanted.
    Paused,
}

impl Health {
    /// Name for logs and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Paused => "paused",
        }
    }
}
