//! Why a call of the scheduler is not answered with what it asks for.

use krane_domain::scheduler::{CallFailure, CallFailureKind};

pub(crate) fn unavailable(message: impl Into<String>) -> CallFailure {
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

/// Why a controller that lost what it knew answers nobody.
pub(crate) fn starting_over() -> CallFailure {
    unavailable("its controller is starting over; try again")
}
