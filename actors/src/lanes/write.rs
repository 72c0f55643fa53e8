//! Single writes, each followed by what the API server made of it.

use std::sync::Arc;

use krane_domain::drift::FuseMemory;
use krane_domain::ids::WorkKey;
use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_domain::planted::{Bug, is_planted};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::view;
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
    let lost_our_label = |uid: &&str| context.store.with(|memory| memory.view.was_ours(uid));
    let returning = uid.filter(lost_our_label);
    writing_of(reference, context)?;
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
                    if matches!(key, WorkKey::Shared(_))
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
                forget_namespace(rendered, context);
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
            context.store.with(|memory| {
                let effects = memory.view.insert(live);
                memory.observe(effects.observe);
            });
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
    let uid = if is_planted(Bug::DeleteWithoutUid) {
        ""
    } else {
        &*live.uid
    };
    match context.cluster.delete(reference, uid).await {
        Ok(Deletion::Begun) => {
            context.metrics.apply_deletes.inc();
            context
                .store
                .with(|memory| memory.view.mark_leaving(reference, &live.uid));
            Ok(Deletion::Begun)
        }
        Ok(Deletion::Gone) => {
            context.metrics.apply_deletes.inc();
            let now = context.board.now();
            context.store.with(|memory| {
                memory.fuses.remove(reference);
                let effects = memory.view.remove(reference, &live.uid, view::GONE);
                memory.observe(effects.observe);
                for key in effects.look {
                    if matches!(key, WorkKey::Shared(_)) {
                        memory.backlog.look(&key, now);
                    }
                }
            });
            Ok(Deletion::Gone)
        }
        Err(refusal) => Err(write_refused(&format!("deleting {reference}"), &refusal).into()),
    }
}
