//! Deployments.

use krane_domain::desired::Change;
use krane_domain::kinds::Desired;
use krane_domain::kinds::Rules;
use krane_domain::kinds::deployment::{
    AutoscalingInput, DeploymentInput, validate, validate_delete,
};
use krane_domain::report::{Instance, InstanceStatus, Report};
use krane_proto::ctrl::v1::report_deployment_status_request::update::instance::Status;
use krane_proto::ctrl::v1::report_deployment_status_request::{
    self as report_request, Change as Said,
};
use krane_proto::ctrl::v1::{
    ApplyDeployment, AutoscalingPolicy, DeploymentState, EphemeralStorage,
    GetDesiredDeploymentStateRequest, RegionKey, ReportDeploymentStatusRequest,
    WatchDeploymentsRequest, deployment_state,
};
use prost::{DecodeError, Message};

use super::{Kind, Named, WireRequest, named, named_key, request};

pub(super) struct Deployments;

impl Kind for Deployments {
    fn watch(&self, region: Option<RegionKey>, version_last_seen: u64) -> WireRequest {
        request(
            "WatchDeployments",
            "/ctrl.v1.ClusterService/WatchDeployments",
            &WatchDeploymentsRequest {
                region,
                version_last_seen,
            },
        )
    }

    fn question(&self, region: Option<RegionKey>, id: &str) -> WireRequest {
        request(
            "GetDesiredDeploymentState",
            "/ctrl.v1.ClusterService/GetDesiredDeploymentState",
            &GetDesiredDeploymentStateRequest {
                region,
                deployment_id: id.to_owned(),
            },
        )
    }

    fn report(&self, region: Option<RegionKey>, report: &Report) -> Option<WireRequest> {
        let change = match report {
            Report::Instances { key, instances } => Said::Update(report_request::Update {
                k8s_name: key.name.to_string(),
                instances: instances.iter().map(instance_message).collect(),
            }),
            Report::Gone { key, .. } => Said::Delete(report_request::Delete {
                k8s_name: key.name.to_string(),
            }),
            Report::Health { .. } => return None,
        };
        Some(request(
            "ReportDeploymentStatus",
            "/ctrl.v1.ClusterService/ReportDeploymentStatus",
            &ReportDeploymentStatusRequest {
                change: Some(change),
                region,
            },
        ))
    }

    fn decode(&self, message: &[u8], rules: &Rules) -> Result<(Named, u64), DecodeError> {
        let state = DeploymentState::decode(message)?;
        let named = match state.state {
            Some(deployment_state::State::Apply(apply)) => {
                let key = named_key(&apply.k8s_namespace, &apply.k8s_name);
                named(key, || {
                    let desired = validate(deployment_input(apply), rules)?;
                    Ok(Change::Apply(Desired::Deployment(Box::new(desired))))
                })
            }
            Some(deployment_state::State::Delete(delete)) => {
                let key = named_key(&delete.k8s_namespace, &delete.k8s_name);
                named(key, || {
                    validate_delete(&delete.k8s_namespace, &delete.k8s_name, rules)?;
                    Ok(Change::Delete)
                })
            }
            None => Named::NOTHING_SAID,
        };
        Ok((named, state.version))
    }
}

fn instance_message(instance: &Instance) -> report_request::update::Instance {
    let status = match instance.status {
        InstanceStatus::Pending => Status::Pending,
        InstanceStatus::Running => Status::Running,
    };
    report_request::update::Instance {
        k8s_name: instance.pod.to_string(),
        address: instance.address.clone(),
        cpu_millicores: instance.cpu_millicores,
        memory_mib: instance.memory_mib,
        status: status.into(),
    }
}

pub(super) fn deployment_input(message: ApplyDeployment) -> DeploymentInput {
    // Every field is named, so that a new one does not compile until it is used.
    let ApplyDeployment {
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
        command,
        port,
        shutdown_signal,
        healthcheck,
        app_id,
        environment_slug,
        region,
        git_commit_sha,
        git_branch,
        git_repo,
        git_commit_message,
        autoscaling,
        ephemeral_storage,
    } = message;
    DeploymentInput {
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
        encrypted_environment_variables: encrypted_environment_variables.to_vec(),
        command,
        port,
        shutdown_signal,
        healthcheck: healthcheck.map(|json| json.to_vec()),
        app_id,
        environment_slug,
        region,
        git_commit_sha,
        git_branch,
        git_repo,
        git_commit_message,
        autoscaling: autoscaling.map(autoscaling_input),
        ephemeral_storage_mib: ephemeral_storage.map(|EphemeralStorage { size_mib }| size_mib),
    }
}

fn autoscaling_input(policy: AutoscalingPolicy) -> AutoscalingInput {
    let AutoscalingPolicy {
        min_replicas,
        max_replicas,
        cpu_threshold,
        memory_threshold,
    } = policy;
    AutoscalingInput {
        min_replicas,
        max_replicas,
        cpu_threshold,
        memory_threshold,
    }
}
