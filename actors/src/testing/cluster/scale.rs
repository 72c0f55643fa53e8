//! The number of pods, as somebody else sets it.

use krane_domain::object::{LiveObject, ObjectRef, Rendered};
use serde_json::{Value, json};

use super::{FakeCluster, World};

impl FakeCluster {
    /// An autoscaler sets the number of pods: from then on krane does not own it.
    pub(crate) fn scale(&self, reference: &ObjectRef, replicas: u64) {
        self.world.lock().scale(reference, replicas);
    }

    /// All pods of a Deployment run its template and are available, or one is not.
    pub(crate) fn roll_out(&self, reference: &ObjectRef, is_available: bool) {
        self.world.lock().set(reference, |object| {
            let all = object["spec"]["replicas"].as_u64().unwrap_or_default();
            object["status"] = json!({
                "observedGeneration": object["metadata"]["generation"],
                "replicas": all, "updatedReplicas": all,
                "availableReplicas": all - u64::from(!is_available),
            });
        });
    }

    /// The same, and somebody takes our label away.
    pub(crate) fn scale_and_unlabel(&self, reference: &ObjectRef, replicas: u64) {
        let mut world = self.world.lock();
        world.set(reference, |object| {
            object["metadata"]["labels"] = json!({});
            set_replicas(object, replicas);
        });
    }
}

impl World {
    pub(super) fn scale(&mut self, reference: &ObjectRef, replicas: u64) -> Option<LiveObject> {
        self.set(reference, |object| set_replicas(object, replicas))
    }

    fn set(&mut self, reference: &ObjectRef, edit: impl FnOnce(&mut Value)) -> Option<LiveObject> {
        let mut object = self.objects.get(reference)?.value();
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        edit(&mut object);
        let live = LiveObject::from_json(reference.resource, object).expect("it did before");
        Some(self.put(live))
    }
}

fn set_replicas(object: &mut Value, replicas: u64) {
    object["spec"]["replicas"] = json!(replicas);
    let owned = object.pointer_mut("/metadata/managedFields/0/fieldsV1/f:spec");
    if let Some(owned) = owned.and_then(Value::as_object_mut) {
        owned.remove("f:replicas");
    }
}

/// What an apply that does not say a number leaves as it is.
pub(super) fn replicas_left_alone(applied: &Rendered) -> impl Fn(&LiveObject) -> Option<u64> {
    let says = applied.body.pointer("/spec/replicas").is_some();
    move |live| live.value()["spec"]["replicas"].as_u64().filter(|_| !says)
}
