//! Who has an object's name already.

use std::sync::Arc;

use krane_domain::drift;
use krane_domain::object::{LiveObject, ObjectRef, Rendered};
use krane_domain::refusal::RefusalClass;

use super::write::refresh;
use super::{LaneContext, Stop, refused, words};

/// What is in the place of an object that no watch shows.
pub(super) enum Place {
    /// Nothing.
    Free,
    /// An object of ours that lost a label of ours, or that another agent left behind: it gets our
    /// labels.
    Ours(Arc<LiveObject>),
    /// What was there is gone or in the view by now: look again.
    Seen,
}

/// Before a create: one look at what has that name. A foreign object is left alone (D15).
pub(super) async fn place(rendered: &Rendered, context: &LaneContext) -> Result<Place, Stop> {
    let reference = &rendered.reference;
    let found = match context.cluster.metadata(reference).await {
        Ok(found) => found,
        Err(refusal) if refusal.class == RefusalClass::NamespaceMissing => None,
        Err(refusal) => return Err(refused(&format!("reading {reference}"), &refusal).into()),
    };
    match found {
        None => Ok(Place::Free),
        Some(metadata) if metadata.is_terminating => {
            Err(words::being_deleted(&reference.to_string()).into())
        }
        Some(metadata) => {
            let was_ours = context.store.was_ours(&metadata.uid);
            if metadata.is_ours() {
                let found = refresh(rendered, context).await?;
                let found = found.filter(|found| is_out_of_sight(found, context));
                Ok(found.map_or(Place::Seen, Place::Ours))
            } else if was_ours {
                let found = still_there(reference, &metadata.uid, context).await?;
                Ok(found.map_or(Place::Seen, |found| Place::Ours(Arc::new(found))))
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
    Err(words::not_ours(&reference.to_string()).into())
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
    !is_shown && !store.is_live(&found.reference)
}
