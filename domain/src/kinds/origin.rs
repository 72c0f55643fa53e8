//! Which fields of an object say what its desired state says, in every rendering of it.

use super::deployment::{FIELD_TABLE, ProtoField};
use crate::drift::{Difference, DifferenceKind};
use crate::object::Resource;

/// What the state of a sentinel decides, wherever it is rendered.
const SENTINEL: [&str; 6] = [
    "metadata.labels",
    "spec.replicas",
    "spec.selector",
    "spec.template.spec.containers[name=sentinel].image",
    "spec.template.spec.containers[name=sentinel].resources.limits",
    "spec.minAvailable",
];

/// What only a call of the scheduler renders (D32).
const OF_THE_SCHEDULER: [&str; 2] = [
    "metadata.labels[\"krane.unkey.com/desired-by\"]",
    "metadata.annotations[\"unkey.com/readiness.id\"]",
];

/// Whether a difference is one of content: another value of what the desired state says. That a
/// field is rendered at all, or not any more, is a matter of rendering.
pub fn is_from_state(resource: Resource, difference: &Difference) -> bool {
    // Who wants it is said by a label that is there or not.
    if OF_THE_SCHEDULER.contains(&&*difference.path) {
        return true;
    }
    let is_another_value = difference.kind == DifferenceKind::Value;
    let any = |mut places: &mut dyn Iterator<Item = &'static str>| {
        is_another_value && (&mut places).any(|place| is_within(&difference.path, place))
    };
    match resource {
        Resource::ReplicaSet => any(&mut places(|field| field.places)),
        Resource::HorizontalPodAutoscaler => any(&mut places(|field| field.autoscaler_places)),
        Resource::Deployment | Resource::Service | Resource::PodDisruptionBudget => {
            any(&mut SENTINEL.into_iter())
        }
        // Rules and credentials are content whatever differs in them.
        Resource::CiliumNetworkPolicy | Resource::Secret => {
            !is_within(&difference.path, "metadata")
        }
        Resource::Namespace | Resource::Pod => false,
    }
}

fn places(of: fn(&ProtoField) -> &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    let fields = FIELD_TABLE.iter().flat_map(of);
    // What is requested follows from the limits, and from how it is rendered.
    fields
        .copied()
        .filter(|place| !place.contains(".requests."))
}

/// Whether a path is this place or below it.
fn is_within(path: &str, place: &str) -> bool {
    let below = path.strip_prefix(place);
    below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
}
