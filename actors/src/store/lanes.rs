//! What a lane looks up before it writes, and notes of what the API server answered.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::drift::FuseMemory;
use krane_domain::ids::{Moment, ObjectKey, SharedKey, WorkKey};
use krane_domain::kinds::{self, Member};
use krane_domain::object::{LiveObject, ObjectRef, Resource};
use krane_domain::plan::{self, Unseen};
use krane_domain::pod::PodDigest;
use krane_domain::view;

use super::Store;

/// The live objects that have to go when a workload is deleted.
#[derive(Debug)]
pub(crate) struct ObjectsToDelete {
    /// What would outlive the workload, in the order in which it is deleted before it. What is
    /// terminating already, or of a kind that krane may not list, is left out.
    pub(crate) parts: Vec<Arc<LiveObject>>,
    /// The workload itself.
    pub(crate) workload: Option<Arc<LiveObject>>,
}

/// An object that an earlier state of a workload needed, next to that workload as it is now.
#[derive(Debug)]
pub(crate) struct FormerDependant {
    /// The object, unless krane may not list its kind: what is known of that is of the past.
    pub(crate) live: Option<Arc<LiveObject>>,
    /// The live workload.
    pub(crate) workload: Option<Arc<LiveObject>>,
}

/// What a shared object is compared by.
#[derive(Debug)]
pub(crate) struct SharedObject {
    /// The live object.
    pub(crate) live: Option<Arc<LiveObject>>,
    /// What our last apply of it did not achieve.
    pub(crate) fuse: Option<FuseMemory>,
    /// Whether the API server does not know its kind.
    pub(crate) is_kind_missing: bool,
}

/// Kinds.
impl Store {
    /// The kinds of objects that no watch shows.
    pub(crate) fn unseen(&self) -> Unseen {
        self.with(|memory| Unseen {
            unknown: memory.view.unknown().clone(),
            missing: memory.kinds_missing.clone(),
        })
    }

    /// Whether krane may not list this kind (D38b).
    pub(crate) fn is_kind_forbidden(&self, resource: Resource) -> bool {
        self.with(|memory| memory.view.is_unknown(resource))
    }

    /// The kind that krane would have to list before it may delete this workload, if there is one.
    pub(crate) fn delete_blocked_by(&self, key: &ObjectKey) -> Option<Resource> {
        self.with(|memory| {
            self.controller
                .delete_blocked_by(key, &self.rules, memory.view.unknown())
        })
    }
}

/// Live objects.
impl Store {
    /// The object as the watches and our own writes show it.
    pub(crate) fn live_object(&self, reference: &ObjectRef) -> Option<Arc<LiveObject>> {
        self.with(|memory| memory.view.get(reference).cloned())
    }

    /// The same, with what our last apply of it did not achieve.
    pub(crate) fn live_with_fuse(
        &self,
        reference: &ObjectRef,
    ) -> (Option<Arc<LiveObject>>, Option<FuseMemory>) {
        self.with(|memory| {
            (
                memory.view.get(reference).cloned(),
                memory.fuses.get(reference).cloned(),
            )
        })
    }

    /// The same for an object that workloads share, whose kind may be missing.
    pub(crate) fn shared_object(&self, reference: &ObjectRef) -> SharedObject {
        self.with(|memory| SharedObject {
            live: memory.view.get(reference).cloned(),
            fuse: memory.fuses.get(reference).cloned(),
            is_kind_missing: memory.kinds_missing.contains(&reference.resource),
        })
    }

    /// What an earlier state of this workload may have left behind under this name.
    pub(crate) fn former_dependant(
        &self,
        reference: &ObjectRef,
        workload: &ObjectKey,
    ) -> FormerDependant {
        self.with(|memory| {
            let live = memory.view.get(reference).cloned();
            FormerDependant {
                live: live.filter(|_| !memory.view.is_unknown(reference.resource)),
                workload: memory.view.workload(workload).cloned(),
            }
        })
    }

    /// What there is to delete of a workload.
    pub(crate) fn objects_to_delete(&self, key: &ObjectKey) -> ObjectsToDelete {
        self.with(|memory| {
            let mut parts = plan::deletion(&memory.view, key);
            let workload = parts.pop().and_then(|primary| primary.live);
            let parts = parts.into_iter().filter_map(|part| part.live);
            ObjectsToDelete {
                parts: parts.filter(|part| !part.is_terminating).collect(),
                workload,
            }
        })
    }

    /// Whether the object of this uid left the view while it was ours: if it still exists, it only
    /// lost our label.
    pub(crate) fn was_ours(&self, uid: &str) -> bool {
        self.with(|memory| memory.view.was_ours(uid))
    }
}

/// Pods and templates of one workload.
impl Store {
    /// The outdated pod that is due to be replaced, unless another one of this workload was within
    /// `pace`. `unix_seconds` is the wall clock.
    pub(crate) fn pod_to_replace(
        &self,
        key: &ObjectKey,
        pace: Duration,
        now: Moment,
        unix_seconds: u64,
    ) -> Option<PodDigest> {
        self.with(|memory| {
            let recent = memory.replaced_at.get(key);
            if recent.is_some_and(|at| *at + pace > now) {
                return None;
            }
            let live = memory.view.workload(key)?;
            let pods = memory.view.pods_of(live);
            let pods: Vec<_> = pods.iter().map(AsRef::as_ref).collect();
            kinds::outdated_pod(self.controller, live, &pods, unix_seconds).cloned()
        })
    }

