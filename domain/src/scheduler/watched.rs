//! What the scheduler is told of the cluster.

use std::sync::Arc;

use serde::Deserialize;

use crate::ids::{Controller, ObjectKey};
use crate::lenient::{Struct, Text};
use crate::object::LiveObject;
use crate::report::{Instance, Report};

/// One object as it is; the newest replaces all earlier ones. Only its name goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A workload.
    Deployment {
        /// Its ReplicaSet.
        key: ObjectKey,
        /// In pod-name order; none once the workload is gone.
        instances: Vec<Instance>,
        /// What the call that made it named.
        readiness_id: Option<Arc<str>>,
    },
    /// A sentinel.
    Sentinel {
        /// Its Deployment.
        key: ObjectKey,
        /// Pods that have been ready for long enough; none once the sentinel is gone.
        available: u32,
    },
}

impl Watched {
    /// What is to be told of a live object with this report; nothing of what is gone.
    pub fn of(report: &Report, live: &LiveObject) -> Option<Self> {
        Some(match report {
            Report::Instances { key, instances } => Self::Deployment {
                key: key.clone(),
                instances: instances.clone(),
                readiness_id: readiness_id(live),
            },
            Report::Health { key, available, .. } => Self::Sentinel {
                key: key.clone(),
                available: *available,
            },
            Report::Gone { .. } => return None,
        })
    }

    /// What is to be told of an object that is gone; nothing of what is never told.
    pub fn gone(controller: Controller, key: &ObjectKey) -> Option<Self> {
        let key = key.clone();
        match controller {
            Controller::Deployments => Some(Self::Deployment {
                key,
                instances: Vec::new(),
                readiness_id: None,
            }),
            Controller::Sentinels => Some(Self::Sentinel { key, available: 0 }),
            Controller::Cilium => None,
        }
    }

    /// The object.
    pub const fn key(&self) -> &ObjectKey {
        match self {
            Self::Deployment { key, .. } | Self::Sentinel { key, .. } => key,
        }
    }
}

/// What the call that made a live workload named, read without building its tree.
pub fn readiness_id(live: &LiveObject) -> Option<Arc<str>> {
    let Struct(object) =
        serde_json::from_str::<Struct<Object<'_>>>(&live.content).unwrap_or_default();
    object.metadata.0.annotations.0.readiness_id.non_empty()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Struct<Metadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    annotations: Struct<Annotations<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations<'a> {
    #[serde(borrow, rename = "unkey.com/readiness.id")]
    readiness_id: Text<'a>,
}
