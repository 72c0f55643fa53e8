//! What workloads share: namespace, isolation policy, pull secret.

mod narrower;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::canonical;
use crate::ids::SharedKey;
use crate::kinds::{PullSecret, RENDERER, Rules};
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::origin::Origin;

pub use narrower::only_loses_ports;

/// Most ports Cilium takes in one entry of `toPorts`.
const PORTS_PER_ENTRY: usize = 40;

/// How the name of every isolation policy begins (D18).
pub(super) const POLICY_PREFIX: &str = "allow-sentinel-ingress-";

/// What one workload, wanted or live, contributes to the shared objects of its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// Only that it lives there.
    Resident,
    /// Also that its environment belongs to its workspace.
    Tenant(Tenant),
    /// Also to the isolation policy of its environment, and it pulls from the registry.
    Isolated(Isolated),
}

/// Whose a workload is, and by whose word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant {
    /// Its workspace.
    pub workspace_id: Arc<str>,
    /// Its environment.
    pub environment_id: Arc<str>,
    /// Who wants the workload.
    pub origin: Origin,
}

/// A workload that only the sentinels of its workspace and environment may reach.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isolated {
    /// Whose sentinels may reach it.
    pub tenant: Tenant,
    /// The port they reach.
    pub port: u16,
}

impl Member {
    /// A workload of the control plane's in this environment of a workspace.
    pub fn tenant(workspace_id: impl Into<Arc<str>>, environment_id: impl Into<Arc<str>>) -> Self {
        Self::Tenant(Tenant {
            workspace_id: workspace_id.into(),
            environment_id: environment_id.into(),
            origin: Origin::ControlPlane,
        })
    }

    /// An isolated workload of the control plane's.
    pub fn isolated(
        workspace_id: impl Into<Arc<str>>,
        environment_id: impl Into<Arc<str>>,
        port: u16,
    ) -> Self {
        Self::Isolated(Isolated {
            tenant: Tenant {
                workspace_id: workspace_id.into(),
                environment_id: environment_id.into(),
                origin: Origin::ControlPlane,
            },
            port,
        })
    }

    /// The same, wanted by this one.
    #[must_use]
    pub fn of(mut self, origin: Origin) -> Self {
        match &mut self {
            Self::Resident => {}
            Self::Tenant(tenant) | Self::Isolated(Isolated { tenant, .. }) => {
                tenant.origin = origin;
            }
        }
        self
    }

    /// Whose it is, if that matters to others.
    pub const fn whose(&self) -> Option<&Tenant> {
        match self {
            Self::Resident => None,
            Self::Tenant(tenant) | Self::Isolated(Isolated { tenant, .. }) => Some(tenant),
        }
    }

    /// The environment whose isolation policy it is part of.
    pub const fn policy_environment(&self) -> Option<&Arc<str>> {
        match self {
            Self::Resident | Self::Tenant(_) => None,
            Self::Isolated(isolated) => Some(&isolated.tenant.environment_id),
        }
    }
}

/// The shared objects that a member of this namespace is part of.
pub fn shared_keys(namespace: &Arc<str>, member: &Member, rules: &Rules) -> Vec<SharedKey> {
    let mut keys = vec![SharedKey::Namespace(Arc::clone(namespace))];
    if let Member::Isolated(isolated) = member {
        keys.push(SharedKey::IsolationPolicy {
            namespace: Arc::clone(namespace),
            environment: Arc::clone(&isolated.tenant.environment_id),
        });
        if rules.pull_secret.is_some() {
            keys.push(SharedKey::PullSecret(Arc::clone(namespace)));
        }
    }
    keys
}

/// Whether workloads may run without this object when the cluster does not know its kind (D18).
pub fn can_do_without(key: &SharedKey, rules: &Rules) -> bool {
    may_lack(shared_reference(key).resource, rules)
}

/// Whether objects of this kind beside a workload may be missing where the cluster does not know
/// the kind (D18).
pub const fn may_lack(resource: Resource, rules: &Rules) -> bool {
    matches!(resource, Resource::CiliumNetworkPolicy) && !rules.is_cilium_required
}

