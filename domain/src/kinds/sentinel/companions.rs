//! What stands beside the Deployment of a sentinel.
//!
//! Service and disruption budget belong to the Deployment and go with it. The gossip objects
//! select all sentinels of an environment; each sentinel brings its own pair, so that the last one
//! to go takes the last pair along (D20).

use std::sync::Arc;

use serde_json::{Value, json};

use super::template::{GOSSIP_PORT, HTTP_PORT};
use super::{DesiredSentinel, GOSSIP_SUFFIX, render};
use crate::ids::ObjectKey;
use crate::kinds::Rules;
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};

/// The kinds of what stands beside the Deployment.
pub(super) const KINDS: [Resource; 3] = [
    Resource::Service,
    Resource::PodDisruptionBudget,
    Resource::CiliumNetworkPolicy,
];

/// Everything beside the live Deployment, in the order in which it is applied.
pub(super) fn companions(
    desired: &DesiredSentinel,
    _rules: &Rules,
    owner: &LiveObject,
) -> Vec<Rendered> {
    vec![
        service(desired, owner),
        disruption_budget(desired, owner),
        gossip_service(desired),
        gossip_policy(desired),
    ]
}

/// The sentinel that an object is made for, by the object's name.
pub(super) fn sentinel_of(reference: &ObjectRef) -> Option<ObjectKey> {
    let key = reference.key();
    let gossip = key.name.strip_suffix(GOSSIP_SUFFIX);
    let name = match (reference.resource, gossip) {
        (Resource::Service | Resource::CiliumNetworkPolicy, Some(name)) => name,
        (Resource::Service | Resource::PodDisruptionBudget, None) => &key.name,
        _ => return None,
    };
    Some(ObjectKey::new(Arc::clone(&key.namespace), name))
}

/// What is deleted before the Deployment, in order.
pub(super) fn deleted_first(key: &ObjectKey) -> Vec<ObjectRef> {
    let part = |resource, suffix: &str| {
        let name = format!("{}{suffix}", key.name);
        ObjectRef::new(resource, Arc::clone(&key.namespace), name)
    };
    vec![
        part(Resource::Service, GOSSIP_SUFFIX),
        part(Resource::CiliumNetworkPolicy, GOSSIP_SUFFIX),
        part(Resource::Service, ""),
        part(Resource::PodDisruptionBudget, ""),
    ]
}

fn service(desired: &DesiredSentinel, owner: &LiveObject) -> Rendered {
    owned(
        desired,
        Resource::Service,
        owner,
        &json!({
            "type": "ClusterIP",
            "selector": pods_of(desired),
            "ports": [{ "port": HTTP_PORT, "targetPort": HTTP_PORT, "protocol": "TCP" }],
        }),
    )
}

/// At least one pod stays when a node is drained, and one that crashes stops no drain (D19).
fn disruption_budget(desired: &DesiredSentinel, owner: &LiveObject) -> Rendered {
    let mut spec = json!({
        "selector": { "matchLabels": pods_of(desired) },
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    });
    let rule = if desired.replicas <= 1 {
        "minAvailable"
    } else {
        "maxUnavailable"
    };
    spec[rule] = Value::from(1);
    owned(desired, Resource::PodDisruptionBudget, owner, &spec)
}

fn gossip_service(desired: &DesiredSentinel) -> Rendered {
    let port = |name: &str, protocol: &str| {
        json!({
            "name": name,
            "port": GOSSIP_PORT,
            "targetPort": GOSSIP_PORT,
            "protocol": protocol,
        })
    };
    gossip(
        desired,
        Resource::Service,
        &json!({
            "type": "ClusterIP",
            "clusterIP": "None",
            "selector": environment(desired),
            "ports": [port("gossip-lan", "TCP"), port("gossip-lan-udp", "UDP")],
        }),
    )
}

fn gossip_policy(desired: &DesiredSentinel) -> Rendered {
    let port = |protocol: &str| json!({ "port": GOSSIP_PORT.to_string(), "protocol": protocol });
    let environment = json!({ "matchLabels": environment(desired) });
    gossip(
        desired,
        Resource::CiliumNetworkPolicy,
        &json!({
            "endpointSelector": environment,
            "ingress": [{
                "fromEndpoints": [environment],
                "toPorts": [{ "ports": [port("TCP"), port("UDP")] }],
            }],
        }),
    )
}

/// Exactly the pods of this sentinel.
fn pods_of(desired: &DesiredSentinel) -> Value {
    json!({ labels::SENTINEL_ID: &*desired.sentinel_id })
}

/// The pods of all sentinels of the environment.
fn environment(desired: &DesiredSentinel) -> Value {
    json!({
        labels::ENVIRONMENT_ID: &*desired.environment_id,
        labels::COMPONENT: labels::COMPONENT_SENTINEL,
    })
}

/// An object of the sentinel's own name that goes with its Deployment.
fn owned(
    desired: &DesiredSentinel,
    resource: Resource,
    owner: &LiveObject,
    spec: &Value,
) -> Rendered {
    let mut rendered = object(desired, resource, "", spec);
    let deployment = &owner.reference;
    rendered.body["metadata"]["ownerReferences"] = json!([{
        "apiVersion": deployment.resource.api_version(),
        "kind": deployment.resource.kind(),
        "name": &*deployment.name,
        "uid": &*owner.uid,
    }]);
    rendered
}

fn gossip(desired: &DesiredSentinel, resource: Resource, spec: &Value) -> Rendered {
    object(desired, resource, GOSSIP_SUFFIX, spec)
}

fn object(desired: &DesiredSentinel, resource: Resource, suffix: &str, spec: &Value) -> Rendered {
    let reference = desired.part(resource, suffix);
    let body = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind(),
        "metadata": render::metadata(desired, &reference.name),
        "spec": spec,
    });
    Rendered::new(reference, body)
}
