//! What krane tells the control plane about the cluster.

use std::fmt;
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

    /// The same object without anything that runs.
    #[must_use]
    pub fn emptied(&self) -> Self {
        match self {
            Self::Instances { key, .. } => Self::Instances {
                key: key.clone(),
                instances: Vec::new(),
            },
            Self::Health {
                key,
                id,
                health: Health::Healthy | Health::Unhealthy,
                ..
            } => Self::Health {
                key: key.clone(),
                id: Arc::clone(id),
                available: 0,
                health: Health::Unhealthy,
                running_image: String::new(),
            },
            // Of one that is paused nothing ran.
            Self::Health {
                health: Health::Paused,
                ..
            }
            | Self::Gone { .. } => self.clone(),
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

    /// What it comes to.
    pub fn gist(&self) -> Gist {
        match self {
            Self::Instances { instances, .. } => {
                let running = instances
                    .iter()
                    .filter(|instance| instance.status == InstanceStatus::Running);
                Gist::Instances {
                    running: running.count(),
                    all: instances.len(),
                }
            }
            Self::Health {
                available, health, ..
            } => Gist::Health {
                available: *available,
                health: *health,
            },
            Self::Gone { .. } => Gist::Gone,
        }
    }
}

/// A report in a word or two: what people read where it is told that it was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gist {
    /// So many instances.
    Instances {
        /// Those that take traffic.
        running: usize,
        /// All of them.
        all: usize,
    },
    /// How a sentinel is.
    Health {
        /// Pods that have been ready for long enough.
        available: u32,
        /// What that means.
        health: Health,
    },
    /// Nothing any more.
    Gone,
}

impl fmt::Display for Gist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instances { all: 0, .. } => f.write_str("without instances"),
            Self::Instances { running, all } => write!(f, "{running} of {all} running"),
            Self::Health { available, health } => {
                write!(f, "{}, {available} available", health.name())
            }
            Self::Gone => f.write_str("gone"),
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
