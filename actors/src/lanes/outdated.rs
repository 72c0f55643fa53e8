//! Replaces pods of an older template that do not serve, one by one (D16).

use std::time::Duration;

use krane_domain::ids::ObjectKey;
use krane_domain::object::{ObjectRef, Resource};
use krane_ports::Deletion;

use super::{LaneContext, Stop, write_refused, writing};

/// At least this long between two pods of one workload.
const PACE: Duration = Duration::from_secs(10);

/// Deletes one pod of this workload, if one is due. Its ReplicaSet makes a new one.
pub(super) async fn replace_one(key: &ObjectKey, context: &LaneContext) -> Result<(), Stop> {
    let now = context.board.now();
    let seconds = context.clock.unix_seconds();
    let Some(pod) = context.store.pod_to_replace(key, PACE, now, seconds) else {
        return Ok(());
    };
    writing(context)?;
    let reference = ObjectRef::new(Resource::Pod, pod.namespace, pod.name);
    context.store.note_pod_replaced(key, now);
    tracing::info!(object = %reference, "replacing a pod of an older template that is not ready");
    let deleted = context.cluster.delete(&reference, &pod.uid).await;
    match deleted {
        Ok(Deletion::Begun | Deletion::Gone) => Ok(()),
        Err(refusal) => Err(write_refused(&format!("deleting {reference}"), &refusal).into()),
    }
}
