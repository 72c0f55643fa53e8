//! Which object belongs to which controller. The names of the script tell.

use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::labels;
use krane_domain::object::{ObjectRef, Resource};

/// How the name of a sentinel begins.
pub(crate) const SENTINEL: &str = "sen-";
/// How the name of a policy of the control plane begins.
pub(crate) const POLICY: &str = "pol-";
/// How the names of gossip objects end.
const GOSSIP: &str = "-gossip-lan";

/// Whose control plane speaks of an object.
pub(crate) fn controller_of(key: &ObjectKey) -> Controller {
    if key.name.starts_with(SENTINEL) {
        Controller::Sentinels
    } else if key.name.starts_with(POLICY) {
        Controller::Cilium
    } else {
        Controller::Deployments
    }
}

/// The place of a controller in lists of all.
pub(crate) const fn index(controller: Controller) -> usize {
    match controller {
        Controller::Deployments => 0,
        Controller::Sentinels => 1,
        Controller::Cilium => 2,
    }
}

/// The object that the control plane means.
pub(crate) fn primary(key: &ObjectKey) -> ObjectRef {
    let resource = controller_of(key).primary();
    ObjectRef::new(resource, &*key.namespace, &*key.name)
}

/// Whether the control plane means this object, and not one that comes along with another.
pub(crate) fn is_primary(reference: &ObjectRef) -> bool {
    reference.resource == controller_of(&reference.key()).primary()
}

/// The sentinel that another object belongs to.
pub(crate) fn sentinel_of(reference: &ObjectRef) -> Option<ObjectKey> {
    let key = reference.key();
    let is_there = *key.namespace == *labels::SENTINEL_NAMESPACE && key.name.starts_with(SENTINEL);
    let gossip = key.name.strip_suffix(GOSSIP);
    let name = match (reference.resource, gossip) {
        (Resource::Service | Resource::CiliumNetworkPolicy, Some(name)) => name,
        (Resource::Service | Resource::PodDisruptionBudget, None) => &key.name,
        _ => return None,
    };
    is_there.then(|| ObjectKey::new(&*key.namespace, name))
}

/// Everything that hangs on a sentinel.
pub(crate) fn companions(sentinel: &ObjectKey) -> [ObjectRef; 4] {
    let part = |resource, suffix: &str| {
        let name = format!("{}{suffix}", sentinel.name);
        ObjectRef::new(resource, &*sentinel.namespace, name)
    };
    [
        part(Resource::Service, GOSSIP),
        part(Resource::CiliumNetworkPolicy, GOSSIP),
        part(Resource::Service, ""),
        part(Resource::PodDisruptionBudget, ""),
    ]
}
