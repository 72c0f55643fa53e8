//! Network policies as the control plane writes them: what they say is its business, what they are
//! called, where they are and whose they are is krane's.

#[cfg(test)]
mod fuzz;
mod render;
#[cfg(test)]
mod tests;
mod validate;

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
pub use validate::{validate, validate_delete};

use super::watches::is;
use super::{Keep, LiveKind, Member, Rules, WantedKind, WatchSpec};
use crate::ids::ObjectKey;
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};

/// The fields of an `ApplyCiliumNetworkPolicy` message as decoded, before validation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyInput {
    /// Field 1.
    pub k8s_namespace: String,
    /// Field 2.
    pub k8s_name: String,
    /// Field 3.
    pub cilium_network_policy_id: String,
    /// Field 4, JSON of the whole object.
    pub policy: Vec<u8>,
}

/// A policy that passed validation.
#[derive(Clone, PartialEq)]
pub struct DesiredPolicy {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// The control plane's id of it; a legal label value.
    pub policy_id: Arc<str>,
    /// Its annotations.
    pub annotations: Map<String, Value>,
    /// Everything but identity, metadata and status: `spec` or `specs`, and what the API server may
    /// refuse.
    pub body: Map<String, Value>,
}

impl fmt::Debug for DesiredPolicy {
    /// Names it only: a policy is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DesiredPolicy")
            .field("key", &self.key)
            .field("policy_id", &self.policy_id)
            .finish_non_exhaustive()
    }
}

impl WantedKind for DesiredPolicy {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn id(&self) -> &Arc<str> {
        &self.policy_id
    }

    fn member(&self) -> Member {
        Member::Resident
    }

    fn reference(&self) -> ObjectRef {
        ObjectRef::new(
            Resource::CiliumNetworkPolicy,
            Arc::clone(&self.key.namespace),
            Arc::clone(&self.key.name),
        )
    }

    fn render(&self, _rules: &Rules, _live: Option<&LiveObject>, _keep: Keep) -> Rendered {
        render::render(self)
    }
}

/// Policies as they are in the cluster.
pub(super) struct Live;

impl LiveKind for Live {
    fn primary(&self) -> Resource {
        Resource::CiliumNetworkPolicy
    }

    fn id_label(&self) -> &'static str {
        labels::NETWORK_POLICY_ID
    }

    fn watches(&self, _rules: &Rules) -> Vec<WatchSpec> {
        let policy = is(labels::COMPONENT, labels::COMPONENT_POLICY);
        let terms = [&*policy, labels::NETWORK_POLICY_ID];
        vec![
            WatchSpec::ours(Resource::CiliumNetworkPolicy, &terms),
            WatchSpec::ours(Resource::Namespace, &[]),
        ]
    }

    fn member(&self, _live: &LiveObject) -> Option<Member> {
        Some(Member::Resident)
    }
}
