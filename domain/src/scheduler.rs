//! The scheduler: whoever calls `SchedulerService`, beside the control plane (D32).
//!
//! What it wants goes the same way as the states of the control plane, and the control plane wins:
//! a call changes nothing that it speaks of, and its state takes over what a call had made. The
//! scheduler's objects carry a label; it is all that is known of them after a restart.

mod call;
mod failure;
mod feed;
#[cfg(test)]
mod tests;
mod watched;

pub use call::{Call, Wish};
pub use failure::{CallFailure, CallFailureKind};
pub use feed::{Feed, Subject};
use serde_json::{Map, Value};
pub use watched::{Watched, readiness_id};

use crate::backlog::Claim;
use crate::labels;
use crate::object::LiveObject;

/// Who wants an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The control plane.
    #[default]
    ControlPlane,
    /// A call of the scheduler.
    Scheduler,
}

impl Origin {
    /// Adds what tells the scheduler's objects from all others to the labels of one.
    pub(crate) fn mark(self, all: &mut Map<String, Value>) {
        match self {
            Self::ControlPlane => {}
            Self::Scheduler => {
                let mark = Value::from(labels::SCHEDULER);
                all.insert(labels::DESIRED_BY.to_owned(), mark);
            }
        }
    }
}

/// Whether a live object says that the scheduler wants it.
pub fn is_marked(live: &LiveObject) -> bool {
    live.label(labels::DESIRED_BY) == Some(labels::SCHEDULER)
}

/// Who wants a live object, by what it says itself.
pub fn origin(live: &LiveObject) -> Origin {
    if is_marked(live) {
        Origin::Scheduler
    } else {
        Origin::ControlPlane
    }
}

/// Whose an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody spoke of it, and it is not there.
    Nobody,
    /// The control plane, or somebody unknown.
    ControlPlane,
    /// The scheduler.
    Scheduler,
}

/// Whose an object is, by who spoke of it last and by what of it is live. Of an object that nobody
/// spoke of yet the live one tells, as after a restart.
pub fn owner(claim: Claim, live: Option<&LiveObject>) -> Owner {
    match (claim, live) {
        (Claim::Scheduler, _) => Owner::Scheduler,
        (Claim::Nobody, None) => Owner::Nobody,
        (Claim::Nobody, Some(live)) if is_marked(live) => Owner::Scheduler,
        (Claim::ControlPlane, _) | (Claim::Nobody, Some(_)) => Owner::ControlPlane,
    }
}

impl Owner {
    /// Whether a call may change an object of this owner.
    pub const fn may_be_called(self) -> bool {
        match self {
            Self::Nobody | Self::Scheduler => true,
            Self::ControlPlane => false,
        }
    }
}
