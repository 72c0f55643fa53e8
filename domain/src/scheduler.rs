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
pub use watched::{Watched, readiness_id};

use crate::backlog::Claim;
use crate::object::LiveObject;
use crate::origin::is_marked;

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
