//! What the three kinds of desired state have instead of each other.

use krane_domain::desired::Change;
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::invalid::Invalid;
use krane_domain::kinds::cilium_network_policy::{self, PolicyInput};
use krane_domain::kinds::deployment::{self, DeploymentInput};
use krane_domain::kinds::sentinel::{self, SentinelInput};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::report::{Health, Instance, InstanceStatus, Report};
use krane_proto::ctrl::v1::{CiliumNetworkPolicyState, DeploymentState, SentinelState};
use krane_sim::control_plane::{self as server, Kind, Method, samples};

const NAMESPACE: &str = "ws";

/// What is wanted of an object differs in this word: the image, or what a policy says of itself.
pub(super) fn word(change: Result<&Change, &Invalid>) -> String {
    match change {
        Ok(Change::Apply(Desired::Deployment(desired))) => desired.image.clone(),
        Ok(Change::Apply(Desired::Sentinel(desired))) => desired.image.clone(),
        Ok(Change::Apply(Desired::CiliumNetworkPolicy(desired))) => {
            let text = desired.body["spec"]["description"].as_str();
            text.expect("a description").to_owned()
        }
        other => panic!("not wanted: {other:?}"),
    }
}

pub(super) fn key(of: Controller, name: &str) -> ObjectKey {
    let namespace = match of {
        Controller::Deployments | Controller::Cilium => NAMESPACE,
        Controller::Sentinels => "sentinel",
    };
    ObjectKey::new(namespace, name)
}

pub(super) fn id(of: Controller, name: &str) -> String {
    match of {
        Controller::Deployments => samples::deployment(NAMESPACE, name).deployment_id,
        Controller::Sentinels => samples::sentinel(name).sentinel_id,
        Controller::Cilium => samples::policy(NAMESPACE, name).cilium_network_policy_id,
    }
}

/// A policy that says this of itself; one that is called an image is none.
fn policy(word: &str) -> Vec<u8> {
    if word == super::BAD {
        return b"no policy".to_vec();
    }
    let text = serde_json::json!({"spec": {
        "description": word, "endpointSelector": {}, "ingress": [],
    }});
    text.to_string().into_bytes()
}

pub(super) fn desired(of: Controller, name: &str, word: &str) -> Result<Desired, Invalid> {
    let rules = Rules::default();
    match of {
        Controller::Deployments => {
            let message = samples::deployment(NAMESPACE, name);
            let input = DeploymentInput {
                k8s_namespace: message.k8s_namespace,
                k8s_name: message.k8s_name,
                workspace_id: message.workspace_id,
                project_id: message.project_id,
                environment_id: message.environment_id,
                deployment_id: message.deployment_id,
                app_id: message.app_id,
                image: word.to_owned(),
                replicas: message.replicas,
                cpu_millicores: message.cpu_millicores,
                memory_mib: message.memory_mib,
                port: message.port,
                ..DeploymentInput::default()
            };
            deployment::validate(input, &rules)
                .map(|desired| Desired::Deployment(Box::new(desired)))
        }
        Controller::Sentinels => {
            let message = samples::sentinel(name);
            let input = SentinelInput {
                k8s_name: message.k8s_name,
                workspace_id: message.workspace_id,
                project_id: message.project_id,
                app_id: message.app_id,
                environment_id: message.environment_id,
                sentinel_id: message.sentinel_id,
                image: word.to_owned(),
                replicas: message.replicas,
                cpu_millicores: message.cpu_millicores,
                memory_mib: message.memory_mib,
            };
            sentinel::validate(input, &rules).map(|desired| Desired::Sentinel(Box::new(desired)))
        }
        Controller::Cilium => {
            let message = samples::policy(NAMESPACE, name);
            let input = PolicyInput {
                k8s_namespace: message.k8s_namespace,
                k8s_name: message.k8s_name,
                cilium_network_policy_id: message.cilium_network_policy_id,
                policy: policy(word),
            };
            let desired = cilium_network_policy::validate(input, &rules);
            desired.map(|desired| Desired::CiliumNetworkPolicy(Box::new(desired)))
        }
    }
}

/// The field that a bad state is bad for.
pub(super) const fn bad_field(of: Controller) -> &'static str {
    match of {
        Controller::Deployments | Controller::Sentinels => "image",
        Controller::Cilium => "policy",
    }
}

pub(super) const fn kind(of: Controller) -> Kind {
    match of {
        Controller::Deployments => Kind::Deployments,
        Controller::Sentinels => Kind::Sentinels,
        Controller::Cilium => Kind::Policies,
    }
}

