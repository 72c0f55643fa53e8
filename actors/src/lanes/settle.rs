//! One object: compare, write only what differs, believe only what the API server answers.

use std::borrow::Cow;
use std::sync::Arc;

use krane_domain::backlog::{Trouble, TroubleKind};
use krane_domain::drift::{self, Decision, FuseMemory};
use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_domain::planted::{Bug, is_planted};
use krane_domain::refusal::RefusalClass;
use krane_domain::upgrades::is_older_rendering as is_older;
use krane_domain::view;

use crate::events::Happening;

use super::{LaneContext, Settlement, Stop, refused, writing};

/// Decisions from a fresh view before the lane gives way and tries again later.
const ROUNDS: usize = 4;

/// Stands for the edit "deleted".
const GONE: u64 = 0;

/// What a write is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Repair {
    /// The state is brought about for the first time.
    No,
    /// The state was in place, so a difference is drift.
    Drift(u64),
    /// The object was in place; a difference is drift, or its members changed.
    DriftOrMembers(u64),
}

impl Repair {
    /// For an object of a workload.
    pub(super) const fn workload(was_settled: bool) -> Self {
        if was_settled {
            Self::Drift(GONE)
        } else {
            Self::No
        }
    }

    /// For an object that workloads share.
    pub(super) const fn shared(was_settled: bool) -> Self {
        if was_settled {
            Self::DriftOrMembers(GONE)
        } else {
            Self::No
        }
    }

    pub(super) const fn of(self, edit: u64) -> Self {
        match self {
            Self::No => Self::No,
            Self::Drift(_) => Self::Drift(edit),
            Self::DriftOrMembers(_) => Self::DriftOrMembers(edit),
        }
    }

    pub(super) const fn is_drift(self) -> bool {
        matches!(self, Self::Drift(_))
    }

    pub(super) const fn edit(self) -> Option<u64> {
        match self {
            Self::No => None,
            Self::Drift(edit) | Self::DriftOrMembers(edit) => Some(edit),
        }
    }
}

