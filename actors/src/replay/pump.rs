//! Reads one replay, in a task of its own.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use krane_domain::desired::StreamItem;
use krane_ports::{ControlPlane, StreamEvent};
use krane_supervision::address::Own;
use tokio::time::{Instant, timeout_at};

use super::ReplayMessage;
use crate::store::{QUIET, REPLAY_LIMIT, Store};

/// Reads from version 0 until `newest` is reached, nothing comes for 10 s, or 5 min are over.
pub(super) async fn read(
    control_plane: Arc<dyn ControlPlane>,
    store: Arc<Store>,
    own: Own<ReplayMessage>,
    newest: u64,
) {
    let reading = AssertUnwindSafe(states(control_plane, store, &own, newest)).catch_unwind();
    let is_complete = reading.await.unwrap_or(false);
    own.hand_in(ReplayMessage::Ended { is_complete }).await;
}

/// Whether everything was shown, as far as can be told.
async fn states(
    control_plane: Arc<dyn ControlPlane>,
    store: Arc<Store>,
    own: &Own<ReplayMessage>,
    newest: u64,
) -> bool {
    let mut events = pin!(control_plane.watch(0).await);
    let limit = Instant::now() + REPLAY_LIMIT;
    let mut has_spoken = false;
    loop {
        store.room().await;
        let quiet_at = Instant::now() + QUIET;
        match timeout_at(quiet_at.min(limit), events.next()).await {
            Ok(Some(StreamEvent::Opened)) => {}
            Ok(Some(StreamEvent::Item(StreamItem::State(state)))) => {
                has_spoken = true;
                let version = state.version;
                own.hand_in(ReplayMessage::Shown(Box::new(state))).await;
                if version >= newest {
                    return true;
                }
            }
            // The stream has told of it.
            Ok(Some(StreamEvent::Item(StreamItem::Unnamed { .. }))) => has_spoken = true,
            Ok(Some(StreamEvent::Ended(_)) | None) => return false,
            Err(_) => return has_spoken && quiet_at <= limit,
        }
    }
}
