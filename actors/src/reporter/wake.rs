//! When a reporter wakes itself.

use krane_domain::ids::Moment;

use super::MAX_IN_FLIGHT;
use crate::breaker::BreakerState;

/// When a report that is due at `due` can go out; `None` when the end of another call has to come
/// first, which wakes the reporter anyway.
pub(super) fn wake_at(due: Moment, in_flight: usize, breaker: BreakerState) -> Option<Moment> {
    if in_flight >= MAX_IN_FLIGHT {
        return None;
    }
    match breaker {
        BreakerState::Closed => Some(due),
        BreakerState::Open { probe_at } => Some(due.max(probe_at)),
        BreakerState::Probing => None,
    }
}
