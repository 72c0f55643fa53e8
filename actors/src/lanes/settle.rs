//! One object: compare, write only what differs, believe only what the API server answers.

use std::borrow::Cow;
use std::sync::Arc;

use krane_domain::backlog::{Trouble, TroubleKind};
use krane_domain::drift::{self, Decision};
use krane_domain::kinds::Keep;
use krane_domain::object::{LiveObject, ObjectRef, Rendered};
use krane_domain::upgrades::is_older_rendering as is_older;

use super::place::{Place, place};
use super::repair::{GONE, Repair};
use super::write::{adopt, delete, write};
use super::{LaneContext, Settlement, Stop, words, writing};
use crate::events::Happening;

/// Decisions from a fresh view before the lane gives way and tries again later.
const ROUNDS: usize = 4;
/// What the API server answered in each of them, as an HTTP status.
const CONFLICT: u16 = 409;

/// What is wanted of one object, given what is live in its place and what of it may be kept.
pub(super) type Wanted<'a> =
    dyn Fn(Option<&LiveObject>, Keep) -> Cow<'a, Rendered> + Send + Sync + 'a;

/// Makes the live object equal to what is rendered.
pub(super) async fn settle(
    rendered: &Rendered,
    repair: Repair,
    context: &LaneContext,
) -> Result<Settlement, Stop> {
    settle_from(rendered, repair, false, context).await
}

/// [`settle`], by someone who may just have seen that nothing has the object's name.
pub(super) async fn settle_from(
    rendered: &Rendered,
    repair: Repair,
    is_free: bool,
    context: &LaneContext,
) -> Result<Settlement, Stop> {
    let wanted = |_: Option<&LiveObject>, _: Keep| Cow::Borrowed(rendered);
    settle_as(&rendered.reference, &wanted, repair, is_free, context).await
}

/// [`settle`], with a rendering that may depend on what is live: it is made anew in every round.
pub(super) async fn settle_as(
    reference: &ObjectRef,
    wanted: &Wanted<'_>,
    repair: Repair,
    mut is_free: bool,
    context: &LaneContext,
) -> Result<Settlement, Stop> {
    let what = reference.to_string();
    for _ in 0..ROUNDS {
        let (live, fuse) = context.store.live_with_fuse(reference);
        let seconds = context.clock.unix_seconds();
        let rendered = &*wanted(live.as_deref(), Keep::EqualState);
        let compare = tracing::info_span!("compare", object = %what);
        let decide = || drift::decide(rendered, live.as_deref(), fuse.as_ref(), seconds);
        match compare.in_scope(decide) {
            Decision::InPlace => {
                context.metrics.apply_skipped.inc();
                return Ok(Settlement {
                    live,
                    keeps_template: rendered.keeps_template,
                    ..Settlement::default()
                });
            }
            Decision::Adopt { uid, foreign } => {
                writing(context)?;
                tracing::info!(object = %what, ?foreign, "taking over fields of others");
                let repair = repair.of(drift::fingerprint_of_foreign(&foreign));
                if repair.is_drift() {
                    context.metrics.drift_detected.inc();
                }
                if adopt(rendered, &uid, context).await? {
                    // What krane owns has changed, and with it maybe what it wants. That the state
                    // is equal proves nothing of a template that is krane's since a moment ago.
                    let live = context.store.live_object(reference);
                    let rendered = &*wanted(live.as_deref(), Keep::EarlierForm);
                    if let Some(settlement) = write(rendered, Some(&uid), repair, context).await? {
                        if repair.is_drift() {
                            let paths = foreign.iter().flat_map(|it| &it.paths);
                            let by = foreign.iter().map(|it| it.manager.clone()).collect();
                            let paths = paths.map(String::as_str);
                            context.record(Happening::repaired(reference, paths, by));
                        }
                        return Ok(settlement);
                    }
                }
            }
            Decision::Create => {
                writing(context)?;
                let place = if std::mem::take(&mut is_free) {
                    Place::Free
                } else {
                    place(rendered, context).await?
                };
                let found = match place {
                    Place::Free => None,
                    Place::Ours(found) => Some(found),
                    Place::Seen => continue,
                };
                let repair = repair.of(GONE);
                if repair.is_drift() {
                    context.metrics.drift_detected.inc();
                }
                let rendered = &*wanted(found.as_deref(), Keep::EqualState);
                let uid = found.as_ref().map(|found| &*found.uid);
                if let Some(settlement) = write(rendered, uid, repair, context).await? {
                    if repair.is_drift() {
                        context.record(Happening::repaired(reference, [], Vec::new()));
                    }
                    return Ok(settlement);
                }
            }
            Decision::Update { uid, differences } => {
                if !context.writes_older
                    && let Some(live) = live.as_ref().filter(|live| is_older(live, &differences))
                {
                    return Ok(Settlement {
                        live: Some(Arc::clone(live)),
                        is_deferred: true,
                        keeps_template: rendered.keeps_template,
                        ..Settlement::default()
                    });
                }
                writing(context)?;
                let repair = repair.of(drift::fingerprint(&differences));
                let paths: Vec<&str> = differences
                    .iter()
                    .map(|difference| difference.path.as_str())
                    .collect();
                let by = live
                    .as_deref()
                    .filter(|_| repair.is_drift())
                    .map(|live| drift::owners_of(&differences, live))
                    .unwrap_or_default();
                if repair.is_drift() {
                    context.metrics.drift_detected.inc();
                    tracing::info!(object = %what, differs = ?paths, ?by, "repairing drift");
                }
                if let Some(settlement) = write(rendered, Some(&uid), repair, context).await? {
                    if repair.is_drift() {
                        context.record(Happening::repaired(reference, paths, by));
                    }
                    if is_left_to_others(rendered, &settlement, seconds) {
                        continue;
                    }
                    return Ok(settlement);
                }
            }
            Decision::Recreate { .. } => {
                writing(context)?;
                if let Some(live) = live {
                    delete(&live, context).await?;
                }
            }
            Decision::Terminating => {
                return Err(words::being_deleted(&what).into());
            }
            Decision::NotOurs => return Err(words::not_ours(&what).into()),
            Decision::Held { until, .. } => return Err(words::held(&what, until, seconds).into()),
            Decision::Refuse(invalid) => {
                let what = format!("{what} cannot be changed to what is wanted");
                return Err(Trouble::invalid(what, &invalid).into());
            }
        }
    }
    let mut trouble = Trouble::new(
        TroubleKind::Transient,
        format!("{what} keeps changing while krane writes it"),
    )
    .remedy("it is retried");
    trouble.code = Some(CONFLICT);
    Err(trouble.into())
}

/// Whether our own apply left something for a take-over: where nobody owned anything any more, it
/// gave what was there to a manager of before.
fn is_left_to_others(rendered: &Rendered, settlement: &Settlement, seconds: u64) -> bool {
    let decision = drift::decide(rendered, settlement.live.as_deref(), None, seconds);
    matches!(decision, Decision::Adopt { .. })
}
