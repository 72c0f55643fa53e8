//! The plan of a desired state: its objects in the order in which they are brought about, and what
//! each is to the workload. Whoever writes, explains or foretells goes by this order.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::drift;
use crate::ids::{ObjectKey, SharedKey};
use crate::kinds::{Desired, Keep, Rules, first_needed, may_lack, shared_reference};
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::view::View;

#[cfg(test)]
mod tests;

/// What an object is to a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Needed first, and shared with other workloads.
    Shared,
    /// An earlier state needed it; it has to go.
    Unneeded,
    /// The workload itself.
    Primary,
    /// Hangs on it.
    Dependant,
}

impl Role {
    /// Its name, of a closed set.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Unneeded => "unneeded",
            Self::Primary => "primary",
            Self::Dependant => "dependant",
        }
    }
}

/// One object of a plan, with what is wanted of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Has to be in place before anything else is written (D14).
    Shared(SharedKey),
    /// Goes if [`leftover`] says so.
    Unneeded(ObjectRef),
    /// The workload itself, as it is rendered over what is live.
    Primary(Box<Rendered>),
    /// Hangs on the live workload, as it is rendered.
    Dependant(Box<Rendered>),
}

impl Part {
    /// What the object is to the workload.
    pub const fn role(&self) -> Role {
        match self {
            Self::Shared(_) => Role::Shared,
            Self::Unneeded(_) => Role::Unneeded,
            Self::Primary(_) => Role::Primary,
            Self::Dependant(_) => Role::Dependant,
        }
    }

    /// Which object it is.
    pub fn reference(&self) -> ObjectRef {
        match self {
            Self::Shared(key) => shared_reference(key),
            Self::Unneeded(reference) => reference.clone(),
            Self::Primary(rendered) | Self::Dependant(rendered) => rendered.reference.clone(),
        }
    }
}

/// The kinds of objects that no watch shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// May not be listed (D38b).
    pub unknown: BTreeSet<Resource>,
    /// Not known to the cluster (D18).
    pub missing: BTreeSet<Resource>,
}

/// The plan of one desired state.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The state.
    pub desired: &'a Desired,
    /// What is configured.
    pub rules: &'a Rules,
    /// What is out of sight.
    pub unseen: &'a Unseen,
}

impl Plan<'_> {
    /// All parts, given the live workload. Without one nothing hangs on it yet.
    pub fn parts(&self, live: Option<&LiveObject>) -> Vec<Part> {
        let shared = self.shared().into_iter().map(Part::Shared);
        let unneeded = self.unneeded().into_iter().map(Part::Unneeded);
        let primary = Part::Primary(Box::new(self.primary(live, Keep::EqualState)));
        let dependants = live.map(|live| self.dependants(live)).unwrap_or_default();
        let dependants = dependants
            .into_iter()
            .map(|rendered| Part::Dependant(Box::new(rendered)));
        let before = shared.chain(unneeded);
        before.chain([primary]).chain(dependants).collect()
    }

    /// What has to be in place before anything else is written (D14).
    pub fn shared(&self) -> Vec<SharedKey> {
        self.desired.needs(self.rules)
    }

    /// What may be left of an earlier state; [`leftover`] says of each whether it goes. It may work
    /// against what is wanted now, so it goes first. Of a workload that was out of sight nobody knew
    /// what belongs to it: once more when it is in place.
    pub fn unneeded(&self) -> Vec<ObjectRef> {
        self.desired.unneeded()
    }

    /// The workload itself, given what is live in its place and what of that may be kept.
    pub fn primary(&self, live: Option<&LiveObject>, keep: Keep) -> Rendered {
        let kind = self.desired.kind();
        kind.render_unsure(self.rules, live, keep, &self.unseen.unknown)
    }

    /// What hangs on the live workload, without what may be missing where its kind is missing, or
    /// may not be listed.
    pub fn dependants(&self, owner: &LiveObject) -> Vec<Rendered> {
        let mut dependants = self.desired.dependants(self.rules, owner);
        dependants.retain(|rendered| {
            let kind = rendered.reference.resource;
            let unseen = self.unseen;
            let is_unseen = unseen.unknown.contains(&kind) || unseen.missing.contains(&kind);
            !(is_unseen && may_lack(kind, self.rules))
        });
        dependants
    }

    /// The kind that has to be listed before anything of the state is written, if there is one. What
    /// it shares with others has keys of its own.
    pub fn blocked_by(&self) -> Option<Resource> {
        let kinds = self.desired.kind().dependant_kinds().iter();
        first_needed(kinds.copied(), self.rules, &self.unseen.unknown)
    }
}

/// What becomes of an object that an earlier state may have needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// Nothing: it is not there, not krane's, of a former workload, or going already.
    Stays,
    /// A person put it on hold until then, in seconds since the Unix epoch.
    Held(u64),
    /// It is deleted.
    Goes,
}

/// What becomes of `found`, which a workload's state does not need. Only what carries krane's label
/// and belongs to the live workload goes; what belongs to a former one goes with it.
pub fn leftover(
    found: Option<&LiveObject>,
    workload: Option<&LiveObject>,
    unix_seconds: u64,
) -> Leftover {
    let (Some(found), Some(workload)) = (found, workload) else {
        return Leftover::Stays;
    };
    if !found.is_ours() || found.is_terminating || !found.is_owned_by(&workload.uid) {
        return Leftover::Stays;
    }
    drift::held_until(found, unix_seconds).map_or(Leftover::Goes, Leftover::Held)
}

/// An object that a `delete` state removes.
#[derive(Clone, Debug)]
pub struct Removal {
    /// What it is to the workload.
    pub role: Role,
    /// Which.
    pub reference: ObjectRef,
    /// What is there of it.
    pub live: Option<Arc<LiveObject>>,
}

/// What a `delete` state removes, in order: what of its parts is there and may be listed, and the
/// workload last, there or not.
pub fn deletion(view: &View, key: &ObjectKey) -> Vec<Removal> {
    let controller = view.controller();
    let primary = controller.primary_of(key);
    let first = controller.deleted_first(key).into_iter();
    let first = first.map(|part| (Role::Dependant, part));
    let removals = first.chain([(Role::Primary, primary)]);
    let removals = removals.map(|(role, reference)| Removal {
        role,
        live: view.get(&reference).cloned(),
        reference,
    });
    let is_there = |it: &Removal| it.live.is_some() && !view.is_unknown(it.reference.resource);
    removals
        .filter(|it| it.role == Role::Primary || is_there(it))
        .collect()
}
