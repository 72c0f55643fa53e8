//! Whether the control plane can be reached, as every call and every stream message shows it.
//!
//! A sign of life closes the breaker at once, whoever noticed it (D26a), and wakes the reporter:
//! what it held back is due. After a long silence the other side may have forgotten everything
//! (D26), so that everything live is said again.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::Moment;
use krane_supervision::address::Address;

use crate::events::Happening;
use crate::reporter::ReporterMessage;
use crate::status::StatusBoard;
use crate::store::{Memory, Store};

/// After a silence of more than this everything is reported again (D26).
const FORGETFUL: Duration = Duration::from_secs(30);
/// What is said again is spread over this long.
const REFRESH_SPREAD: Duration = Duration::from_secs(2);

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
        let store = &self.store;
        if store.with(|memory| heard_after(memory, store, silence, now)) {
            // A full mailbox already makes the reporter look at what is due.
            let _ = self.reporter.try_send(ReporterMessage::Look);
        }
    }

    /// A call did not get through.
    pub fn missed(&self, now: Moment) {
        let store = &self.store;
        if store.with(|memory| missed(memory, store, now)) {
            let controller = Some(store.controller());
            self.board.record(controller, Happening::BreakerOpened);
        }
    }

    /// A call ended without an outcome. If it was the probe, another one may go out.
    pub fn lost(&self, now: Moment) {
        self.store.with(|memory| memory.breaker.abandon_probe(now));
    }
}

/// Notes a sign of life. Returns whether reports that were held back may go now.
pub(crate) fn heard(memory: &mut Memory, store: &Store, now: Moment) -> bool {
    heard_after(memory, store, Duration::ZERO, now)
}

/// The same; `silence` is what else is known of how long there was none.
fn heard_after(memory: &mut Memory, store: &Store, silence: Duration, now: Moment) -> bool {
    let failing = memory.breaker.success(now);
    if failing.unwrap_or_default().max(silence) > FORGETFUL {
        refresh(memory, store, now);
        return true;
    }
    failing.is_some()
}

/// The other side may not know any of it: everything live is said again.
pub(crate) fn say_again(store: &Store, now: Moment) {
    store.with(|memory| refresh(memory, store, now));
}

fn refresh(memory: &mut Memory, store: &Store, now: Moment) {
    memory
        .outbox
        .refresh(|_| now + REFRESH_SPREAD.mul_f64(store.chance().unit()));
}

/// Notes a call that did not get through; whether that opened the breaker.
pub(crate) fn missed(memory: &mut Memory, store: &Store, now: Moment) -> bool {
    let has_opened = memory.breaker.transport_failure(now, store.chance().unit());
    if has_opened {
        tracing::warn!(
            controller = store.controller().name(),
            "control plane unreachable: breaker opens"
        );
    }
    has_opened
}
