//! The kinds of desired state: one folder each.
//!
//! Actors handle [`Desired`] and [`Controller`] without looking into them. What differs between
//! kinds is what a folder says by two traits: `WantedKind` about a desired state, `LiveKind`
//! about the objects in the cluster. Another kind is another folder, and a line wherever the kinds
//! are listed: in the matches below, and among the controllers.

pub mod cilium_network_policy;
pub mod deployment;
mod origin;
mod rules;
pub mod sentinel;
mod shared;
#[cfg(test)]
mod tests;
mod validation;
mod watches;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use origin::is_from_state;
pub use rules::{Password, ProbePaths, PullSecret, Region, ReportAddress, Rules};
pub use shared::workspaces_of_states;
pub use shared::{Isolated, Member, Tenant, can_do_without, may_lack, only_loses_ports};
pub use shared::{render_shared, shared_key_of, shared_keys, shared_reference};
pub use watches::WatchSpec;

use crate::ids::{Controller, ObjectKey, SharedKey};
use crate::invalid::Invalid;
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::origin::Origin;
use crate::pod::PodDigest;
use crate::report::Report;
use crate::secrets::WorkloadIdentity;

/// Value of [`crate::labels::RENDERER_ANNOTATION`]: raised whenever the same state renders
/// differently.
pub const RENDERER: &str = "2";

/// What of the pod template of a live Deployment may stay as another renderer made it (D44): its
/// pods would roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Nothing: its turn has come.
    Nothing,
    /// What is exactly an earlier form. That is all that can be known once krane has taken over
    /// fields of others: what they wrote there looks like krane's own.
    EarlierForm,
    /// Also what was rendered from an equal state.
    EqualState,
}

/// A validated desired state of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Desired {
    /// A customer workload.
    Deployment(Box<deployment::DesiredDeployment>),
    /// A proxy in front of workloads.
    Sentinel(Box<sentinel::DesiredSentinel>),
    /// A network policy of the control plane.
    CiliumNetworkPolicy(Box<cilium_network_policy::DesiredPolicy>),
}

impl Desired {
    pub(crate) fn kind(&self) -> &dyn WantedKind {
        match self {
            Self::Deployment(desired) => &**desired,
            Self::Sentinel(desired) => &**desired,
            Self::CiliumNetworkPolicy(desired) => &**desired,
        }
    }
}

/// What differs between controllers about what is live.
fn live_kind(controller: Controller) -> &'static dyn LiveKind {
    match controller {
        Controller::Deployments => &deployment::Live,
        Controller::Sentinels => &sentinel::Live,
        Controller::Cilium => &cilium_network_policy::Live,
    }
}

/// What a desired state says, whatever its kind.
pub(crate) trait WantedKind {
    fn key(&self) -> &ObjectKey;

    /// The control plane's id of the object.
    fn id(&self) -> &Arc<str>;

    /// What it contributes to the shared objects of its namespace.
    fn member(&self) -> Member;

    /// Who wants it.
    fn origin(&self) -> Origin {
        Origin::ControlPlane
    }

    /// Whose secrets its pods get; `None` for what gets none.
    fn workload_identity(&self) -> Option<WorkloadIdentity> {
        None
    }

    /// Pods wanted, at least; `None` for what has no pods.
    fn replicas(&self) -> Option<u32> {
        None
    }

    /// Which object the primary one is.
    fn reference(&self) -> ObjectRef;

    /// The primary object, given what is live in its place.
    fn render(&self, rules: &Rules, live: Option<&LiveObject>, keep: Keep) -> Rendered;

    /// [`Self::render`], while these kinds may not be listed: what their objects may decide is left
    /// to them (D38b).
    fn render_unsure(
        &self,
        rules: &Rules,
        live: Option<&LiveObject>,
        keep: Keep,
        _unknown: &BTreeSet<Resource>,
    ) -> Rendered {
        self.render(rules, live, keep)
    }

    /// The kinds of what hangs on the primary object.
    fn dependant_kinds(&self) -> &'static [Resource] {
        &[]
    }

    /// See [`Desired::dependants`].
    fn dependants(&self, _rules: &Rules, _owner: &LiveObject) -> Vec<Rendered> {
        Vec::new()
    }

    /// See [`Desired::unneeded`].
    fn unneeded(&self) -> Vec<ObjectRef> {
        Vec::new()
    }

    fn warnings(&self) -> &[Invalid] {
        &[]
    }
}

impl Desired {
    /// The object the state is about.
    pub fn key(&self) -> &ObjectKey {
        self.kind().key()
    }

