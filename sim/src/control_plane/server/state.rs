//! The three kinds of desired state, as far as a store has to understand them.

use krane_proto::ctrl::v1::{
    CiliumNetworkPolicyState, DeploymentState, SentinelState, cilium_network_policy_state,
    deployment_state, sentinel_state,
};
use prost::Message;

use super::Kind;

/// A message of a desired-state stream.
pub trait State: Message + Clone + Default + 'static {
    /// The stream it belongs to.
    const KIND: Kind;

    /// Its version, 0 when it has none.
    fn version(&self) -> u64;

    /// Gives it a version.
    fn set_version(&mut self, version: u64);

    /// The object it names: what two states of one object have in common.
    fn key(&self) -> Option<String>;

    /// The id by which krane asks for it. A delete has none.
    fn id(&self) -> Option<&str>;
}

impl State for DeploymentState {
    const KIND: Kind = Kind::Deployments;

    fn version(&self) -> u64 {
        self.version
    }

    fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    fn key(&self) -> Option<String> {
        use deployment_state::State::{Apply, Delete};
        self.state.as_ref().map(|state| match state {
            Apply(apply) => format!("{}/{}", apply.k8s_namespace, apply.k8s_name),
            Delete(delete) => format!("{}/{}", delete.k8s_namespace, delete.k8s_name),
        })
    }

    fn id(&self) -> Option<&str> {
        match self.state.as_ref()? {
            deployment_state::State::Apply(apply) => Some(&apply.deployment_id),
            deployment_state::State::Delete(_) => None,
        }
    }
}

impl State for SentinelState {
    const KIND: Kind = Kind::Sentinels;

    fn version(&self) -> u64 {
        self.version
    }

    fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    fn key(&self) -> Option<String> {
        use sentinel_state::State::{Apply, Delete};
        self.state.as_ref().map(|state| match state {
            Apply(apply) => apply.k8s_name.clone(),
            Delete(delete) => delete.k8s_name.clone(),
        })
    }

    fn id(&self) -> Option<&str> {
        match self.state.as_ref()? {
            sentinel_state::State::Apply(apply) => Some(&apply.sentinel_id),
            sentinel_state::State::Delete(_) => None,
        }
    }
}

impl State for CiliumNetworkPolicyState {
    const KIND: Kind = Kind::Policies;

    fn version(&self) -> u64 {
        self.version
    }

    fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    fn key(&self) -> Option<String> {
        use cilium_network_policy_state::State::{Apply, Delete};
        self.state.as_ref().map(|state| match state {
            Apply(apply) => format!("{}/{}", apply.k8s_namespace, apply.k8s_name),
            Delete(delete) => format!("{}/{}", delete.k8s_namespace, delete.k8s_name),
        })
    }

    fn id(&self) -> Option<&str> {
        match self.state.as_ref()? {
            cilium_network_policy_state::State::Apply(apply) => {
                Some(&apply.cilium_network_policy_id)
            }
            cilium_network_policy_state::State::Delete(_) => None,
        }
    }
}
