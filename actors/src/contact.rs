//! Whether the control plane can be reached, as every call and every stream message shows it.
//!
//! A sign of life closes the breaker at once, whoever noticed it (D26a), and wakes the reporter:
//! what it held back is due. After a long silence the other side may have forgotten everything
//! (D26), so that everything live is said again.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::{Controller, Moment};
use krane_supervision::address::Address;

use crate::events::Happening;
use crate::reporter::ReporterMessage;
use crate::status::StatusBoard;
use crate::store::Store;

/// One controller's contact with the control plane.
#[derive(Clone, Debug)]
pub struct Contact {
    store: Arc<Store>,
    reporter: Address<ReporterMessage>,
    board: StatusBoard,
}

impl Contact {
    /// The contact of the controller with this store and this reporter.
    pub fn new(store: Arc<Store>, reporter: Address<ReporterMessage>, board: StatusBoard) -> Self {
        Self {
            store,
            reporter,
            board,
        }
    }

    /// The control plane gave a sign of life.
    pub fn heard(&self, now: Moment) {
        self.heard_after(Duration::ZERO, now);
    }

    /// It gave one after a silence of at least `silence`.
    pub fn heard_after(&self, silence: Duration, now: Moment) {
        if self.store.note_sign_of_life(silence, now) {
            // A full mailbox already makes the reporter look at what is due.
            let _ = self.reporter.try_send(ReporterMessage::Look);
        }
    }

    /// A call did not get through.
    pub fn missed(&self, now: Moment) {
        if self.store.note_unreachable(now) {
            tell_opened(self.store.controller(), &self.board);
        }
    }

    /// A call ended without an outcome. If it was the probe, another one may go out.
    pub fn lost(&self, now: Moment) {
        self.store.abandon_probe(now);
    }
}

/// Tells that the breaker has opened.
pub(crate) fn tell_opened(controller: Controller, board: &StatusBoard) {
    tracing::warn!(
        controller = controller.name(),
        "control plane unreachable: breaker opens"
    );
    board.record(Some(controller), Happening::BreakerOpened);
}
