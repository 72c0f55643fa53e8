//! What is in the cluster, as one controller's watches tell it.
//!
//! Fed by lists, watch events and the answers to our own writes. An older view of an object never
//! replaces a newer one, and an object that was deleted does not come back through a late answer.

mod removed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{Controller, ObjectKey, SharedKey, WorkKey};
use crate::kinds::{self, Member};
use crate::members::Members;
use crate::object::{LiveObject, ObjectRef, Resource};
use crate::planted::{Bug, is_planted};
use crate::pod::PodDigest;
use crate::scheduler::is_marked;
use removed::RemovedUids;

/// The version of an object that was deleted: nothing that is said of it can be newer.
pub const GONE: u64 = u64::MAX;

/// The cluster as one controller sees it.
#[derive(Debug)]
pub struct View {
    controller: Controller,
    primary: Resource,
    objects: BTreeMap<ObjectRef, Arc<LiveObject>>,
    members: Members,
    owners: BTreeMap<Arc<str>, ObjectKey>,
    namespaces_by_name: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    pods: BTreeMap<ObjectKey, Arc<PodDigest>>,
    pods_by_owner: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    removed: RemovedUids,
}

/// What a change of the view calls for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Keys whose objects may not be as wanted any more.
    pub look: BTreeSet<WorkKey>,
    /// Workloads whose status may have changed.
    pub observe: BTreeSet<ObjectKey>,
}

impl Effects {
    /// Both together.
    pub fn merge(&mut self, other: Self) {
        self.look.extend(other.look);
        self.observe.extend(other.observe);
    }
}

impl View {
    /// An empty view of this controller.
    pub fn new(controller: Controller) -> Self {
        Self {
            controller,
            primary: controller.primary(),
            objects: BTreeMap::new(),
            members: Members::default(),
            owners: BTreeMap::new(),
            namespaces_by_name: BTreeMap::new(),
            pods: BTreeMap::new(),
            pods_by_owner: BTreeMap::new(),
            removed: RemovedUids::default(),
        }
    }

    /// Whose view it is.
    pub const fn controller(&self) -> Controller {
        self.controller
    }

    /// An object as seen by a list, a watch or an answer to a write.
    pub fn insert(&mut self, live: impl Into<Arc<LiveObject>>) -> Effects {
        let live = live.into();
        let mut effects = Effects::default();
        if self.removed.hides(&live.uid, live.resource_version) {
            return effects;
        }
        if !live.is_ours() && self.was_or_is_ours(&live) {
            // A watch that does not select by our label shows how it went. It is treated as by
            // those that do: as gone from sight, and still ours.
            effects.merge(self.remove(&live.reference, &live.uid, live.resource_version));
            self.removed
                .insert(Arc::clone(&live.uid), live.resource_version);
            return effects;
        }
        // It only lost our label for a while.
        self.removed.restore(&live.uid);
        let known = self.objects.get(&live.reference);
        if known.is_some_and(|known| known.resource_version >= live.resource_version) {
            return effects;
        }
        let is_news = known.is_none_or(|known| {
            known.uid != live.uid
                || known.fingerprint != live.fingerprint
                || known.is_terminating != live.is_terminating
        });
        if let Some(old) = known.filter(|known| known.uid != live.uid).cloned() {
            effects.merge(self.remove(&old.reference, &old.uid, GONE));
        }
        if is_news {
            self.note(&live, &mut effects);
            if live.reference.resource == self.primary {
                self.index(&live, &mut effects);
            }
        } else if live.reference.resource == self.primary && self.controller.is_observed_by_status()
        {
            effects.observe.insert(live.reference.key());
        }
        self.objects.insert(live.reference.clone(), live);
        effects
    }

    fn was_or_is_ours(&self, live: &LiveObject) -> bool {
        let known = self.objects.get(&live.reference);
        let is_known = known.is_some_and(|known| known.uid == live.uid && known.is_ours());
        is_known || self.removed.contains(&live.uid)
    }

    /// The object with this uid is on its way out, as the answer to its delete said: nobody needs to
    /// wait for a watch to know.
    pub fn mark_leaving(&mut self, reference: &ObjectRef, uid: &str) {
        let live = self.objects.get_mut(reference);
        if let Some(live) = live.filter(|live| *live.uid == *uid) {
            Arc::make_mut(live).is_terminating = true;
        }
    }