/// Which object a shared key stands for, members or not.
pub fn shared_reference(key: &SharedKey) -> ObjectRef {
    match key {
        SharedKey::Namespace(name) => ObjectRef::new(Resource::Namespace, "", Arc::clone(name)),
        SharedKey::IsolationPolicy {
            namespace,
            environment,
        } => ObjectRef::new(
            Resource::CiliumNetworkPolicy,
            Arc::clone(namespace),
            policy_name(environment),
        ),
        SharedKey::PullSecret(namespace) => ObjectRef::new(
            Resource::Secret,
            Arc::clone(namespace),
            labels::PULL_SECRET_NAME,
        ),
    }
}

/// Name of the isolation policy of an environment (D18).
///
/// The hash keeps environments apart whose ids differ only in case or punctuation.
pub(crate) fn policy_name(environment: &str) -> String {
    let lower = environment.to_lowercase().replace('_', "-");
    // A dot between letters is legal in the name of an object, next to a dash it is not.
    let is_legal = lower
        .split('.')
        .all(|part| !part.is_empty() && !part.starts_with('-') && !part.ends_with('-'));
    let readable = if is_legal {
        lower
    } else {
        lower.replace('.', "-")
    };
    format!(
        "{POLICY_PREFIX}{readable}-{}",
        canonical::hex_of_text(environment, 8)
    )
}

/// A shared object rendered from all its members; `None` when there is nothing to render: no
/// member is left, or no registry is configured.
///
/// Members are those of the key: of the namespace, and for a policy of its environment.
pub fn render_shared(key: &SharedKey, members: &[Member], rules: &Rules) -> Option<Rendered> {
    members.first()?;
    let reference = shared_reference(key);
    let body = match key {
        SharedKey::Namespace(_) => namespace(&reference),
        SharedKey::IsolationPolicy { environment, .. } => {
            isolation_policy(&reference, environment, members)
        }
        SharedKey::PullSecret(_) => pull_secret(&reference, rules.pull_secret.as_ref()?),
    };
    Some(Rendered::new(reference, body))
}

fn namespace(reference: &ObjectRef) -> Value {
    json!({
        "apiVersion": reference.resource.api_version(),
        "kind": reference.resource.kind(),
        "metadata": {
            "name": &*reference.name,
            "labels": {
                labels::MANAGED_BY: labels::MANAGER,
                labels::COMPONENT: labels::COMPONENT_NAMESPACE,
            },
            "annotations": { labels::RENDERER_ANNOTATION: RENDERER },
        },
    })
}

/// Only sentinels of the same workspace and environment reach the workloads, on their ports.
///
/// An environment belongs to one workspace. Should states ever name several, each workspace's
/// sentinels get a rule of their own, with that workspace's ports. Calls add no workspace to those
/// of the control plane (D32).
fn isolation_policy(reference: &ObjectRef, environment: &str, members: &[Member]) -> Value {
    let of_states = workspaces_of_states(members);
    let mut ports: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
    for member in members {
        if let Member::Isolated(Isolated { tenant, port }) = member
            && (of_states.is_empty() || of_states.contains(&tenant.workspace_id))
        {
            let ports = ports.entry(&tenant.workspace_id).or_default();
            ports.insert(*port);
        }
    }
    let workspaces: Vec<&str> = ports.keys().copied().collect();
    let workspace = workspaces.first().copied().unwrap_or_default();
    let ingress: Vec<Value> = ports
        .iter()
        .map(|(id, ports)| rule(id, environment, ports))
        .collect();
    json!({
        "apiVersion": reference.resource.api_version(),
        "kind": reference.resource.kind(),
        "metadata": {
            "name": &*reference.name,
            "namespace": &*reference.namespace,
            "labels": {
                labels::MANAGED_BY: labels::MANAGER,
                labels::COMPONENT: labels::COMPONENT_POLICY,
                labels::WORKSPACE_ID: workspace,
                labels::ENVIRONMENT_ID: environment,
            },
            "annotations": { labels::RENDERER_ANNOTATION: RENDERER },
        },
        "spec": {
            "description": format!(
                "Deployments of workspace {}, environment {environment}: only their own sentinels \
                 may connect",
                workspaces.join(", "),
            ),
            "endpointSelector": { "matchLabels": {
                labels::MANAGED_BY: labels::MANAGER,
                labels::COMPONENT: labels::COMPONENT_DEPLOYMENT,
                labels::ENVIRONMENT_ID: environment,
            } },
            "ingress": ingress,
        },
    })
}

