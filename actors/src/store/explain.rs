//! All that is known about one workload and its objects, for a person who asks why.
//!
//! What takes time is done outside of the lock: a person who looks never holds up a lane.

use krane_domain::backlog::Standing;
use krane_domain::desired::Change;
use krane_domain::drift::{self, Explanation};
use krane_domain::ids::{ObjectKey, SharedKey, WorkKey};
use krane_domain::kinds;
use krane_domain::object::{ObjectRef, Rendered};
use krane_domain::plan::{self, Leftover, Part, Plan, Role};

use super::snapshot::workload;
use super::{Store, WorkloadSnapshot};

/// A workload, why it is as it is, and what its objects lack.
#[derive(Clone, Debug)]
pub struct WorkloadExplanation {
    /// Where it stands.
    pub workload: WorkloadSnapshot,
    /// Its objects, in the order in which they are brought about.
    pub objects: Vec<ObjectExplanation>,
}

/// One object that a workload is, has or needs.
#[derive(Clone, Debug)]
pub struct ObjectExplanation {
    /// Which.
    pub reference: ObjectRef,
    /// What it is to the workload.
    pub role: Role,
    /// Whether it is there, as far as the watches show.
    pub is_live: bool,
    /// Where its own key stands, if it has one.
    pub standing: Option<Standing>,
    /// How it compares with what is wanted; absent where nothing is rendered for it.
    pub explanation: Option<Explanation>,
}

impl Store {
    /// Everything about one workload; nothing when nothing is wanted of it, or it is gone as
    /// wanted. `unix_seconds` is the wall clock, for holds.
    pub fn explain(&self, key: &ObjectKey, unix_seconds: u64) -> Option<WorkloadExplanation> {
        let (workload, state, live) = self.with(|memory| {
            let workload = workload(memory, key)?;
            let state = memory.backlog.state(key)?.clone();
            let live = memory.view.workload(key).cloned();
            Some((workload, state, live))
        })?;
        let objects = match &state.change {
            Ok(Change::Apply(desired)) => {
                let plan = Plan {
                    desired,
                    rules: &self.rules,
                    unseen: &self.unseen(),
                };
                let parts = plan.parts(live.as_deref()).into_iter();
                parts
                    .filter_map(|part| self.explain_part(&part, key, unix_seconds))
                    .collect()
            }
            Ok(Change::Delete) => self.explain_deletion(key),
            // Of a state that is no state nobody knows what it wants.
            Err(_) => {
                let mut objects = self.explain_deletion(key);
                objects.retain(|object| object.role == Role::Primary);
                objects
            }
        };
        Some(WorkloadExplanation { workload, objects })
    }

    fn explain_part(
        &self,
        part: &Part,
        key: &ObjectKey,
        unix_seconds: u64,
    ) -> Option<ObjectExplanation> {
        match part {
            Part::Shared(shared) => Some(self.explain_shared(shared, unix_seconds)),
            Part::Unneeded(reference) => {
                let found = self.former_dependant(reference, key);
                let (live, workload) = (found.live.as_deref(), found.workload.as_deref());
                let leftover = plan::leftover(live, workload, unix_seconds);
                (leftover != Leftover::Stays).then(|| bare(reference.clone(), part.role(), true))
            }
            Part::Primary(rendered) | Part::Dependant(rendered) => {
                Some(self.explain_rendered(rendered, part.role(), unix_seconds))
            }
        }
    }

    fn explain_deletion(&self, key: &ObjectKey) -> Vec<ObjectExplanation> {
        let removals = self
            .with(|memory| plan::deletion(&memory.view, key))
            .into_iter();
        removals
            .map(|it| bare(it.reference, it.role, it.live.is_some()))
            .collect()
    }

    fn explain_rendered(
        &self,
        rendered: &Rendered,
        role: Role,
        unix_seconds: u64,
    ) -> ObjectExplanation {
        let reference = &rendered.reference;
        let (live, fuse) = self.with(|memory| {
            let live = memory.view.get(reference).cloned();
            (live, memory.fuses.get(reference).cloned())
        });
        let explanation = drift::explain(rendered, live.as_deref(), fuse.as_ref(), unix_seconds);
        ObjectExplanation {
            reference: reference.clone(),
            role,
            is_live: live.is_some(),
            standing: None,
            explanation: Some(explanation),
        }
    }

    fn explain_shared(&self, shared: &SharedKey, unix_seconds: u64) -> ObjectExplanation {
        let reference = kinds::shared_reference(shared);
        let (members, standing, is_foreign) = self.with(|memory| {
            let members = memory.members_of(shared);
            let is_foreign = matches!(shared, SharedKey::Namespace(name)
                if memory.foreign_namespaces.contains(name));
            let standing = memory.backlog.standing(&WorkKey::Shared(shared.clone()));
            (members, standing, is_foreign)
        });
        // The password of a pull secret is read when it is written, and by nobody else.
        let is_compared = !matches!(shared, SharedKey::PullSecret(_)) && !is_foreign;
        let rendered = is_compared.then(|| kinds::render_shared(shared, &members, &self.rules));
        let mut found = if let Some(rendered) = rendered.flatten() {
            self.explain_rendered(&rendered, Role::Shared, unix_seconds)
        } else {
            let is_live = is_foreign || self.is_live(&reference);
            bare(reference, Role::Shared, is_live)
        };
        found.standing = standing;
        found
    }

    /// Whether the view has this object.
    pub(crate) fn is_live(&self, reference: &ObjectRef) -> bool {
        self.with(|memory| memory.view.get(reference).is_some())
    }
}

const fn bare(reference: ObjectRef, role: Role, is_live: bool) -> ObjectExplanation {
    ObjectExplanation {
        reference,
        role,
        is_live,
        standing: None,
        explanation: None,
    }
}
