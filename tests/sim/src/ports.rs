//! The ports of one incarnation: every call and every event goes through here, is written down,
//! judged, and meets with the faults of the plan.

mod cluster;
mod control;

use std::time::Duration;

use krane_sim::hooks::{Side, Verdict};

pub(crate) use cluster::ClusterPort;
pub(crate) use control::ControlPort;

use crate::plan::{CallFault, ms};
use crate::shared::Epoch;

/// What a fault means at either side of a call.
fn verdict<F>(
    fault: CallFault,
    side: Side,
    epoch: &Epoch,
    refusal: impl FnOnce(u8) -> F,
) -> Verdict<F> {
    match (fault, side) {
        (CallFault::DelayBefore(time), Side::Before)
        | (CallFault::DelayAfter(time), Side::After) => Verdict::Delay(ms(time)),
        (CallFault::Refuse(how), Side::Before) => Verdict::Fail(refusal(how)),
        (CallFault::LoseAnswer, Side::After) => Verdict::LoseAnswer,
        (CallFault::Hang | CallFault::Late(_), Side::Before) => Verdict::Hang,
        (CallFault::CrashBefore, Side::Before) | (CallFault::CrashAfter, Side::After) => {
            epoch.crash();
            Verdict::Hang
        }
        _ => Verdict::Proceed,
    }
}

pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
