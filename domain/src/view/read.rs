//! Questions to the view.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::View;
use crate::ids::{ObjectKey, SharedKey};
use crate::kinds::{self, Member};
use crate::object::{LiveObject, ObjectRef, Resource};
use crate::origin::is_marked;
use crate::pod::PodDigest;

impl View {
    /// The live object, if there is one.
    pub fn get(&self, reference: &ObjectRef) -> Option<&Arc<LiveObject>> {
        self.objects.get(reference)
    }

    /// The live workload of this key, if there is one.
    pub fn workload(&self, key: &ObjectKey) -> Option<&Arc<LiveObject>> {
        self.objects.get(&self.controller.primary_of(key))
    }

    /// The live pull secrets.
    pub fn pull_secrets(&self) -> impl Iterator<Item = SharedKey> {
        let secrets = self.objects.values();
        let secrets = secrets.filter(|live| live.reference.resource == Resource::Secret);
        secrets.filter_map(|live| kinds::shared_key_of(live))
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
    pub(super) fn workload_of(&self, live: &LiveObject) -> Option<ObjectKey> {
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
