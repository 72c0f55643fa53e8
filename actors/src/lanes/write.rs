//! Single writes, each followed by what the API server made of it.

use std::sync::Arc;

use krane_domain::drift::FuseMemory;
use krane_domain::object::{LiveObject, Rendered};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::Deletion;

use super::repair::Repair;
use super::{LaneContext, Settlement, Stop, refused, words, write_refused, writing_of};

/// Whether the view was shown to be stale. A server that asks for time gets it first (D49).
fn is_stale(refusal: &Refusal) -> bool {
    refusal.class == RefusalClass::Reevaluate && refusal.retry_after.is_none()
}

/// Applies. `None`: the view was stale and is fresh now, decide again.
pub(super) async fn write(
    rendered: &Rendered,
    uid: Option<&str>,
    repair: Repair,
    context: &LaneContext,
) -> Result<Option<Settlement>, Stop> {
    let reference = &rendered.reference;
    // It is ours until the apply has worked: one that failed must find that out again.
    let lost_our_label = |uid: &&str| context.store.was_ours(uid);
    let returning = uid.filter(lost_our_label);
    writing_of(reference, context)?;
    match context.cluster.apply(rendered, uid).await {
        Ok(live) => {
            if let Some(uid) = returning {
                context.store.note_label_restored(uid);
            }
            context.metrics.apply_writes.inc();
            if repair.is_drift() {
                context.metrics.drift_repaired.inc();
            }
            let fuse = FuseMemory::after_apply(rendered, &live);
            let live = Arc::new(live);
            let now = context.board.now();
            context.store.note_applied(reference, &live, fuse, now);
            let repaired = repair.edit();
            Ok(Some(Settlement {
                wrote: true,
                repaired,
                live: Some(live),
                is_deferred: false,
                keeps_template: rendered.keeps_template,
            }))
        }
        Err(refusal) if is_stale(&refusal) => {
            refresh(rendered, context).await?;
            Ok(None)
        }
        Err(refusal) => {
            if refusal.class == RefusalClass::NamespaceMissing {
                context.store.note_namespace_gone(&reference.namespace);
            }
            Err(write_refused(&format!("applying {reference}"), &refusal).into())
        }
    }
}

/// Takes over what others own where only krane may own anything. `false`: the view was stale and
/// is fresh now, decide again.
pub(super) async fn adopt(
    rendered: &Rendered,
    uid: &str,
    context: &LaneContext,
) -> Result<bool, Stop> {
    let reference = &rendered.reference;
    writing_of(reference, context)?;
    match context.cluster.adopt(reference, uid).await {
        Ok(live) => {
            context.metrics.apply_writes.inc();
            context.store.note_live_object(live);
            Ok(true)
        }
        Err(refusal) if is_stale(&refusal) => {
            refresh(rendered, context).await?;
            Ok(false)
        }
        Err(refusal) => Err(write_refused(&format!("taking over {reference}"), &refusal).into()),
    }
}

/// Reads the object again, because the view was shown to be stale.
pub(super) async fn refresh(
    rendered: &Rendered,
    context: &LaneContext,
) -> Result<Option<Arc<LiveObject>>, Stop> {
    let reference = &rendered.reference;
    let fresh = context.cluster.get(reference).await;
    let now = context.board.now();
    match fresh {
        Ok(Some(live)) => {
            let live = Arc::new(live);
            context.store.note_live_object(Arc::clone(&live));
            Ok(Some(live))
        }
        Ok(None) => {
            context.store.note_not_found(reference, now);
            Ok(None)
        }
        Err(refusal) => Err(refused(&format!("reading {reference}"), &refusal).into()),
    }
}

/// Deletes a live object of ours, by its uid. What is on its way out already is left to go.
pub(super) async fn delete(live: &LiveObject, context: &LaneContext) -> Result<Deletion, Stop> {
    let reference = &live.reference;
    if !live.is_ours() {
        return Err(words::not_ours(&reference.to_string()).into());
    }
    if live.is_terminating {
        return Err(words::still_there(&reference.to_string()).into());
    }
    writing_of(reference, context)?;
    match context.cluster.delete(reference, &live.uid).await {
        Ok(Deletion::Begun) => {
            context.metrics.apply_deletes.inc();
            context.store.note_delete_begun(live);
            Ok(Deletion::Begun)
        }
        Ok(Deletion::Gone) => {
            context.metrics.apply_deletes.inc();
            let now = context.board.now();
            context.store.note_deleted(live, now);
            Ok(Deletion::Gone)
        }
        Err(refusal) => Err(write_refused(&format!("deleting {reference}"), &refusal).into()),
    }
}