    /// The object with this uid is gone, or no longer carries our label, as of resource version
    /// `version`: what is said of it up to there is old. [`GONE`]: it cannot come back.
    pub fn remove(&mut self, reference: &ObjectRef, uid: &str, version: u64) -> Effects {
        let mut effects = Effects::default();
        let Some(live) = self
            .objects
            .get(reference)
            .filter(|live| *live.uid == *uid)
            .cloned()
        else {
            return effects;
        };
        self.objects.remove(reference);
        self.removed.insert(Arc::clone(&live.uid), version);
        self.note(&live, &mut effects);
        if reference.resource == self.primary {
            let key = reference.key();
            effects.look.extend(
                self.members
                    .set(&key, None)
                    .into_iter()
                    .map(WorkKey::Shared),
            );
            if let Some(owner) = self.controller.owner(&live) {
                self.owners.remove(&owner);
            }
            if let Some(namespaces) = self.namespaces_by_name.get_mut(&key.name) {
                namespaces.remove(&key.namespace);
                // The object of that name elsewhere may be reported from now on.
                effects.observe.extend(
                    namespaces
                        .iter()
                        .map(|other| ObjectKey::new(Arc::clone(other), &*key.name)),
                );
                if namespaces.is_empty() {
                    self.namespaces_by_name.remove(&key.name);
                }
            }
        }
        effects
    }

    /// A server says that this object is not there, and may be lagging: it is forgotten until it is
    /// shown again, as it was or newer.
    pub fn doubt(&mut self, reference: &ObjectRef) -> Effects {
        let Some(known) = self.objects.get(reference).cloned() else {
            return Effects::default();
        };
        let before = known.resource_version.saturating_sub(1);
        self.remove(reference, &known.uid, before)
    }

    /// Whether this uid was an object of ours until a watch no longer showed it. If it still
    /// exists, it only lost our label.
    pub fn was_ours(&self, uid: &str) -> bool {
        self.removed.contains(uid)
    }

    /// Lets an object that only lost our label come back: its uid is not dead after all.
    pub fn restore(&mut self, uid: &str) {
        self.removed.restore(uid);
    }

    /// A pod as seen by a list or a watch.
    pub fn insert_pod(&mut self, pod: PodDigest) -> Effects {
        let key = ObjectKey::new(Arc::clone(&pod.namespace), Arc::clone(&pod.name));
        let known = self.pods.get(&key);
        if known.is_some_and(|known| {
            known.uid == pod.uid && known.resource_version >= pod.resource_version
        }) {
            return Effects::default();
        }
        let mut effects = self.forget_pod(&key);
        if let Some(owner) = self.controller.pod_owner(&pod) {
            effects.observe.extend(self.owners.get(&owner).cloned());
            self.pods_by_owner
                .entry(owner)
                .or_default()
                .insert(key.clone());
        }
        self.pods.insert(key, Arc::new(pod));
        effects
    }

    /// The pod with this uid is gone.
    pub fn remove_pod(&mut self, namespace: &str, name: &str, uid: &str) -> Effects {
        let key = ObjectKey::new(namespace, name);
        if self.pods.get(&key).is_some_and(|pod| *pod.uid == *uid) {
            self.forget_pod(&key)
        } else {
            Effects::default()
        }
    }

    /// Objects of this kind that a complete list at `resource_version` does not hold are gone,
    /// though nobody said so. Those written after the list was taken are kept.
    pub fn retain_listed(
        &mut self,
        resource: Resource,
        listed: &BTreeSet<Arc<str>>,
        resource_version: u64,
    ) -> Effects {
        let mut effects = Effects::default();
        if is_planted(Bug::RelistKeepsGone) {
            return effects;
        }
        if resource == Resource::Pod {
            let gone: Vec<ObjectKey> = self
                .pods
                .iter()
                .filter(|(_, pod)| !listed.contains(&pod.uid))
                .filter(|(_, pod)| pod.resource_version <= resource_version)
                .map(|(key, _)| key.clone())
                .collect();
            for key in gone {
                effects.merge(self.forget_pod(&key));
            }
            return effects;
        }
        let gone: Vec<Arc<LiveObject>> = self
            .objects
            .values()
            .filter(|live| live.reference.resource == resource)
            .filter(|live| !listed.contains(&live.uid))
            .filter(|live| live.resource_version <= resource_version)
            .cloned()
            .collect();
        for live in gone {
            effects.merge(self.remove(&live.reference, &live.uid, resource_version));
        }
        effects
    }

    fn note(&self, live: &LiveObject, effects: &mut Effects) {
        if live.reference.resource == self.primary {
            effects.observe.insert(live.reference.key());
        }
        effects.look.extend(self.work_of(live));
    }

    /// The key whose lane brings this object about.
    pub fn work_of(&self, live: &LiveObject) -> Option<WorkKey> {
        let shared = || kinds::shared_key_of(live).map(WorkKey::Shared);
        let is_primary = live.reference.resource == self.primary;
        let shared = if is_primary { None } else { shared() };
        shared.or_else(|| self.workload_of(live).map(WorkKey::Workload))
    }

