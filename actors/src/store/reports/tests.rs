//! When a reporter wakes itself.

use std::time::Duration;

use super::{MAX_IN_FLIGHT, wake_at};
use crate::breaker::BreakerState;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_due_report_wakes_it_unless_another_call_has_to_end_first() {
    let open = BreakerState::Open { probe_at: at(7) };
    assert_eq!(wake_at(at(5), 0, BreakerState::Closed), Some(at(5)));
    assert_eq!(wake_at(at(5), 0, open), Some(at(7)));
    assert_eq!(wake_at(at(9), 0, open), Some(at(9)));
    assert_eq!(wake_at(at(5), 1, BreakerState::Probing), None);
    assert_eq!(wake_at(at(5), MAX_IN_FLIGHT, BreakerState::Closed), None);
}
