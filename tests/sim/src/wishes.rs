//! Objects that are wanted again and again, each time differently: which round is live can be seen.

use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::cilium_network_policy::{self, PolicyInput};
use krane_domain::kinds::deployment::{self, DeploymentInput};
use krane_domain::kinds::sentinel::{self, SentinelInput};
use krane_domain::kinds::{Desired, Rules};
#[cfg(debug_assertions)]
use krane_domain::object::LiveObject;
use krane_sim::control_plane::SimControlPlane;
use serde_json::{Value, json};

/// Wants an object of this name, different in every round. Its key.
pub(crate) fn want(
    who: Controller,
    control: &SimControlPlane,
    name: &str,
    round: u64,
) -> ObjectKey {
    let rules = Rules::default();
    let round = round.to_string();
    let desired = match who {
        Controller::Deployments => deployment::validate(
            DeploymentInput {
                k8s_namespace: "work".to_owned(),
                k8s_name: name.to_owned(),
                workspace_id: "ws_1".to_owned(),
                project_id: "proj_1".to_owned(),
                environment_id: "env_1".to_owned(),
                deployment_id: format!("d_{name}"),
                image: "app:1".to_owned(),
                cpu_millicores: 100,
                memory_mib: 64,
                build_id: Some(round),
                ..DeploymentInput::default()
            },
            &rules,
        )
        .map(|desired| Desired::Deployment(Box::new(desired))),
        Controller::Sentinels => sentinel::validate(
            SentinelInput {
                k8s_name: name.to_owned(),
                workspace_id: "ws_1".to_owned(),
                project_id: round,
                environment_id: "env_1".to_owned(),
                sentinel_id: format!("s_{name}"),
                image: "sentinel:1".to_owned(),
                cpu_millicores: 100,
                memory_mib: 64,
                ..SentinelInput::default()
            },
            &rules,
        )
        .map(|desired| Desired::Sentinel(Box::new(desired))),
        Controller::Cilium => cilium_network_policy::validate(
            PolicyInput {
                k8s_namespace: "work".to_owned(),
                k8s_name: name.to_owned(),
                cilium_network_policy_id: format!("net_{name}"),
                policy: json!({
                    "metadata": { "annotations": { "round": round } },
                    "spec": { "endpointSelector": {}, "ingress": [{ "fromEndpoints": [{}] }] },
                })
                .to_string()
                .into_bytes(),
            },
            &rules,
        )
        .map(|desired| Desired::CiliumNetworkPolicy(Box::new(desired))),
    };
    match desired {
        Ok(desired) => {
            let key = desired.key().clone();
            control.apply(desired);
            key
        }
        Err(invalid) => unreachable!("{invalid}"),
    }
}

/// From which round a live object is.
#[cfg(debug_assertions)]
pub(crate) fn round_of(who: Controller, live: &LiveObject) -> Option<u64> {
    round_in(who, &live.value())
}

/// From which round an object is, the whole one or as it is rendered. What hangs on one that is
/// wanted has its round, too.
pub(crate) fn round_in(who: Controller, object: &Value) -> Option<u64> {
    let (kind, key) = match who {
        Controller::Deployments => ("labels", "unkey.com/build.id"),
        Controller::Sentinels => ("labels", "unkey.com/project.id"),
        Controller::Cilium => ("annotations", "round"),
    };
    object["metadata"][kind][key].as_str()?.parse().ok()
}