    fn index(&mut self, live: &LiveObject, effects: &mut Effects) {
        let key = live.reference.key();
        let member = self.controller.member_of_live(live);
        let changed = self.members.set(&key, member);
        effects
            .look
            .extend(changed.into_iter().map(WorkKey::Shared));
        self.namespaces_by_name
            .entry(Arc::clone(&key.name))
            .or_default()
            .insert(Arc::clone(&key.namespace));
        if let Some(owner) = self.controller.owner(live) {
            self.owners.insert(owner, key);
        }
    }

    fn forget_pod(&mut self, key: &ObjectKey) -> Effects {
        let mut effects = Effects::default();
        if let Some(pod) = self.pods.remove(key)
            && let Some(owner) = self.controller.pod_owner(&pod)
        {
            effects.observe.extend(self.owners.get(&owner).cloned());
            if let Some(siblings) = self.pods_by_owner.get_mut(&owner) {
                siblings.remove(key);
                if siblings.is_empty() {
                    self.pods_by_owner.remove(&owner);
                }
            }
        }
        effects
    }

    /// The live object, if there is one.
    pub fn get(&self, reference: &ObjectRef) -> Option<&Arc<LiveObject>> {
        self.objects.get(reference)
    }

    /// The live workload of this key, if there is one.
    pub fn workload(&self, key: &ObjectKey) -> Option<&Arc<LiveObject>> {
        let reference = ObjectRef::new(
            self.primary,
            Arc::clone(&key.namespace),
            Arc::clone(&key.name),
        );
        self.objects.get(&reference)
    }

    /// All live workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &Arc<LiveObject>> {
        self.objects
            .values()
            .filter(|live| live.reference.resource == self.primary)
    }

    /// Every object with a control-plane id that the control plane may be asked about: all
    /// workloads, and what is left of those that are gone. What the scheduler wants is unknown to
    /// the control plane (D32).
    pub fn questions(&self) -> BTreeMap<ObjectKey, Arc<str>> {
        let mut questions = BTreeMap::new();
        let may_ask = |live: &&Arc<LiveObject>| !live.is_terminating && !is_marked(live);
        for live in self.objects.values().filter(may_ask) {
            let Some(key) = self.workload_of(live) else {
                continue;
            };
            if let Some(id) = kinds::question_id(self.controller, live) {
                if live.reference.resource == self.primary {
                    questions.insert(key, id);
                } else if self.workload(&key).is_none() {
                    questions.entry(key).or_insert(id);
                }
            }
        }
        questions
    }

    /// Whether a workload, or something of it, is there.
    pub fn has_any_of(&self, key: &ObjectKey) -> bool {
        self.any_of(key).is_some()
    }

    /// The live workload, or else something of it that is left.
    pub fn any_of(&self, key: &ObjectKey) -> Option<&Arc<LiveObject>> {
        self.workload(key).or_else(|| {
            let mut parts = self.controller.deleted_first(key).into_iter();
            parts.find_map(|part| self.objects.get(&part))
        })
    }

    /// The workload that a live object is, or is part of.
    fn workload_of(&self, live: &LiveObject) -> Option<ObjectKey> {
        if live.reference.resource == self.primary {
            Some(live.reference.key())
        } else {
            self.controller.workload_of_dependant(live)
        }
    }

    /// The pods of a live workload, by name.
    pub fn pods_of(&self, live: &LiveObject) -> Vec<Arc<PodDigest>> {
        let owner = self.controller.owner(live);
        let keys = owner.and_then(|owner| self.pods_by_owner.get(&owner));
        let pods = keys.into_iter().flatten();
        pods.filter_map(|key| self.pods.get(key)).cloned().collect()
    }

    /// What live workloads contribute to a shared object.
    pub fn members_of(&self, shared: &SharedKey) -> Vec<Member> {
        self.members.of(shared).cloned().collect()
    }

    /// What live workloads contribute in one environment of a namespace.
    pub fn members_in<'a>(
        &'a self,
        namespace: &Arc<str>,
        environment: &Arc<str>,
    ) -> impl Iterator<Item = &'a Member> + use<'a> {
        self.members.in_environment(namespace, environment)
    }

    /// Namespaces that hold a workload of this name; more than one is a conflict, since reports
    /// carry no namespace.
    pub fn namespaces_with(&self, name: &str) -> impl Iterator<Item = &Arc<str>> {
        self.namespaces_by_name.get(name).into_iter().flatten()
    }

    /// Names that more than one namespace holds.
    pub fn name_conflicts(&self) -> usize {
        self.namespaces_by_name
            .values()
            .filter(|namespaces| namespaces.len() > 1)
            .count()
    }

    /// Objects and pods held.
    pub fn len(&self) -> (usize, usize) {
        (self.objects.len(), self.pods.len())
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.pods.is_empty()
    }
}

#[cfg(test)]
mod tests;
