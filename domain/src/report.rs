//! What krane tells the control plane about the cluster.

use std::sync::Arc;

use crate::ids::ObjectKey;

/// One report about one object; the newest replaces all earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// All instances of one workload; an empty list clears them.
    Instances {
        /// The ReplicaSet. Only its name goes over the wire.
        key: ObjectKey,
        /// In pod-name order.
        instances: Vec<Instance>,
    },
    /// The workload is gone.
    Gone {
        /// The ReplicaSet that was. Only its name goes over the wire.
        key: ObjectKey,
    },
}

impl Report {
    /// The object this is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Instances { key, .. } | Self::Gone { key } => key,
        }
    }

    /// Instances that run, and all of them; `None` when the workload is gone.
    pub fn running(&self) -> Option<(usize, usize)> {
        match self {
            Self::Instances { instances, .. } => {
                let running = instances
                    .iter()
                    .filter(|instance| instance.status == InstanceStatus::Running);
                Some((running.count(), instances.len()))
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
