//! The workload itself, and when its pods may roll (D44).

use std::borrow::Cow;

use krane_domain::kinds::Keep;
use krane_domain::object::LiveObject;
use krane_domain::plan::Plan;

use super::repair::Repair;
use super::settle::settle_as;
use super::{LaneContext, Settlement, Stop};

/// Brings the workload itself about. A template that differs in form alone is kept until its turn.
pub(super) async fn bring_about(
    plan: Plan<'_>,
    repair: Repair,
    context: &LaneContext,
) -> Result<Settlement, Stop> {
    let key = plan.desired.key();
    let (mut keep, mut repair) = (Keep::EqualState, repair);
    if context.store.take_turn_to_roll(key) {
        tracing::info!(%key, "its turn: its pods roll to the template of this version of krane");
        (keep, repair) = (Keep::Nothing, Repair::No);
    }
    let wanted =
        |live: Option<&LiveObject>, most: Keep| Cow::Owned(plan.primary(live, keep.min(most)));
    let primary = settle_as(&plan.desired.reference(), &wanted, repair, false, context).await?;
    let is_kept = primary.keeps_template;
    context.store.note_template_kept(key, is_kept);
    Ok(primary)
}
