//! The workload itself, and when its pods may roll (D44).

use std::borrow::Cow;
use std::collections::BTreeSet;

use krane_domain::kinds::{Desired, Keep};
use krane_domain::object::{LiveObject, Resource};

use super::repair::Repair;
use super::settle::settle_as;
use super::{LaneContext, Settlement, Stop};

/// Brings the workload itself about. A template that differs in form alone is kept until its turn.
pub(super) async fn bring_about(
    desired: &Desired,
    unknown: &BTreeSet<Resource>,
    repair: Repair,
    context: &LaneContext,
) -> Result<Settlement, Stop> {
    let (key, rules) = (desired.key(), context.store.rules());
    let (mut keep, mut repair) = (Keep::EqualState, repair);
    if context.store.take_turn_to_roll(key) {
        tracing::info!(%key, "its turn: its pods roll to the template of this version of krane");
        (keep, repair) = (Keep::Nothing, Repair::No);
    }
    let wanted = |live: Option<&LiveObject>, most: Keep| {
        Cow::Owned(desired.render_unsure(rules, live, keep.min(most), unknown))
    };
    let primary = settle_as(&desired.reference(), &wanted, repair, false, context).await?;
    let is_kept = primary.keeps_template;
    context.store.note_template_kept(key, is_kept);
    Ok(primary)
}
