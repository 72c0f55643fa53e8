//! Objects that another agent left behind under the names krane gives (D15).

use super::compare::own_fields;
use crate::labels;
use crate::object::{LiveObject, ObjectRef, Rendered};

/// Whether an object of this name may have been left behind without krane's label: agents before
/// krane labelled not all that they made for sentinels.
pub fn may_be_left_behind(reference: &ObjectRef) -> bool {
    *reference.namespace == *labels::SENTINEL_NAMESPACE
}

/// Whether a live object without krane's label is what an agent before krane made in place of the
/// rendered one: applied by a manager of krane's name, for the same environment.
pub fn is_left_behind(rendered: &Rendered, live: &LiveObject) -> bool {
    let reference = &rendered.reference;
    let environment = rendered
        .body
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(labels::ENVIRONMENT_ID))
        .and_then(serde_json::Value::as_str);
    may_be_left_behind(reference)
        && live.reference == *reference
        && environment.is_some_and(|wanted| live.label(labels::ENVIRONMENT_ID) == Some(wanted))
        && own_fields(&live.value(), &reference.resource.api_version()).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_left_behind;
    use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
    use crate::testing::applied_json;

    fn gossip(namespace: &str) -> Rendered {
        let reference = ObjectRef::new(Resource::Service, namespace, "sen-1-gossip-lan");
        let body = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "sen-1-gossip-lan", "namespace": namespace,
                "labels": { "unkey.com/environment.id": "env_1" } },
            "spec": { "clusterIP": "None" },
        });
        Rendered::new(reference, body)
    }

    fn verdict(namespace: &str, change: fn(&mut Value)) -> bool {
        let rendered = gossip(namespace);
        let mut json = applied_json(&rendered, "u", 1);
        change(&mut json);
        let live = LiveObject::from_json(Resource::Service, json);
        is_left_behind(&rendered, &live.unwrap_or_else(|error| panic!("{error}")))
    }

    /// Name, environment and manager must all fit: anything else is somebody else's.
    #[test]
    fn only_what_the_same_kind_of_agent_applied_for_the_same_environment_is_taken_over() {
        assert!(verdict("sentinel", |_| ()));
        assert!(!verdict("abcdefgh", |_| ()), "only where sentinels are");
        assert!(!verdict("sentinel", |json| {
            json["metadata"]["labels"]["unkey.com/environment.id"] = json!("env_2");
        }));
        assert!(!verdict("sentinel", |json| {
            json["metadata"]["labels"] = json!({});
        }));
        assert!(!verdict("sentinel", |json| {
            json["metadata"]["managedFields"][0]["manager"] = json!("helm");
        }));
        assert!(!verdict("sentinel", |json| {
            json["metadata"]["managedFields"][0]["operation"] = json!("Update");
        }));
    }
}
