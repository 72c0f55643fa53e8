//! What a call means: the same desired states as the control plane's, of another origin.

use std::fmt;
use std::sync::Arc;

use crate::desired::Change;
use crate::ids::{Controller, ObjectKey};
use crate::invalid::Invalid;
use crate::kinds::deployment::{self, DeploymentInput};
use crate::kinds::sentinel::{self, SentinelInput};
use crate::kinds::{Desired, Rules};
use crate::labels;
use crate::origin::Origin;

/// Longest readiness id, in bytes.
const LONGEST_READINESS_ID: usize = 1024;
/// What a state takes in memory beside its encrypted variables, about, in bytes.
const SIZE: usize = 512;

/// A call as decoded, before validation.
#[derive(Clone, PartialEq)]
pub enum Call {
    /// A workload exists like this.
    ApplyDeployment {
        /// Fields that the request lacks are left at their defaults.
        input: Box<DeploymentInput>,
        /// Opaque, to be told back; an empty one is none.
        readiness_id: Option<String>,
    },
    /// A workload is gone.
    DeleteDeployment {
        /// `k8s_namespace`
        namespace: String,
        /// `k8s_name`
        name: String,
    },
    /// A sentinel exists like this.
    ApplySentinel {
        /// `k8s_namespace`
        namespace: String,
        /// All other fields.
        input: Box<SentinelInput>,
    },
    /// A sentinel is gone.
    DeleteSentinel {
        /// `k8s_namespace`
        namespace: String,
        /// `k8s_name`
        name: String,
    },
}

/// What a valid call wants of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// The object.
    pub key: ObjectKey,
    /// What is wanted of it.
    pub change: Change,
    /// Size in bytes, for the bound on what is kept.
    pub size: usize,
}

impl Call {
    /// Whose business it is.
    pub const fn controller(&self) -> Controller {
        match self {
            Self::ApplyDeployment { .. } | Self::DeleteDeployment { .. } => Controller::Deployments,
            Self::ApplySentinel { .. } | Self::DeleteSentinel { .. } => Controller::Sentinels,
        }
    }

    /// What it wants, or why that can never be.
    pub fn into_wish(self, rules: &Rules) -> Result<Wish, Invalid> {
        match self {
            Self::ApplyDeployment {
                input,
                readiness_id,
            } => {
                let size = SIZE + input.encrypted_environment_variables.len();
                let mut desired = deployment::validate(*input, rules)?;
                desired.origin = Origin::Scheduler;
                desired.readiness_id = readiness(readiness_id)?;
                let key = desired.key.clone();
                let change = Change::Apply(Desired::Deployment(Box::new(desired)));
                Ok(Wish { key, change, size })
            }
            Self::DeleteDeployment { namespace, name } => {
                deployment::validate_delete(&namespace, &name, rules).map(Wish::absence)
            }
            Self::ApplySentinel { namespace, input } => {
                namespace_of_sentinels(&namespace)?;
                let mut desired = sentinel::validate(*input, rules)?;
                desired.origin = Origin::Scheduler;
                let key = desired.key.clone();
                let change = Change::Apply(Desired::Sentinel(Box::new(desired)));
                Ok(Wish {
                    key,
                    change,
                    size: SIZE,
                })
            }
            Self::DeleteSentinel { namespace, name } => {
                namespace_of_sentinels(&namespace)?;
                sentinel::validate_delete(&name).map(Wish::absence)
            }
        }
    }
}

impl Wish {
    fn absence(key: ObjectKey) -> Self {
        Self {
            key,
            change: Change::Delete,
            size: SIZE,
        }
    }
}

fn readiness(id: Option<String>) -> Result<Option<Arc<str>>, Invalid> {
    let Some(id) = id.filter(|id| !id.is_empty()) else {
        return Ok(None);
    };
    if id.len() > LONGEST_READINESS_ID {
        return Err(Invalid::new(
            "readiness_id",
            format!("has {} bytes", id.len()),
            format!("send at most {LONGEST_READINESS_ID}"),
        ));
    }
    if id.contains(char::is_control) {
        return Err(Invalid::new(
            "readiness_id",
            "contains a control character",
            "remove it",
        ));
    }
    Ok(Some(id.into()))
}

/// States of the control plane do not name the namespace of sentinels; calls do, and there is one.
fn namespace_of_sentinels(namespace: &str) -> Result<(), Invalid> {
    if namespace == labels::SENTINEL_NAMESPACE {
        return Ok(());
    }
    Err(Invalid::new(
        "k8s_namespace",
        "is not the namespace of sentinels",
        format!("send {}", labels::SENTINEL_NAMESPACE),
    ))
}

impl fmt::Debug for Call {
    /// Leaves out everything that came from the tenant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, namespace, object) = match self {
            Self::ApplyDeployment { input, .. } => {
                ("ApplyDeployment", &input.k8s_namespace, &input.k8s_name)
            }
            Self::DeleteDeployment { namespace, name } => ("DeleteDeployment", namespace, name),
            Self::ApplySentinel { namespace, input } => {
                ("ApplySentinel", namespace, &input.k8s_name)
            }
            Self::DeleteSentinel { namespace, name } => ("DeleteSentinel", namespace, name),
        };
        f.debug_struct(name)
            .field("k8s_namespace", namespace)
            .field("k8s_name", object)
            .finish_non_exhaustive()
    }
}