    /// A pod of this workload is about to be replaced: the next one has to wait.
    pub(crate) fn note_pod_replaced(&self, key: &ObjectKey, now: Moment) {
        self.with(|memory| memory.replaced_at.insert(key.clone(), now));
    }

    /// Takes the workload's turn to roll its pods (D44). Returns whether it has it.
    pub(crate) fn take_turn_to_roll(&self, key: &ObjectKey) -> bool {
        self.with(|memory| memory.rolls.take_turn(key))
    }

    /// Whether the workload runs a template that another renderer made, and so waits for its turn
    /// to roll (D44).
    pub(crate) fn note_template_kept(&self, key: &ObjectKey, is_kept: bool) {
        self.with(|memory| memory.rolls.note(key, is_kept));
    }
}

/// Objects that workloads share.
impl Store {
    /// What all workloads, desired and live, contribute to a shared object; each once.
    pub(crate) fn members_of(&self, shared: &SharedKey) -> Vec<Member> {
        self.with(|memory| memory.members_of(shared))
    }

    /// Whether another client made this namespace, as far as was seen.
    pub(crate) fn is_foreign_namespace(&self, namespace: &str) -> bool {
        self.with(|memory| memory.foreign_namespaces.contains(namespace))
    }

    /// Another client made this namespace: it is used as it is, and not labelled.
    pub(crate) fn note_foreign_namespace(&self, namespace: &Arc<str>) {
        self.with(|memory| memory.foreign_namespaces.insert(Arc::clone(namespace)));
    }

    /// The namespace is gone although it looked in place: the next lane that needs it makes it.
    pub(crate) fn note_namespace_gone(&self, namespace: &Arc<str>) {
        let reference = ObjectRef::new(Resource::Namespace, "", Arc::clone(namespace));
        self.with(|memory| {
            memory.foreign_namespaces.remove(namespace);
            memory.view.doubt(&reference);
        });
    }

    /// No workload needs this object now. Returns since when.
    pub(crate) fn note_memberless(&self, shared: &SharedKey, now: Moment) -> Moment {
        self.with(|memory| *memory.memberless.entry(shared.clone()).or_insert(now))
    }

    /// The object is needed again, or gone: its time without members is over.
    pub(crate) fn forget_memberless(&self, shared: &SharedKey) {
        self.with(|memory| memory.memberless.remove(shared));
    }
}

/// What a request was answered.
impl Store {
    /// How long the longest request of the lane at work on this key took.
    pub(crate) fn note_longest_call(&self, key: &WorkKey, took: Duration) {
        self.with(|memory| memory.backlog.note_longest_call(key, took));
    }

    /// An apply worked, and left this object and this fuse behind.
    pub(crate) fn note_applied(
        &self,
        reference: &ObjectRef,
        live: &Arc<LiveObject>,
        fuse: Option<FuseMemory>,
        now: Moment,
    ) {
        self.with(|memory| {
            memory.kinds_missing.remove(&reference.resource);
            match fuse {
                Some(fuse) => memory.fuses.insert(reference.clone(), fuse),
                None => memory.fuses.remove(reference),
            };
            let effects = memory.view.insert(Arc::clone(live));
            memory.observe(effects.observe);
            // What our own write did to the view needs no second look; what it did to
            // objects shared with others does.
            for key in effects.look {
                if matches!(key, WorkKey::Shared(_))
                    && reference.resource == self.controller.primary()
                {
                    memory.backlog.look(&key, now);
                }
            }
        });
    }

    /// The object of this uid carries our label again, which it had lost.
    pub(crate) fn note_label_restored(&self, uid: &str) {
        self.with(|memory| memory.view.restore(uid));
    }

    /// The API server showed this object in its answer, before a watch does.
    pub(crate) fn note_live_object(&self, live: impl Into<Arc<LiveObject>>) {
        self.with(|memory| {
            let effects = memory.view.insert(live);
            memory.observe(effects.observe);
        });
    }

    /// The API server did not find this object, and may be lagging.
    pub(crate) fn note_not_found(&self, reference: &ObjectRef, now: Moment) {
        self.with(|memory| {
            let effects = memory.view.doubt(reference);
            memory.take_effects(effects, now);
        });
    }

    /// The API server accepted the delete of this object, which now terminates.
    pub(crate) fn note_delete_begun(&self, live: &LiveObject) {
        self.with(|memory| memory.view.mark_leaving(&live.reference, &live.uid));
    }

    /// This object was deleted, and nothing of it is left.
    pub(crate) fn note_deleted(&self, live: &LiveObject, now: Moment) {
        let reference = &live.reference;
        self.with(|memory| {
            memory.fuses.remove(reference);
            let effects = memory.view.remove(reference, &live.uid, view::GONE);
            memory.observe(effects.observe);
            for key in effects.look {
                if matches!(key, WorkKey::Shared(_)) {
                    memory.backlog.look(&key, now);
                }
            }
        });
    }

    /// Nothing is left to delete of this workload. It is reported as gone, with this id if no
    /// report named one, where the control plane hears of its name only through it.
    pub(crate) fn note_workload_deleted(&self, key: &ObjectKey, id: Option<Arc<str>>, now: Moment) {
        self.with(|memory| {
            if self.controller.has_reports()
                && memory.view.workload(key).is_none()
                && !memory.is_of_the_scheduler(key)
                && memory.told_namespaces(&key.name).next().is_none()
            {
                memory.outbox.observe_gone(key, id, now);
            }
            memory.observe([key.clone()]);
        });
    }
}
