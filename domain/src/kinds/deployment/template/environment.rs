//! The variables a workload starts with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::SCRATCH_PATH;
use crate::kinds::deployment::DesiredDeployment;
use crate::variables::{DESCRIPTIVE, ENCRYPTED, EPHEMERAL_DISK_PATH};

/// All variables, each name once, in a fixed order.
pub(super) fn variables(desired: &DesiredDeployment) -> Vec<Value> {
    let mut variables = vec![
        variable("PORT", &desired.port.to_string()),
        variable("UNKEY_WORKSPACE_ID", &desired.workspace_id),
        variable("UNKEY_PROJECT_ID", &desired.project_id),
        variable("UNKEY_ENVIRONMENT_ID", &desired.environment_id),
        variable("UNKEY_DEPLOYMENT_ID", &desired.deployment_id),
    ];
    let encrypted = &desired.encrypted_environment_variables;
    if !encrypted.is_empty() {
        variables.push(variable(ENCRYPTED, &STANDARD.encode(encrypted)));
    }
    for name in DESCRIPTIVE {
        if let Some(value) = desired.descriptive_variables.get(name) {
            variables.push(variable(name, value));
        }
    }
    variables.push(json!({
        "name": "UNKEY_INSTANCE_ID",
        // With the default spelled out: the reference is one value, and whoever else applies it as
        // it is stored would take it from krane.
        "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } },
    }));
    if desired.ephemeral_storage_mib.is_some() {
        variables.push(variable(EPHEMERAL_DISK_PATH, SCRATCH_PATH));
    }
    variables
}

/// A variable whose value reaches the process as it is: the kubelet turns `$$` into `$` and
/// expands `$(NAME)` otherwise (D17).
fn variable(name: &str, value: &str) -> Value {
    if value.is_empty() {
        // The API server drops an empty value; so nothing is sent that could differ.
        return json!({ "name": name });
    }
    json!({ "name": name, "value": value.replace('$', "$$") })
}
