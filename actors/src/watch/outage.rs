//! Tells an outage of the Kubernetes API once, for all controllers.

use crate::events::Happening;
use crate::status::StatusBoard;
use crate::store::Store;

/// Looks at the watches of this controller after one of them changed.
pub(super) fn look(store: &Store, board: &StatusBoard) {
    let silence = store.api_server_silence();
    let controller = store.controller();
    match board.api_server().note(controller, silence, board.now()) {
        None => {}
        Some(Happening::ApiServerRecovered { took }) => {
            tracing::info!(seconds = took.as_secs(), "the Kubernetes API answers again");
            board.record(None, Happening::ApiServerRecovered { took });
        }
        Some(lost) => {
            tracing::warn!("the Kubernetes API does not answer");
            board.record(None, lost);
        }
    }
}
