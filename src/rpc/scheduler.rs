//! The messages of `krane.v1.SchedulerService` and what they mean, and who may send them (D32).
//!
//! Every field is named, so that a new one does not compile until somebody decided where it goes.

#[cfg(test)]
mod tests;

use http::HeaderValue;
use krane_domain::kinds::deployment::DeploymentInput;
use krane_domain::kinds::sentinel::SentinelInput;
use krane_domain::report::{Instance, InstanceStatus};
use krane_domain::scheduler::{Call, Watched};
use krane_proto::krane::v1::state::deployment::Instance as InstanceMessage;
use krane_proto::krane::v1::state::deployment::instance::Status;
use krane_proto::krane::v1::state::{Deployment, Sentinel, State as Case};
use krane_proto::krane::v1::{
    ApplyDeploymentRequest, ApplySentinelRequest, DeleteDeploymentRequest, DeleteSentinelRequest,
    State,
};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// Whether a request brings the token as `Authorization: Bearer`. Without a token (`scheduler.token`
/// empty) none does. How long it takes does not tell how much of a guess was right.
pub fn is_authorized(authorization: Option<&HeaderValue>, token: Option<&SecretString>) -> bool {
    let (Some(authorization), Some(token)) = (authorization, token) else {
        return false;
    };
    let token = token.expose_secret().as_bytes();
    let given = bearer(authorization.as_bytes());
    !token.is_empty() && given.is_some_and(|given| given.ct_eq(token).into())
}

/// The token of a header; the scheme's name may be written as one likes.
fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = authorization.split_at_checked(SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii())
}

/// What `ApplyDeployment` asks for.
pub fn apply_deployment(request: ApplyDeploymentRequest) -> Call {
    let ApplyDeploymentRequest {
        k8s_namespace,
        k8s_name,
        workspace_id,
        project_id,
        environment_id,
        deployment_id,
        image,
        replicas,
        cpu_millicores,
        memory_mib,
        build_id,
        encrypted_environment_variables,
        readiness_id,
    } = request;
    Call::ApplyDeployment {
        input: Box::new(DeploymentInput {
            k8s_namespace,
            k8s_name,
            workspace_id,
            project_id,
            environment_id,
            deployment_id,
            image,
            replicas,
            cpu_millicores,
            memory_mib,
            build_id,
            encrypted_environment_variables: encrypted_environment_variables.into(),
            ..DeploymentInput::default()
        }),
        readiness_id,
    }
}

/// What `DeleteDeployment` asks for.
pub fn delete_deployment(request: DeleteDeploymentRequest) -> Call {
    let DeleteDeploymentRequest {
        k8s_namespace,
        k8s_name,
    } = request;
    Call::DeleteDeployment {
        namespace: k8s_namespace,
        name: k8s_name,
    }
}

/// What `ApplySentinel` asks for.
pub fn apply_sentinel(request: ApplySentinelRequest) -> Call {
    let ApplySentinelRequest {
        k8s_namespace,
        k8s_name,
        workspace_id,
        project_id,
        environment_id,
        sentinel_id,
        image,
        replicas,
        cpu_millicores,
        memory_mib,
    } = request;
    Call::ApplySentinel {
        namespace: k8s_namespace,
        input: Box::new(SentinelInput {
            k8s_name,
            workspace_id,
            project_id,
            app_id: String::new(),
            environment_id,
            sentinel_id,
            image,
            replicas,
            cpu_millicores,
            memory_mib,
        }),
    }
}

/// What `DeleteSentinel` asks for.
pub fn delete_sentinel(request: DeleteSentinelRequest) -> Call {
    let DeleteSentinelRequest {
        k8s_namespace,
        k8s_name,
    } = request;
    Call::DeleteSentinel {
        namespace: k8s_namespace,
        name: k8s_name,
    }
}

/// What `Watch` says of an object. Only its name goes over the wire.
pub fn state(watched: &Watched) -> State {
    let case = match watched {
        Watched::Deployment {
            key,
            instances,
            readiness_id,
        } => Case::Deployment(Deployment {
            deployment_k8s_name: key.name.to_string(),
            instances: instances.iter().map(instance).collect(),
            readiness_id: readiness_id.as_deref().map(str::to_owned),
        }),
        Watched::Sentinel { key, available } => Case::Sentinel(Sentinel {
            k8s_name: key.name.to_string(),
            available_replicas: i32::try_from(*available).unwrap_or(i32::MAX),
        }),
    };
    State { state: Some(case) }
}

fn instance(instance: &Instance) -> InstanceMessage {
    let status = match instance.status {
        InstanceStatus::Pending => Status::Pending,
        InstanceStatus::Running => Status::Running,
    };
    InstanceMessage {
        instance_k8s_name: instance.pod.to_string(),
        address: instance.address.clone(),
        cpu_millicores: instance.cpu_millicores,
        memory_mib: instance.memory_mib,
        status: status.into(),
    }
}
