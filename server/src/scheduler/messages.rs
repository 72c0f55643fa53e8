//! The messages of the service and what they mean (D32).
//!
//! Every field is named, so that a new one does not compile until somebody decided where it goes.

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

/// What `ApplyDeployment` asks for.
pub(super) fn apply_deployment(request: ApplyDeploymentRequest) -> Call {
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
pub(super) fn delete_deployment(request: DeleteDeploymentRequest) -> Call {
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
pub(super) fn apply_sentinel(request: ApplySentinelRequest) -> Call {
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
pub(super) fn delete_sentinel(request: DeleteSentinelRequest) -> Call {
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
pub(super) fn state(watched: &Watched) -> State {
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
