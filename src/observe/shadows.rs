//! What the cluster would hold by now, where that differs from what it holds: objects that would
//! have been made, and such that would be gone. What would be changed casts no shadow: the real
//! object stays the truth.

use std::collections::BTreeMap;
use std::sync::Arc;

use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, ObjectRef, Resource};
use krane_ports::Item;
use parking_lot::Mutex;

/// Shared by all controllers: what one would make another one looks at.
#[derive(Debug, Default)]
pub struct Shadows {
    all: Mutex<BTreeMap<ObjectRef, Shadow>>,
}

#[derive(Clone, Debug)]
pub(super) enum Shadow {
    /// It would be there, as the API server said.
    Made(Arc<LiveObject>),
    /// The object of this uid would be gone.
    Gone(Arc<str>),
}

impl Shadows {
    pub(super) fn of(&self, object: &ObjectRef) -> Option<Shadow> {
        self.all.lock().get(object).cloned()
    }

    pub(super) fn made(&self, live: &LiveObject) {
        let shadow = Shadow::Made(Arc::new(live.clone()));
        self.all.lock().insert(live.reference.clone(), shadow);
    }

    pub(super) fn gone(&self, object: &ObjectRef, uid: &str) {
        let shadow = Shadow::Gone(uid.into());
        self.all.lock().insert(object.clone(), shadow);
    }

    pub(super) fn lift(&self, object: &ObjectRef) {
        self.all.lock().remove(object);
    }

    /// Whether the namespace would have been made.
    pub(super) fn has_namespace(&self, name: &Arc<str>) -> bool {
        let namespace = ObjectRef::new(Resource::Namespace, "", Arc::clone(name));
        matches!(self.of(&namespace), Some(Shadow::Made(_)))
    }

    /// Whether a real object is to be seen. One that is really there ends the shadow of one that
    /// would have been made in its place.
    pub(super) fn shows(&self, live: &LiveObject) -> bool {
        match self.of(&live.reference) {
            Some(Shadow::Gone(uid)) if uid == live.uid => false,
            Some(Shadow::Gone(_) | Shadow::Made(_)) => {
                self.lift(&live.reference);
                true
            }
            None => true,
        }
    }

    /// Objects that a list would hold, too.
    pub(super) fn added_to(&self, spec: &WatchSpec) -> Vec<Item> {
        let all = self.all.lock();
        let made = all.values().filter_map(|shadow| match shadow {
            Shadow::Made(live) => Some(live),
            Shadow::Gone(_) => None,
        });
        let is_in = |live: &&Arc<LiveObject>| {
            let place = spec.namespace;
            live.reference.resource == spec.resource
                && place.is_none_or(|place| *place == *live.reference.namespace)
                && spec.selects(&live.labels)
        };
        made.filter(is_in)
            .map(|live| Item::Object((**live).clone()))
            .collect()
    }
}