    /// The control plane's id of it.
    pub fn id(&self) -> &Arc<str> {
        self.kind().id()
    }

    /// Whose business it is.
    pub const fn controller(&self) -> Controller {
        match self {
            Self::Deployment(_) => Controller::Deployments,
            Self::Sentinel(_) => Controller::Sentinels,
            Self::CiliumNetworkPolicy(_) => Controller::Cilium,
        }
    }

    /// Pods wanted, with autoscaling at least that many; `None` for what has no pods.
    pub fn replicas(&self) -> Option<u32> {
        self.kind().replicas()
    }

    /// The shared objects that must be in place before the workload is written (D14); see
    /// [`can_do_without`].
    pub fn needs(&self, rules: &Rules) -> Vec<SharedKey> {
        shared_keys(&self.key().namespace, &self.member(), rules)
    }

    /// Which object the primary one is.
    pub fn reference(&self) -> ObjectRef {
        self.kind().reference()
    }

    /// The primary object, given what is live in its place. A pod template that differs in form
    /// alone is kept where its pods would roll.
    pub fn render(&self, rules: &Rules, live: Option<&LiveObject>) -> Rendered {
        self.render_keeping(rules, live, Keep::EqualState)
    }

    /// The same, with a say in what is kept.
    pub fn render_keeping(&self, rules: &Rules, live: Option<&LiveObject>, keep: Keep) -> Rendered {
        self.kind().render(rules, live, keep)
    }

    /// The objects that hang on the live primary one, in the order in which they are applied.
    pub fn dependants(&self, rules: &Rules, owner: &LiveObject) -> Vec<Rendered> {
        self.kind().dependants(rules, owner)
    }

    /// What may hang on the primary object because an earlier state needed it, and this one does
    /// not.
    pub fn unneeded(&self) -> Vec<ObjectRef> {
        self.kind().unneeded()
    }

    /// What it contributes to the shared objects of its namespace.
    pub fn member(&self) -> Member {
        self.kind().member().of(self.kind().origin())
    }

    /// Whose secrets its pods get (D50); `None` for what gets none.
    pub fn workload_identity(&self) -> Option<WorkloadIdentity> {
        self.kind().workload_identity()
    }

    /// What was wrong with the message without making it invalid.
    pub fn warnings(&self) -> &[Invalid] {
        self.kind().warnings()
    }
}

/// What the pods of a live object say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What the control plane is to be told.
    pub report: Report,
    /// Living pods made from another template than the live one (D16).
    pub outdated: usize,
    /// Why pods cannot start, in the kubelet's words.
    pub config_error: Option<Arc<str>>,
}

/// What differs between controllers about the objects in the cluster.
trait LiveKind: Sync {
    /// The kind of the objects the control plane speaks about.
    fn primary(&self) -> Resource;

    /// The label that holds the control plane's id of an object.
    fn id_label(&self) -> &'static str;

    /// Everything that is listed and watched, the primary kind first.
    fn watches(&self, rules: &Rules) -> Vec<WatchSpec>;

    /// What a live primary object contributes to shared objects.
    fn member(&self, live: &LiveObject) -> Option<Member>;

    /// The workload that a live object of another kind hangs on.
    fn workload_of(&self, _live: &LiveObject) -> Option<ObjectKey> {
        None
    }

    /// What may hang on a primary object without going when it goes, in the order in which it is
    /// deleted before it.
    fn deleted_first(&self, _key: &ObjectKey) -> Vec<ObjectRef> {
        Vec::new()
    }

    /// What names a live object in [`Self::pod_owner`].
    fn owner(&self, live: &LiveObject) -> Option<Arc<str>> {
        Some(Arc::clone(&live.uid))
    }

    /// What names the owner of a pod.
    fn pod_owner(&self, pod: &PodDigest) -> Option<Arc<str>> {
        pod.owner.clone()
    }

    /// Whether what is reported follows from the status of the object itself, and not of its pods
    /// alone.
    fn is_observed_by_status(&self) -> bool {
        false
    }

    /// Whether every pod wanted runs the live template and is available.
    fn is_rolled_out(&self, _live: &LiveObject) -> bool {
        true
    }

    /// What to report; `None` when nothing ever is.
    fn observe(
        &self,
        _live: &LiveObject,
        _pods: &[&PodDigest],
        _rules: &Rules,
    ) -> Option<Observation> {
        None
    }

