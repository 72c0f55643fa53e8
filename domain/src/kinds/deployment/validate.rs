//! Which deployments can be applied at all.

use super::{DeploymentInput, DesiredDeployment};
use crate::desired::Invalid;
use crate::ids::ObjectKey;
use crate::kinds::Rules;

/// Turns a message into a workload, or says why it can never be one.
pub fn validate(input: DeploymentInput, _rules: &Rules) -> Result<DesiredDeployment, Invalid> {
    Err(Invalid::new(
        "image",
        format!("\"{}\" is not supported", input.image),
        "send another",
    ))
}

/// The object a delete state names, or why it names none.
pub fn validate_delete(namespace: &str, name: &str) -> Result<ObjectKey, Invalid> {
    if name.is_empty() {
        return Err(Invalid::new(
            "k8s_name",
            "is empty",
            "send the name of a ReplicaSet",
        ));
    }
    Ok(ObjectKey::new(namespace, name))
}
