//! The era of three watches and a `RegionKey` on every request.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use krane_actors::ports::{Answer, Question};
use krane_domain::desired::{Change, Invalid, State, StreamItem};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::deployment::{
    AutoscalingInput, DeploymentInput, validate, validate_delete,
};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::report::{Instance, InstanceStatus, Report};
use krane_proto::ctrl::v1::report_deployment_status_request as report_request;
use krane_proto::ctrl::v1::report_deployment_status_request::update::instance::Status;
use krane_proto::ctrl::v1::{
    ApplyDeployment, AutoscalingPolicy, DeploymentState, EphemeralStorage,
    GetDesiredDeploymentStateRequest, HeartbeatRequest, RegionKey, ReportDeploymentStatusRequest,
    WatchDeploymentsRequest, deployment_state,
};
use prost::{DecodeError, Message};

use super::WireRequest;
use super::glimpse::glimpse;

/// No Kubernetes name is longer; what is longer names nothing, and would only fill memory.
const LONGEST_NAME: usize = 253;

/// Speaks for one region, about the objects of one controller.
#[derive(Clone, Debug)]
pub struct Wire {
    region: RegionKey,
    controller: Controller,
    rules: Arc<Rules>,
}

impl Wire {
    /// A mapping for this region and controller.
    pub fn new(
        platform: impl Into<String>,
        region: impl Into<String>,
        controller: Controller,
        rules: Arc<Rules>,
    ) -> Self {
        let region = RegionKey {
            platform: platform.into(),
            name: region.into(),
        };
        Self {
            region,
            controller,
            rules,
        }
    }

    /// Opens the stream of desired states after `cursor`.
    pub fn watch(&self, cursor: u64) -> WireRequest {
        match self.controller {
            Controller::Deployments => request(
                "WatchDeployments",
                "/ctrl.v1.ClusterService/WatchDeployments",
                &WatchDeploymentsRequest {
                    region: self.region(),
                    version_last_seen: cursor,
                },
            ),
        }
    }

    /// Asks what is wanted of one object.
    pub fn question(&self, question: &Question) -> WireRequest {
        match self.controller {
            Controller::Deployments => request(
                "GetDesiredDeploymentState",
                "/ctrl.v1.ClusterService/GetDesiredDeploymentState",
                &GetDesiredDeploymentStateRequest {
                    region: self.region(),
                    deployment_id: question.id.to_string(),
                },
            ),
        }
    }

    /// Delivers a report.
    pub fn report(&self, report: &Report) -> WireRequest {
        let change = match report {
            Report::Instances { key, instances } => {
                report_request::Change::Update(report_request::Update {
                    k8s_name: key.name.to_string(),
                    instances: instances.iter().map(instance_message).collect(),
                })
            }
            Report::Gone { key } => report_request::Change::Delete(report_request::Delete {
                k8s_name: key.name.to_string(),
            }),
        };
        request(
            "ReportDeploymentStatus",
            "/ctrl.v1.ClusterService/ReportDeploymentStatus",
            &ReportDeploymentStatusRequest {
                change: Some(change),
                region: self.region(),
            },
        )
    }

    /// Says that the region is alive.
    pub fn heartbeat(&self) -> WireRequest {
        request(
            "Heartbeat",
            "/ctrl.v1.ClusterService/Heartbeat",
            &HeartbeatRequest {
                region: self.region(),
            },
        )
    }

    /// Reads one message of the stream.
    pub fn stream_item(&self, message: &Bytes) -> StreamItem {
        let size = message.len();
        let (named, version) = self.read(message);
        match named {
            Named::Object { key, change } => StreamItem::State(State {
                key,
                version,
                change,
                size,
            }),
            Named::Nothing(reason) => StreamItem::Unnamed { version, reason },
        }
    }

    /// Reads the answer to a question. One that does not decode is none: unlike a state of the
    /// stream it replaces nothing.
    pub fn answer(&self, message: &Bytes) -> Answer {
        match self.decode(message) {
            Ok((Named::Object { key, change }, _)) => Answer::State { key, change },
            Ok((Named::Nothing(_), _)) => Answer::Empty,
            Err(error) => {
                let seen = glimpse(message);
                tracing::error!(
                    controller = self.controller.name(),
                    namespace = seen.namespace,
                    name = seen.name,
                    %error,
                    "an answer of the control plane does not decode and is ignored; look for a \
                     control plane that speaks another protocol than this krane"
                );
                Answer::Empty
            }
        }
    }

    fn read(&self, message: &Bytes) -> (Named, u64) {
        self.decode(message)
            .unwrap_or_else(|error| undecodable(message, &error))
    }

    fn decode(&self, message: &Bytes) -> Result<(Named, u64), DecodeError> {
        match self.controller {
            Controller::Deployments => {
                let state = DeploymentState::decode(message.clone())?;
                let version = state.version;
                Ok((self.deployment(state), version))
            }
        }
    }

    fn deployment(&self, state: DeploymentState) -> Named {
        match state.state {
            Some(deployment_state::State::Apply(apply)) => {
                let key = named_key(&apply.k8s_namespace, &apply.k8s_name);
                named(key, || {
                    let desired = validate(deployment_input(apply), &self.rules)?;
                    Ok(Change::Apply(Desired::Deployment(Box::new(desired))))
                })
            }
            Some(deployment_state::State::Delete(delete)) => {
                let key = named_key(&delete.k8s_namespace, &delete.k8s_name);
                named(key, || {
                    validate_delete(&delete.k8s_namespace, &delete.k8s_name, &self.rules)?;
                    Ok(Change::Delete)
                })
            }
            None => Named::Nothing("it holds neither apply nor delete".to_owned()),
        }
    }

    // `Some` because a message field is optional in proto3; a request never goes without it.
    #[allow(clippy::unnecessary_wraps, reason = "the type of the message field")]
    fn region(&self) -> Option<RegionKey> {
        Some(self.region.clone())
    }
}

/// A message, or as much of it as can be understood.
enum Named {
    Object {
        key: ObjectKey,
        change: Result<Change, Invalid>,
    },
    Nothing(String),
}

fn named(
    key: Result<ObjectKey, String>,
    change: impl FnOnce() -> Result<Change, Invalid>,
) -> Named {
    match key {
        Ok(key) => Named::Object {
            key,
            change: change(),
        },
        Err(reason) => Named::Nothing(reason),
    }
}

fn named_key(namespace: &str, name: &str) -> Result<ObjectKey, String> {
    for (field, value) in [("k8s_namespace", namespace), ("k8s_name", name)] {
        match value.len() {
            0 => return Err(format!("its {field} is empty")),
            1..=LONGEST_NAME => {}
            length => return Err(format!("its {field} has {length} bytes")),
        }
    }
    Ok(ObjectKey::new(namespace, name))
}

fn undecodable(message: &[u8], error: &DecodeError) -> (Named, u64) {
    let seen = glimpse(message);
    let key = match (seen.namespace, seen.name) {
        (Some(namespace), Some(name)) => named_key(namespace, name),
        _ => Err(format!("it does not decode: {error}")),
    };
    let named = named(key, || {
        Err(Invalid::new(
            "message",
            format!("does not decode ({error})"),
            "look for a control plane that speaks another protocol than this krane",
        ))
    });
    (named, seen.version)
}

fn request(method: &'static str, path: &'static str, message: &impl Message) -> WireRequest {
    WireRequest {
        method,
        path,
        body: message.encode_to_vec().into(),
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

fn deployment_input(message: ApplyDeployment) -> DeploymentInput {
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
