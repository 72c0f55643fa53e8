//! Cilium network policies. Nothing is reported about them.

use krane_domain::desired::Change;
use krane_domain::kinds::cilium_network_policy::{PolicyInput, validate, validate_delete};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::report::Report;
use krane_proto::ctrl::v1::{
    ApplyCiliumNetworkPolicy, CiliumNetworkPolicyState, GetDesiredCiliumNetworkPolicyStateRequest,
    RegionKey, WatchCiliumNetworkPoliciesRequest, cilium_network_policy_state,
};
use prost::{DecodeError, Message};

use super::{Kind, Named, WireRequest, named, named_key, request};

pub(super) struct Cilium;

impl Kind for Cilium {
    fn watch(&self, region: Option<RegionKey>, version_last_seen: u64) -> WireRequest {
        request(
            "WatchCiliumNetworkPolicies",
            "/ctrl.v1.ClusterService/WatchCiliumNetworkPolicies",
            &WatchCiliumNetworkPoliciesRequest {
                region,
                version_last_seen,
            },
        )
    }

    fn question(&self, region: Option<RegionKey>, id: &str) -> WireRequest {
        request(
            "GetDesiredCiliumNetworkPolicyState",
            "/ctrl.v1.ClusterService/GetDesiredCiliumNetworkPolicyState",
            &GetDesiredCiliumNetworkPolicyStateRequest {
                region,
                cilium_network_policy_id: id.to_owned(),
            },
        )
    }

    fn report(&self, _region: Option<RegionKey>, _report: &Report) -> Option<WireRequest> {
        None
    }

    fn decode(&self, message: &[u8], rules: &Rules) -> Result<(Named, u64), DecodeError> {
        let state = CiliumNetworkPolicyState::decode(message)?;
        let named = match state.state {
            Some(cilium_network_policy_state::State::Apply(apply)) => {
                let key = named_key(&apply.k8s_namespace, &apply.k8s_name);
                named(key, || {
                    let desired = validate(policy_input(apply), rules)?;
                    Ok(Change::Apply(Desired::CiliumNetworkPolicy(Box::new(
                        desired,
                    ))))
                })
            }
            Some(cilium_network_policy_state::State::Delete(delete)) => {
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

fn policy_input(message: ApplyCiliumNetworkPolicy) -> PolicyInput {
    // Every field is named, so that a new one does not compile until it is used.
    let ApplyCiliumNetworkPolicy {
        k8s_namespace,
        k8s_name,
        cilium_network_policy_id,
        policy,
    } = message;
    PolicyInput {
        k8s_namespace,
        k8s_name,
        cilium_network_policy_id,
        policy: policy.to_vec(),
    }
}
