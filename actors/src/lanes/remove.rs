//! What is not needed any more.

use krane_domain::drift;
use krane_domain::ids::ObjectKey;
use krane_domain::object::ObjectRef;

use super::repair::Repair;
use super::words;
use super::write::delete;
use super::{LaneContext, Settlement, Stop};

/// Stands for the edit "made, though nobody wants it".
const UNWANTED: u64 = 1;

/// Deletes what an earlier state of this workload needed and the present one does not: only what
/// carries our label and belongs to the live workload. What belongs to a former one goes with it.
pub(super) async fn unneeded(
    reference: &ObjectRef,
    workload: &ObjectKey,
    repair: Repair,
    context: &LaneContext,
) -> Result<Settlement, Stop> {
    let former = context.store.former_dependant(reference, workload);
    let found = former.live;
    let found = found.filter(|found| found.is_ours() && !found.is_terminating);
    let (Some(found), Some(owner)) = (found, former.workload) else {
        return Ok(Settlement::default());
    };
    if !found.is_owned_by(&owner.uid) {
        return Ok(Settlement::default());
    }
    let seconds = context.clock.unix_seconds();
    if let Some(until) = drift::held_until(&found, seconds) {
        return Err(words::held(&reference.to_string(), until, seconds).into());
    }
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