/// The workspaces that the control plane itself names among these members.
pub fn workspaces_of_states<'a>(
    members: impl IntoIterator<Item = &'a Member>,
) -> BTreeSet<&'a Arc<str>> {
    let tenants = members.into_iter().filter_map(Member::whose);
    let of_states = tenants.filter(|tenant| tenant.origin == Origin::ControlPlane);
    of_states.map(|tenant| &tenant.workspace_id).collect()
}

fn rule(workspace: &str, environment: &str, ports: &BTreeSet<u16>) -> Value {
    let ports: Vec<Value> = ports
        .iter()
        .map(|port| json!({ "port": port.to_string(), "protocol": "TCP" }))
        .collect();
    let entries: Vec<Value> = ports
        .chunks(PORTS_PER_ENTRY)
        .map(|ports| json!({ "ports": ports }))
        .collect();
    json!({
        "fromEndpoints": [{ "matchLabels": {
            labels::CILIUM_POD_NAMESPACE: labels::SENTINEL_NAMESPACE,
            labels::WORKSPACE_ID: workspace,
            labels::ENVIRONMENT_ID: environment,
        } }],
        "toPorts": entries,
    })
}

fn pull_secret(reference: &ObjectRef, credentials: &PullSecret) -> Value {
    let config = json!({ "auths": { credentials.url.as_str(): {
        "username": credentials.username,
        "password": credentials.password.expose(),
    } } });
    json!({
        "apiVersion": reference.resource.api_version(),
        "kind": reference.resource.kind(),
        "metadata": {
            "name": &*reference.name,
            "namespace": &*reference.namespace,
            "labels": {
                labels::MANAGED_BY: labels::MANAGER,
                labels::COMPONENT: labels::COMPONENT_PULL_SECRET,
            },
            "annotations": { labels::RENDERER_ANNOTATION: RENDERER },
        },
        "type": "kubernetes.io/dockerconfigjson",
        "data": { ".dockerconfigjson": STANDARD.encode(config.to_string()) },
    })
}

/// The shared key that a live namespace, isolation policy or pull secret belongs to; `None` for
/// what krane would not have named so.
pub fn shared_key_of(live: &LiveObject) -> Option<SharedKey> {
    let reference = &live.reference;
    let key = match reference.resource {
        Resource::Namespace => SharedKey::Namespace(Arc::clone(&reference.name)),
        Resource::Secret => SharedKey::PullSecret(Arc::clone(&reference.namespace)),
        Resource::CiliumNetworkPolicy => SharedKey::IsolationPolicy {
            namespace: Arc::clone(&reference.namespace),
            environment: environment_of_policy(live)?,
        },
        Resource::ReplicaSet
        | Resource::HorizontalPodAutoscaler
        | Resource::Deployment
        | Resource::Service
        | Resource::PodDisruptionBudget
        | Resource::Pod => return None,
    };
    (shared_reference(&key) == *reference).then_some(key)
}

/// From its label, or where somebody changed that, from its selector: the name proves it.
fn environment_of_policy(live: &LiveObject) -> Option<Arc<str>> {
    if live.label(labels::NETWORK_POLICY_ID).is_some() {
        return None;
    }
    let is_named_after = |id: &&str| policy_name(id) == *live.reference.name;
    if let Some(id) = live.label(labels::ENVIRONMENT_ID).filter(is_named_after) {
        return Some(id.into());
    }
    let value = live.value();
    let selector = value.pointer("/spec/endpointSelector/matchLabels")?;
    selector
        .get(labels::ENVIRONMENT_ID)?
        .as_str()
        .filter(is_named_after)
        .map(Arc::from)
}