pub(super) fn report_method(of: Controller) -> Method {
    match of {
        Controller::Deployments => Method::ReportDeployment,
        Controller::Sentinels => Method::ReportSentinel,
        Controller::Cilium => panic!("nothing is reported about policies"),
    }
}

/// What the server sends of an object.
pub(super) fn push(server: &server::ControlPlane, of: Controller, name: &str, word: &str) {
    match of {
        Controller::Deployments => {
            let mut message = samples::deployment(NAMESPACE, name);
            word.clone_into(&mut message.image);
            server.push(samples::apply(message));
        }
        Controller::Sentinels => {
            let mut message = samples::sentinel(name);
            word.clone_into(&mut message.image);
            server.push(samples::apply_sentinel(message));
        }
        Controller::Cilium => {
            let mut message = samples::policy(NAMESPACE, name);
            message.policy = policy(word).into();
            server.push(samples::apply_policy(message));
        }
    }
}

pub(super) fn push_delete(server: &server::ControlPlane, of: Controller, name: &str) {
    match of {
        Controller::Deployments => {
            server.push(samples::delete(&samples::deployment(NAMESPACE, name)));
        }
        Controller::Sentinels => {
            server.push(samples::delete_sentinel(name));
        }
        Controller::Cilium => {
            server.push(samples::delete_policy(NAMESPACE, name));
        }
    }
}

/// A version, and no case.
pub(super) fn push_garbage(server: &server::ControlPlane, of: Controller) {
    match of {
        Controller::Deployments => server.push(DeploymentState::default()),
        Controller::Sentinels => server.push(SentinelState::default()),
        Controller::Cilium => server.push(CiliumNetworkPolicyState::default()),
    };
}

/// Reports that are told apart on the other side.
pub(super) fn reports(of: Controller) -> Vec<Report> {
    let key = key(of, "app");
    match of {
        Controller::Deployments => vec![
            Report::Instances {
                key: key.clone(),
                instances: vec![Instance {
                    pod: "app-x7".into(),
                    address: "10-0-0-1.ws.pod.cluster.local:8080".to_owned(),
                    status: InstanceStatus::Running,
                    cpu_millicores: 250,
                    memory_mib: 256,
                }],
            },
            Report::Gone { key, id: None },
        ],
        Controller::Sentinels => {
            let id: std::sync::Arc<str> = id(of, "app").into();
            let health = |available, health, image: &str| Report::Health {
                key: key.clone(),
                id: id.clone(),
                available,
                health,
                running_image: image.to_owned(),
            };
            vec![
                health(2, Health::Healthy, "image:1"),
                health(0, Health::Paused, ""),
                Report::Gone {
                    key: key.clone(),
                    id: Some(id.clone()),
                },
            ]
        }
        Controller::Cilium => Vec::new(),
    }
}

/// A report off the wire, in the domain's words. The wire carries no namespace.
pub(super) fn report_of(report: &server::Report) -> Report {
    match report {
        server::Report::Update { name, instances } => Report::Instances {
            key: key(Controller::Deployments, name),
            instances: instances.iter().map(instance_of).collect(),
        },
        server::Report::Deleted { name } => Report::Gone {
            key: key(Controller::Deployments, name),
            id: None,
        },
        server::Report::Sentinel(message) => {
            let key = key(Controller::Sentinels, &message.k8s_name);
            let id = message.sentinel_id.as_str().into();
            let health = match message.health() {
                krane_proto::ctrl::v1::Health::Healthy => Health::Healthy,
                krane_proto::ctrl::v1::Health::Paused => Health::Paused,
                // One that is gone is said to be like this.
                krane_proto::ctrl::v1::Health::Unhealthy => {
                    return Report::Gone { key, id: Some(id) };
                }
                krane_proto::ctrl::v1::Health::Unspecified => panic!("krane never says so"),
            };
            Report::Health {
                key,
                id,
                available: u32::try_from(message.available_replicas).unwrap(),
                health,
                running_image: message.running_image.clone(),
            }
        }
        server::Report::Neither => panic!("no report: {report:?}"),
    }
}

fn instance_of(instance: &server::Instance) -> Instance {
    Instance {
        pod: instance.k8s_name.as_str().into(),
        address: instance.address.clone(),
        status: match instance.status() {
            server::Status::Running => InstanceStatus::Running,
            server::Status::Pending => InstanceStatus::Pending,
            other @ (server::Status::Unspecified | server::Status::Failed) => {
                panic!("krane never says {other:?}")
            }
        },
        cpu_millicores: instance.cpu_millicores,
        memory_mib: instance.memory_mib,
    }
}
