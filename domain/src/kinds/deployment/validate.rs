//! Which deployments can be applied at all.
//!
//! Everything that the API server would refuse for ever is caught here, with the field and the
//! remedy named, before anything is written.

mod numbers;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(super) use numbers::DEFAULT_PORT;

use super::healthcheck::{self, Parsed};
use super::{DeploymentInput, DesiredDeployment, ShutdownSignal};
use crate::ids::ObjectKey;
use crate::invalid::Invalid;
use crate::kinds::{Rules, validation};
use crate::labels;
use crate::origin::Origin;

/// Largest encrypted variables, in bytes: as base64 they must fit into an object of etcd's size.
const MAX_ENCRYPTED_BYTES: usize = 1 << 20;

/// Turns a message into a workload, or says why it can never be one.
///
/// The first failing check wins; the order is that of the fields of the message, then names
/// (D15), labels, numbers, content.
pub fn validate(input: DeploymentInput, rules: &Rules) -> Result<DesiredDeployment, Invalid> {
    validation::required([
        ("workspace_id", &*input.workspace_id),
        ("project_id", &input.project_id),
        ("environment_id", &input.environment_id),
        ("deployment_id", &input.deployment_id),
        ("k8s_namespace", &input.k8s_namespace),
        ("k8s_name", &input.k8s_name),
        ("image", &input.image),
    ])?;
    let key = validate_delete(&input.k8s_namespace, &input.k8s_name, rules)?;
    let build_id = input.build_id.unwrap_or_default();
    let label = |field, value: String| validation::label_value(field, value).map(Arc::<str>::from);
    let mut warnings = Vec::new();
    let port = numbers::port(input.port)?;
    Ok(DesiredDeployment {
        workspace_id: label("workspace_id", input.workspace_id)?,
        project_id: label("project_id", input.project_id)?,
        app_id: label("app_id", input.app_id)?,
        environment_id: label("environment_id", input.environment_id)?,
        deployment_id: label("deployment_id", input.deployment_id)?,
        build_id: label("build_id", build_id)?,
        image: validation::image(input.image)?,
        replicas: validation::replicas(input.replicas, rules)?,
        autoscaling: numbers::autoscaling(input.autoscaling, rules)?,
        cpu_millicores: validation::cpu_millicores(input.cpu_millicores)?,
        memory_mib: validation::memory_mib(input.memory_mib)?,
        ephemeral_storage_mib: input
            .ephemeral_storage_mib
            .map(numbers::ephemeral_storage_mib)
            .transpose()?,
        command: command(input.command)?,
        port,
        shutdown_signal: shutdown_signal(&input.shutdown_signal)?,
        healthcheck: match healthcheck::parse(input.healthcheck.as_deref().unwrap_or_default())? {
            Parsed::None => None,
            Parsed::Probe(probe) => Some(probe),
            Parsed::Unreadable(warning) => {
                warnings.push(warning);
                None
            }
        },
        encrypted_environment_variables: encrypted(input.encrypted_environment_variables)?,
        descriptive_variables: [
            ("UNKEY_ENVIRONMENT_SLUG", input.environment_slug),
            ("UNKEY_REGION", input.region),
            ("UNKEY_GIT_COMMIT_SHA", input.git_commit_sha),
            ("UNKEY_GIT_BRANCH", input.git_branch),
            ("UNKEY_GIT_REPO", input.git_repo),
            ("UNKEY_GIT_COMMIT_MESSAGE", input.git_commit_message),
        ]
        .into_iter()
        // No process can be started with a NUL in a variable; the rest of the text still informs.
        .filter_map(|(name, value)| Some((name, value?.replace('\0', ""))))
        .collect(),
        origin: Origin::ControlPlane,
        readiness_id: None,
        warnings,
        key,
    })
}

/// The object a delete state names, or why it names none.
pub fn validate_delete(namespace: &str, name: &str, rules: &Rules) -> Result<ObjectKey, Invalid> {
    validation::workload_namespace(namespace, rules)?;
    validation::dns_label("k8s_name", name)?;
    if namespace == labels::SENTINEL_NAMESPACE {
        return Err(Invalid::new(
            "k8s_namespace",
            format!("\"{namespace}\" is reserved for sentinels"),
            "use a namespace of the workspace",
        ));
    }
    Ok(ObjectKey::new(namespace, name))
}

fn command(command: Vec<String>) -> Result<Vec<String>, Invalid> {
    if command.iter().any(|argument| argument.contains('\0')) {
        return Err(Invalid::new(
            "command",
            "contains a NUL character",
            "remove it",
        ));
    }
    Ok(command)
}

fn shutdown_signal(signal: &str) -> Result<Option<ShutdownSignal>, Invalid> {
    match signal {
        "" | "SIGTERM" => Ok(None),
        "SIGINT" => Ok(Some(ShutdownSignal::Interrupt)),
        "SIGQUIT" => Ok(Some(ShutdownSignal::Quit)),
        "SIGKILL" => Ok(Some(ShutdownSignal::Kill)),
        other => Err(Invalid::new(
            "shutdown_signal",
            format!("{} is not supported", validation::quoted(other)),
            "send SIGTERM, SIGINT, SIGQUIT, SIGKILL or nothing",
        )),
    }
}

fn encrypted(blob: Vec<u8>) -> Result<Vec<u8>, Invalid> {
    if blob.len() > MAX_ENCRYPTED_BYTES {
        return Err(Invalid::new(
            "encrypted_environment_variables",
            format!("has {} bytes, more than {MAX_ENCRYPTED_BYTES}", blob.len()),
            "set fewer or smaller variables",
        ));
    }
    Ok(blob)
}
