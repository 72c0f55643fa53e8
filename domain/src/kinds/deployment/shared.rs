//! What workloads share: namespace, isolation policy, pull secret.

use serde_json::json;

use crate::canonical;
use crate::ids::SharedKey;
use crate::kinds::{Member, Rules, WatchSpec};
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};

/// Which object a shared key stands for.
pub(crate) fn shared_reference(key: &SharedKey) -> ObjectRef {
    match key {
        SharedKey::Namespace(name) => ObjectRef::new(Resource::Namespace, "", name.clone()),
        SharedKey::IsolationPolicy {
            namespace,
            environment,
        } => ObjectRef::new(
            Resource::CiliumNetworkPolicy,
            namespace.clone(),
            policy_name(environment),
        ),
        SharedKey::PullSecret(namespace) => ObjectRef::new(
            Resource::Secret,
            namespace.clone(),
            labels::PULL_SECRET_NAME,
        ),
    }
}

/// Name of the isolation policy of an environment (D18).
pub(crate) fn policy_name(environment: &str) -> String {
    let readable = environment.to_lowercase().replace('_', "-");
    format!(
        "allow-sentinel-ingress-{readable}-{}",
        canonical::hex_of_text(environment, 8)
    )
}

/// A shared object from all its members.
pub(crate) fn render_shared(
    key: &SharedKey,
    members: &[Member],
    _rules: &Rules,
) -> Option<Rendered> {
    members.first()?;
    let reference = shared_reference(key);
    let body = json!({ "metadata": { "name": &*reference.name } });
    Some(Rendered { reference, body })
}

/// The shared key a live object belongs to.
pub(crate) fn shared_key_of(live: &LiveObject) -> Option<SharedKey> {
    let reference = &live.reference;
    match reference.resource {
        Resource::Namespace => Some(SharedKey::Namespace(reference.name.clone())),
        Resource::Secret => Some(SharedKey::PullSecret(reference.namespace.clone())),
        Resource::CiliumNetworkPolicy | Resource::ReplicaSet | Resource::Pod => None,
    }
}

/// What the deployments controller lists and watches.
pub(crate) fn watches(rules: &Rules) -> Vec<WatchSpec> {
    let spec = |resource, selector: &[(&str, Option<&str>)], field: &str| WatchSpec {
        resource,
        namespace: None,
        label_selector: selector
            .iter()
            .map(|(key, value)| match value {
                Some(value) => format!("{key}={value}"),
                None => format!("!{key}"),
            })
            .collect::<Vec<_>>()
            .join(","),
        field_selector: field.to_owned(),
    };
    let ours = (labels::MANAGED_BY, Some(labels::MANAGER));
    let component = |value| (labels::COMPONENT, Some(value));
    let workload = [ours, component(labels::COMPONENT_DEPLOYMENT)];
    let mut watches = vec![
        spec(Resource::ReplicaSet, &workload, ""),
        spec(Resource::Pod, &workload, ""),
        spec(Resource::Namespace, &[ours], ""),
        spec(
            Resource::CiliumNetworkPolicy,
            &[
                ours,
                component(labels::COMPONENT_POLICY),
                (labels::NETWORK_POLICY_ID, None),
            ],
            "",
        ),
    ];
    if rules.pull_secret.is_some() {
        let name = format!("metadata.name={}", labels::PULL_SECRET_NAME);
        watches.push(spec(Resource::Secret, &[], &name));
    }
    watches
}
