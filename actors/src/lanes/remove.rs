//! What is not needed any more.

use krane_domain::ids::ObjectKey;
use krane_domain::object::ObjectRef;
use krane_domain::plan::{Leftover, leftover};

use super::repair::Repair;
use super::words;
use super::write::delete;
use super::{LaneContext, Settlement, Stop};

/// Stands for the edit "made, though nobody wants it".
const UNWANTED: u64 = 1;

/// Deletes what an earlier state of this workload needed and the present one does not.
pub(super) async fn unneeded(
    reference: &ObjectRef,
    workload: &ObjectKey,
    repair: Repair,
    context: &LaneContext,
) -> Result<Settlement, Stop> {
    let former = context.store.former_dependant(reference, workload);
    let seconds = context.clock.unix_seconds();
    let verdict = leftover(former.live.as_deref(), former.workload.as_deref(), seconds);
    let found = match (verdict, former.live) {
        (Leftover::Goes, Some(found)) => found,
        (Leftover::Goes | Leftover::Stays, _) => return Ok(Settlement::default()),
        (Leftover::Held(until), _) => {
            return Err(words::held(&reference.to_string(), until, seconds).into());
        }
    };
    tracing::info!(object = %reference, "deleting what is not wanted any more");
    delete(&found, context).await?;
    if repair.is_drift() {
        context.metrics.drift_detected.inc();
        context.metrics.drift_repaired.inc();
    }
    Ok(Settlement {
        wrote: true,
        repaired: repair.of(UNWANTED).edit(),
        ..Settlement::default()
    })
}
