//! Calls of the scheduler (D32): what the RPC port asks for, and what it is answered.
//!
//! A call becomes a message to the reconciler of its kind and is answered once its lane has ended.
//! From then on its object is looked after like any other; nothing here remembers it.

mod desk;
mod watching;

use krane_domain::scheduler::{CallFailure, CallFailureKind};

pub use desk::{CALL_DEADLINE, Desk, Front};
pub use watching::MOST_FOLLOWERS;
pub(crate) use watching::{Follower, Followers};

fn unavailable(message: impl Into<String>) -> CallFailure {
    CallFailure::new(CallFailureKind::Unavailable, message)
}

/// Why a process that does not write does nothing for the scheduler either.
pub(crate) fn standby() -> CallFailure {
    unavailable("this krane is on standby: another one holds the lease")
}

/// Why a process on its way out begins nothing.
pub(crate) fn stopping() -> CallFailure {
    unavailable("krane is stopping; call again for the next one")
}

/// Why nothing is known of the cluster at present.
pub(crate) fn starting() -> CallFailure {
    unavailable("krane does not know the cluster yet; try again in a moment")
}
