//! What is in the cluster, as one controller's watches tell it.
//!
//! Fed by lists, watch events and the answers to our own writes. Of events and answers, an older one
//! never replaces a newer one, and an object that was deleted does not come back through a late
//! answer. A complete list replaces everything of its kind, whatever the versions: in a cluster that
//! was restored from a backup they are lower than before (D43).

mod listing;
mod read;
mod removed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{Controller, ObjectKey, WorkKey};
use crate::kinds;
use crate::members::Members;
use crate::object::{LiveObject, ObjectRef, Resource};
use crate::pod::PodDigest;
use listing::Listings;
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
    unknown: BTreeSet<Resource>,
    listings: Listings,
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
            unknown: BTreeSet::new(),
            listings: Listings::default(),
        }
    }

    /// Whose view it is.
    pub const fn controller(&self) -> Controller {
        self.controller
    }

    /// Kinds that may not be listed: neither listed nor empty. What is held of them is of the past.
    pub const fn unknown(&self) -> &BTreeSet<Resource> {
        &self.unknown
    }

    /// Whether this kind may not be listed.
    pub fn is_unknown(&self, resource: Resource) -> bool {
        self.unknown.contains(&resource)
    }

    /// This kind may not be listed, or may be again. Returns whether that is news.
    pub fn set_unknown(&mut self, resource: Resource, is_unknown: bool) -> bool {
        if is_unknown {
            self.unknown.insert(resource)
        } else {
            self.unknown.remove(&resource)
        }
    }

    /// Whether a kind is unknown without which nothing can be decided or reported at all.
    pub fn is_blind(&self) -> bool {
        let mut unknown = self.unknown.iter();
        unknown.any(|resource| self.controller.is_essential(*resource))
    }

    /// An object as seen by a watch, a read or an answer to a write.
    pub fn insert(&mut self, live: impl Into<Arc<LiveObject>>) -> Effects {
        let live = live.into();
        if self.removed.hides(&live.uid, live.resource_version) {
            return Effects::default();
        }
        let known = self.objects.get(&live.reference);
        if known.is_some_and(|known| known.resource_version >= live.resource_version) {
            return Effects::default();
        }
        self.listings.shown(live.reference.resource, &live.uid);
        self.put(live)
    }

    /// The object is as shown now, whatever was known of it.
    fn put(&mut self, live: Arc<LiveObject>) -> Effects {
        let mut effects = Effects::default();
        if !live.is_ours() && self.was_or_is_ours(&live) {
            // A watch that does not select by our label shows how it went. It is treated as by
            // those that do: as gone from sight, and still ours.
            effects.merge(self.remove(&live.reference, &live.uid, live.resource_version));
            self.removed
                .insert(Arc::clone(&live.uid), live.resource_version);
            self.listings.left(live.reference.resource, &live.uid);
            return effects;
        }
        // It only lost our label for a while.
        self.removed.restore(&live.uid);
        let known = self.objects.get(&live.reference);
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
            self.listings.shown(reference.resource, &live.uid);
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
        self.listings.left(reference.resource, &live.uid);
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
        let effects = self.remove(reference, &known.uid, before);
        // A list that shows it may be newer than that server.
        self.listings.doubted(reference.resource, &known.uid);
        effects
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

    /// A pod as seen by a watch.
    pub fn insert_pod(&mut self, pod: PodDigest) -> Effects {
        let known = self.pods.get(&key_of(&pod));
        if known.is_some_and(|known| {
            known.uid == pod.uid && known.resource_version >= pod.resource_version
        }) {
            return Effects::default();
        }
        self.listings.shown(Resource::Pod, &pod.uid);
        self.put_pod(pod)
    }

    fn put_pod(&mut self, pod: PodDigest) -> Effects {
        let key = key_of(&pod);
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
            self.listings.left(Resource::Pod, uid);
            self.forget_pod(&key)
        } else {
            Effects::default()
        }
    }

    /// A complete list of this kind is asked for now. What is shown of the kind from here on is
    /// newer than the list.
    pub fn list_begins(&mut self, resource: Resource) {
        self.listings.begin(resource);
    }

    /// A complete list replaces what is known of its kind, whatever the versions: its own only says
    /// up to where news of what it lacks is old. Kept is what was shown after it was asked for.
    pub fn replace(
        &mut self,
        resource: Resource,
        listed: Vec<LiveObject>,
        version: u64,
    ) -> Effects {
        let listing = self.listings.end(resource);
        let mut effects = Effects::default();
        let uids: BTreeSet<&str> = listed.iter().map(|live| &*live.uid).collect();
        let gone: Vec<Arc<LiveObject>> = self
            .objects
            .values()
            .filter(|live| live.reference.resource == resource)
            .filter(|live| !uids.contains(&*live.uid) && !listing.has_shown(&live.uid))
            .cloned()
            .collect();
        for live in gone {
            effects.merge(self.remove(&live.reference, &live.uid, version));
        }
        for live in listed {
            let known = self.objects.get(&live.reference);
            let is_old = known.is_some_and(|known| {
                listing.has_shown(&known.uid) && known.resource_version >= live.resource_version
            });
            let is_known = known.is_some_and(|known| **known == live);
            if !is_old && !is_known && !listing.has_left(&live.uid) {
                effects.merge(self.put(Arc::new(live)));
            }
        }
        effects
    }

    /// The same of pods.
    pub fn replace_pods(&mut self, listed: Vec<PodDigest>) -> Effects {
        let listing = self.listings.end(Resource::Pod);
        let mut effects = Effects::default();
        let uids: BTreeSet<&str> = listed.iter().map(|pod| &*pod.uid).collect();
        let gone: Vec<ObjectKey> = self
            .pods
            .iter()
            .filter(|(_, pod)| !uids.contains(&*pod.uid) && !listing.has_shown(&pod.uid))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            effects.merge(self.forget_pod(&key));
        }
        for pod in listed {
            let known = self.pods.get(&key_of(&pod));
            let is_old = known.is_some_and(|known| {
                listing.has_shown(&known.uid) && known.resource_version >= pod.resource_version
            });
            let is_known = known.is_some_and(|known| **known == pod);
            if !is_old && !is_known && !listing.has_left(&pod.uid) {
                effects.merge(self.put_pod(pod));
            }
        }
        effects
    }

    /// The cluster was restored from a backup: what is gone may be back, with versions of before.
    pub fn forget_removed(&mut self) {
        self.removed = RemovedUids::default();
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
}

fn key_of(pod: &PodDigest) -> ObjectKey {
    ObjectKey::new(Arc::clone(&pod.namespace), Arc::clone(&pod.name))
}

#[cfg(test)]
mod tests;