/// What is wanted of one object, given what is live in its place.
pub(super) type Wanted<'a> = dyn Fn(Option<&LiveObject>) -> Cow<'a, Rendered> + Send + Sync + 'a;

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
    let wanted = |_: Option<&LiveObject>| Cow::Borrowed(rendered);
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
        let (live, fuse) = context.store.with(|memory| {
            (
                memory.view.get(reference).cloned(),
                memory.fuses.get(reference).cloned(),
            )
        });
        let seconds = context.clock.unix_seconds();
        let rendered = &*wanted(live.as_deref());
        match drift::decide(rendered, live.as_deref(), fuse.as_ref(), seconds) {
            Decision::InPlace => {
                context.metrics.apply_skipped.inc();
                return Ok(Settlement {
                    wrote: false,
                    repaired: None,
                    live,
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
                    // What krane owns has changed, and with it maybe what it wants.
                    let live = context
                        .store
                        .with(|memory| memory.view.get(reference).cloned());
                    let rendered = &*wanted(live.as_deref());
                    if let Some(settlement) = write(rendered, Some(&uid), repair, context).await? {
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
                let rendered = &*wanted(found.as_deref());
                let uid = found.as_ref().map(|found| &*found.uid);
                if let Some(settlement) = write(rendered, uid, repair, context).await? {
                    if repair.is_drift() {
                        context.record(Happening::repaired(&rendered.reference, []));
                    }
                    return Ok(settlement);
                }
            }
            Decision::Update { uid, differences } => {
                if let Some(live) = live.as_ref().filter(|live| is_older(live, &differences))
                    && !context.store.with(|memory| memory.may_upgrade(live))
                {
                    context.metrics.apply_skipped.inc();
                    return Ok(Settlement {
                        wrote: false,
                        repaired: None,
                        live: Some(Arc::clone(live)),
                    });
                }
                writing(context)?;
                let repair = repair.of(drift::fingerprint(&differences));
                let paths: Vec<&str> = differences
                    .iter()
                    .map(|difference| difference.path.as_str())
                    .collect();
                if repair.is_drift() {
                    context.metrics.drift_detected.inc();
                    tracing::info!(object = %what, differs = ?paths, "repairing drift");
                }
                let uid = Some(&*uid).filter(|_| !is_planted(Bug::ApplyWithoutUid));
                if let Some(settlement) = write(rendered, uid, repair, context).await? {
                    if repair.is_drift() {
                        context.record(Happening::repaired(&rendered.reference, paths));
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
                return Err(being_deleted(&what).into());
            }
            Decision::NotOurs => return Err(not_ours(&what).into()),
            Decision::Held { until, .. } => return Err(held(&what, until, seconds).into()),
            Decision::Refuse(invalid) => {
                let what = format!("{what} cannot be changed to what is wanted");
                return Err(Trouble::invalid(what, &invalid).into());
            }
        }
    }
    Err(Trouble::new(
        TroubleKind::Transient,
        format!("{what} keeps changing while krane writes it"),
    )
    .remedy("it is retried")
    .into())
}

/// Whether our own apply left something for a take-over: where nobody owned anything any more, it
/// gave what was there to a manager of before.
fn is_left_to_others(rendered: &Rendered, settlement: &Settlement, seconds: u64) -> bool {
    let decision = drift::decide(rendered, settlement.live.as_deref(), None, seconds);
    matches!(decision, Decision::Adopt { .. })
}

/// What is in the place of an object that no watch shows.
enum Place {
    /// Nothing.
    Free,
    /// An object of ours that lost a label of ours, or that another agent left behind: it gets our
    /// labels.
    Ours(Arc<LiveObject>),
    /// What was there is gone or in the view by now: look again.
    Seen,
}

/// Before a create: one look at what has that name. A foreign object is left alone (D15).
async fn place(rendered: &Rendered, context: &LaneContext) -> Result<Place, Stop> {
    let reference = &rendered.reference;
    let found = match context.cluster.metadata(reference).await {
        Ok(found) => found,
        Err(refusal) if refusal.class == RefusalClass::NamespaceMissing => None,
        Err(refusal) => return Err(refused(&format!("reading {reference}"), &refusal).into()),
    };
    match found {
        None => Ok(Place::Free),
        Some(metadata) if metadata.is_terminating => {
            Err(being_deleted(&reference.to_string()).into())
        }
        Some(metadata) => {
            let was_ours = context
                .store
                .with(|memory| memory.view.was_ours(&metadata.uid));
            if metadata.is_ours() {
                let found = refresh(rendered, context).await?;
                let found = found.filter(|found| is_out_of_sight(found, context));
                Ok(found.map_or(Place::Seen, Place::Ours))
            } else if was_ours {
                let found = still_there(reference, &metadata.uid, context).await?;
                Ok(found.map_or(Place::Seen, |found| Place::Ours(Arc::new(found))))
            } else if is_planted(Bug::WritesWhatIsNotOurs) {
                Ok(Place::Free)
            } else {
                left_behind(rendered, &metadata.uid, context).await
            }
        }
    }
}

/// The whole object of this uid, if it still has the name.
async fn still_there(
    reference: &ObjectRef,
    uid: &str,
    context: &LaneContext,
) -> Result<Option<LiveObject>, Stop> {
    let found = context.cluster.get(reference).await;
    let found = found.map_err(|refusal| refused(&format!("reading {reference}"), &refusal))?;
    Ok(found.filter(|found| *found.uid == *uid))
}

/// What another agent left behind under the name of ours is taken over; anything else is not ours.
async fn left_behind(rendered: &Rendered, uid: &str, context: &LaneContext) -> Result<Place, Stop> {
    let reference = &rendered.reference;
    if drift::may_be_left_behind(reference) {
        let found = still_there(reference, uid, context).await?;
        if let Some(found) = found.filter(|found| drift::is_left_behind(rendered, found)) {
            tracing::info!(object = %reference, "taking over what another agent left behind");
            return Ok(Place::Ours(Arc::new(found)));
        }
    }
    Err(not_ours(&reference.to_string()).into())
}

/// Applies. `None`: the view was stale and is fresh now, decide again.
async fn write(
    rendered: &Rendered,
    uid: Option<&str>,
    repair: Repair,
    context: &LaneContext,
) -> Result<Option<Settlement>, Stop> {
    let reference = &rendered.reference;
    // It is ours until the apply has worked: one that failed must find that out again.
    let lost_our_label = |uid: &&str| context.store.with(|memory| memory.view.was_ours(uid));
    let returning = uid.filter(lost_our_label);
    writing(context)?;
    match context.cluster.apply(rendered, uid).await {
        Ok(live) => {
            if let Some(uid) = returning {
                context.store.with(|memory| memory.view.restore(uid));
            }
            context.metrics.apply_writes.inc();
            if repair.is_drift() {
                context.metrics.drift_repaired.inc();
            }
            let fuse = FuseMemory::after_apply(rendered, &live);
            let live = Arc::new(live);
            let now = context.board.now();
            context.store.with(|memory| {
                memory.kinds_missing.remove(&reference.resource);
                match fuse {
                    Some(fuse) => memory.fuses.insert(reference.clone(), fuse),
                    None => memory.fuses.remove(reference),
                };
                let effects = memory.view.insert(Arc::clone(&live));
                memory.observe(effects.observe);
                // What our own write did to the view needs no second look; what it did to
                // objects shared with others does.
                for key in effects.look {
                    if matches!(key, krane_domain::ids::WorkKey::Shared(_))
                        && reference.resource == context.store.controller().primary()
                    {
                        memory.backlog.look(&key, now);
                    }
                }
            });
            let repaired = repair.edit();
            Ok(Some(Settlement {
                wrote: true,
                repaired,
                live: Some(live),
            }))
        }
        Err(refusal) if refusal.class == RefusalClass::Reevaluate => {
            refresh(rendered, context).await?;
            Ok(None)
        }
        Err(refusal) => {
            if refusal.class == RefusalClass::NamespaceMissing {
                forget_namespace(rendered, context);
            }
            Err(refused(&format!("applying {reference}"), &refusal).into())
        }
    }
}

/// Takes over what others own where only krane may own anything. `false`: the view was stale and
/// is fresh now, decide again.
async fn adopt(rendered: &Rendered, uid: &str, context: &LaneContext) -> Result<bool, Stop> {
    let reference = &rendered.reference;
    writing(context)?;
    match context.cluster.adopt(reference, uid).await {
        Ok(live) => {
            context.metrics.apply_writes.inc();
            context.store.with(|memory| {
                let effects = memory.view.insert(live);
                memory.observe(effects.observe);
            });
            Ok(true)
        }
        Err(refusal) if refusal.class == RefusalClass::Reevaluate => {
            refresh(rendered, context).await?;
            Ok(false)
        }
        Err(refusal) => Err(refused(&format!("taking over {reference}"), &refusal).into()),
    }
}

/// Whether no watch shows this live object, since it lacks a label that they select by: its absence
/// from the view says nothing. Absence of one that they do show means that the read was old.
fn is_out_of_sight(found: &LiveObject, context: &LaneContext) -> bool {
    let store = &context.store;
    let watches = store.controller().watches(store.rules());
    let mut watches = watches
        .iter()
        .filter(|watch| watch.resource == found.reference.resource);
    let is_shown = watches.any(|watch| watch.selects(&found.labels));
    !is_shown && store.with(|memory| memory.view.get(&found.reference).is_none())
}

/// Reads the object again, because the view was shown to be stale.
async fn refresh(
    rendered: &Rendered,
    context: &LaneContext,
) -> Result<Option<Arc<LiveObject>>, Stop> {
    let reference = &rendered.reference;
    let fresh = context.cluster.get(reference).await;
    let now = context.board.now();
    match fresh {
        Ok(Some(live)) => {
            let live = Arc::new(live);
            context.store.with(|memory| {
                let effects = memory.view.insert(Arc::clone(&live));
                memory.observe(effects.observe);
            });
            Ok(Some(live))
        }
        Ok(None) => {
            context.store.with(|memory| {
                let effects = memory.view.doubt(reference);
                memory.take_effects(effects, now);
            });
            Ok(None)
        }
        Err(refusal) => Err(refused(&format!("reading {reference}"), &refusal).into()),
    }
}

/// The namespace is gone although it looked in place: it has to be put in place again.
fn forget_namespace(rendered: &Rendered, context: &LaneContext) {
    let namespace = &rendered.reference.namespace;
    let reference = ObjectRef::new(Resource::Namespace, "", Arc::clone(namespace));
    context.store.with(|memory| {
        memory.foreign_namespaces.remove(namespace);
        memory.view.doubt(&reference);
    });
}

/// Deletes a live object of ours, by its uid.
pub(super) async fn delete(live: &LiveObject, context: &LaneContext) -> Result<(), Stop> {
    let reference = &live.reference;
    if !live.is_ours() {
        return Err(not_ours(&reference.to_string()).into());
    }
    if live.is_terminating {
        return Err(Trouble::new(
            TroubleKind::Waiting,
            format!("{reference} is being deleted"),
        )
        .into());
    }
    writing(context)?;
    let uid = if is_planted(Bug::DeleteWithoutUid) {
        ""
    } else {
        &*live.uid
    };
    match context.cluster.delete(reference, uid).await {
        Ok(()) => {
            context.metrics.apply_deletes.inc();
            let now = context.board.now();
            context.store.with(|memory| {
                memory.fuses.remove(reference);
                let effects = memory.view.remove(reference, &live.uid, view::GONE);
                memory.observe(effects.observe);
                for key in effects.look {
                    if matches!(key, krane_domain::ids::WorkKey::Shared(_)) {
                        memory.backlog.look(&key, now);
                    }
                }
            });
            Ok(())
        }
        Err(refusal) => Err(refused(&format!("deleting {reference}"), &refusal).into()),
    }
}

fn not_ours(what: &str) -> Trouble {
    Trouble::new(
        TroubleKind::Misconfigured,
        format!(
            "{what} exists without the label app.kubernetes.io/managed-by=krane and is left alone"
        ),
    )
    .remedy("delete it or give it that label")
}

/// Something of that name is on its way out.
pub(super) fn being_deleted(what: &str) -> Trouble {
    Trouble::new(TroubleKind::Waiting, format!("{what} is being deleted"))
        .remedy("it is made again when it is gone")
}

pub(super) fn held(what: &str, until: u64, seconds: u64) -> Trouble {
    let left = until.saturating_sub(seconds);
    let mut trouble = Trouble::new(
        TroubleKind::Held,
        format!("{what} is on hold for another {left} s"),
    )
    .remedy("remove the annotation krane.unkey.com/hold to end it now");
    trouble.retry_after = Some(std::time::Duration::from_secs(left.clamp(1, 60)));
    trouble
}