    /// The pod to replace next, if any (D16).
    fn outdated_pod<'a>(
        &self,
        _live: &LiveObject,
        _pods: &[&'a PodDigest],
        _unix_seconds: u64,
    ) -> Option<&'a PodDigest> {
        None
    }
}

impl Controller {
    /// The kind of the objects the control plane speaks about.
    pub fn primary(self) -> Resource {
        live_kind(self).primary()
    }

    /// The object of a workload of this name.
    pub fn primary_of(self, key: &ObjectKey) -> ObjectRef {
        let (namespace, name) = (Arc::clone(&key.namespace), Arc::clone(&key.name));
        ObjectRef::new(self.primary(), namespace, name)
    }

    /// Everything the controller lists and watches, its primary kind first.
    pub fn watches(self, rules: &Rules) -> Vec<WatchSpec> {
        live_kind(self).watches(rules)
    }

    /// Whether the control plane takes reports about these objects.
    pub const fn has_reports(self) -> bool {
        match self {
            Self::Deployments | Self::Sentinels => true,
            Self::Cilium => false,
        }
    }

    /// What a live workload contributes; `None` when its labels do not say.
    pub fn member_of_live(self, live: &LiveObject) -> Option<Member> {
        let member = live_kind(self).member(live)?;
        Some(member.of(crate::origin::of_live(live)))
    }

    /// The workload that a live object of another than the primary kind hangs on; `None` for what
    /// belongs to none.
    pub fn workload_of_dependant(self, live: &LiveObject) -> Option<ObjectKey> {
        live_kind(self).workload_of(live)
    }

    /// What may hang on a workload without going when it goes, in the order in which it is deleted
    /// before it.
    pub fn deleted_first(self, key: &ObjectKey) -> Vec<ObjectRef> {
        live_kind(self).deleted_first(key)
    }

    /// The first of these kinds, none of which may be listed, that has to be known before a workload
    /// is deleted: nobody would see what it leaves behind.
    pub fn delete_blocked_by(
        self,
        key: &ObjectKey,
        rules: &Rules,
        unknown: &BTreeSet<Resource>,
    ) -> Option<Resource> {
        let parts = self.deleted_first(key);
        first_needed(parts.iter().map(|part| part.resource), rules, unknown)
    }

    /// Whether nothing at all can be decided or reported without this kind (D38b).
    pub fn is_essential(self, resource: Resource) -> bool {
        resource == self.primary() || resource == Resource::Pod
    }

    /// What names a live workload as the owner of pods.
    pub fn owner(self, live: &LiveObject) -> Option<Arc<str>> {
        live_kind(self).owner(live)
    }

    /// What names the owner of a pod.
    pub fn pod_owner(self, pod: &PodDigest) -> Option<Arc<str>> {
        live_kind(self).pod_owner(pod)
    }

    /// Whether reports follow from the status of the objects themselves, and not of their pods
    /// alone.
    pub fn is_observed_by_status(self) -> bool {
        live_kind(self).is_observed_by_status()
    }
}

/// The first of these kinds that may not be listed and has to be known.
pub(crate) fn first_needed(
    kinds: impl IntoIterator<Item = Resource>,
    rules: &Rules,
    unknown: &BTreeSet<Resource>,
) -> Option<Resource> {
    let mut kinds = kinds.into_iter();
    kinds.find(|kind| unknown.contains(kind) && !may_lack(*kind, rules))
}

/// The control-plane id of a live object; `None` when its label is absent or empty, and then
/// nobody is asked or told about the object (D15).
pub fn question_id(controller: Controller, live: &LiveObject) -> Option<Arc<str>> {
    let label = live_kind(controller).id_label();
    live.label(label).filter(|id| !id.is_empty()).map(Arc::from)
}

/// Whether every pod of a live workload runs its template and is available; of what rolls no pods
/// that is always so.
pub fn is_rolled_out(controller: Controller, live: &LiveObject) -> bool {
    live_kind(controller).is_rolled_out(live)
}

/// What to report about a live object with these pods; `None` where nothing ever is. Pods of other
/// owners are left out (D23).
pub fn observe(
    controller: Controller,
    live: &LiveObject,
    pods: &[&PodDigest],
    rules: &Rules,
) -> Option<Observation> {
    live_kind(controller).observe(live, pods, rules)
}

/// The pod of a live object to replace next, if any (D16).
pub fn outdated_pod<'a>(
    controller: Controller,
    live: &LiveObject,
    pods: &[&'a PodDigest],
    unix_seconds: u64,
) -> Option<&'a PodDigest> {
    live_kind(controller).outdated_pod(live, pods, unix_seconds)
}
