//! Faults on demand, for tests: makes the actor at a path misbehave at its next message.
//!
//! Compiled only for tests and with the feature `fault-hooks`; never in a shipped binary.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::actor::ActorError;
use crate::status::StatusBoard;

/// What an actor does instead of handling its next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Panics before the message has any effect.
    Panic,
    /// Panics after the message had its effect.
    PanicAfter,
    /// Gives up with an error.
    Fail,
    /// Never returns; the watchdog has to notice.
    Hang,
}

/// The faults waiting for one actor. Outlives its incarnations.
#[derive(Debug, Default)]
pub(crate) struct FaultSlot {
    next: Mutex<Option<Fault>>,
    repeat: Mutex<u32>,
}

impl FaultSlot {
    fn take(&self) -> Option<Fault> {
        let mut repeat = self.repeat.lock();
        *repeat = repeat.saturating_sub(1);
        let mut next = self.next.lock();
        if *repeat == 0 { next.take() } else { *next }
    }

    /// To be called before a message is handled.
    pub(crate) async fn before(&self) -> Result<Option<Fault>, ActorError> {
        match self.take() {
            Some(Fault::Panic) => {
                #[allow(clippy::panic, reason = "the fault that was asked for")]
                {
                    panic!("fault hook")
                }
            }
            Some(Fault::Fail) => Err(ActorError("fault hook".to_owned())),
            Some(Fault::Hang) => {
                std::future::pending::<()>().await;
                Ok(None)
            }
            after @ (Some(Fault::PanicAfter) | None) => Ok(after),
        }
    }

    /// To be called after a message was handled.
    pub(crate) fn after(fault: Option<Fault>) {
        if fault == Some(Fault::PanicAfter) {
            #[allow(clippy::panic, reason = "the fault that was asked for")]
            {
                panic!("fault hook")
            }
        }
    }
}

impl StatusBoard {
    /// Makes the actor at `path` misbehave at each of its next `times` messages.
    pub fn inject(&self, path: &str, fault: Fault, times: u32) {
        let cell = self.cell(&Arc::from(path), None);
        *cell.fault.repeat.lock() = times;
        *cell.fault.next.lock() = (times > 0).then_some(fault);
    }

    /// Kills the actor at `path`, as a supervisor or the watchdog would. Whether one lives there.
    pub fn kill(&self, path: &str) -> bool {
        let occupant = self.cell(&Arc::from(path), None).occupant();
        if let Some(actor) = &occupant {
            actor.kill();
        }
        occupant.is_some()
    }
}
