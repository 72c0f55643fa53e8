//! Faults on demand, for tests: makes the actor at a path misbehave at a message.
//!
//! Compiled only for tests and development builds: a release build has none of it.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::cause::ActorError;

/// What a planned panic or failure says.
pub const PLANNED: &str = "fault hook";

#[cfg(test)]
mod tests;

/// What an actor does with a message instead of only handling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Panics before the message has any effect.
    Panic,
    /// Panics after the message had its effect.
    PanicAfter,
    /// Gives up with an error before the message has any effect.
    Fail,
    /// Never returns; the watchdog has to notice.
    Hang,
}

impl Fault {
    /// The fault at the very next message.
    pub fn next(self) -> FaultPlan {
        FaultPlan {
            fault: self,
            message: None,
            skip: 0,
            times: 1,
        }
    }
}

/// Which messages meet with a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    fault: Fault,
    message: Option<String>,
    skip: u32,
    times: u32,
}

impl FaultPlan {
    /// Only messages of this name count. `started` and `stopping` are no messages.
    #[must_use]
    pub fn at(self, message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            ..self
        }
    }

    /// Lets the first `skip` such messages pass.
    #[must_use]
    pub fn after(self, skip: u32) -> Self {
        Self { skip, ..self }
    }

    /// Strikes this often, over all incarnations.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }
}

/// The faults planned for one actor. Outlives its incarnations.
#[derive(Debug, Default)]
pub(crate) struct FaultSlot {
    plan: Mutex<Option<FaultPlan>>,
    messages: AtomicU32,
}

impl FaultSlot {
    /// From now on this plan, in place of one made before.
    pub(crate) fn plan(&self, plan: FaultPlan) {
        *self.plan.lock() = Some(plan);
    }

    /// Messages so far.
    pub(crate) fn messages(&self) -> u32 {
        self.messages.load(Ordering::Relaxed)
    }

    fn strikes(&self, message: &str) -> Option<Fault> {
        let mut slot = self.plan.lock();
        let plan = slot.as_mut()?;
        if plan
            .message
            .as_deref()
            .is_some_and(|wanted| wanted != message)
        {
            return None;
        }
        if plan.skip > 0 {
            plan.skip -= 1;
            return None;
        }
        let fault = plan.fault;
        plan.times = plan.times.saturating_sub(1);
        if plan.times == 0 {
            *slot = None;
        }
        Some(fault)
    }

    /// To be called before a message of this name is handled. What it returns is for afterwards.
    pub(crate) async fn before(&self, message: &str) -> Result<Option<Fault>, ActorError> {
        self.messages.fetch_add(1, Ordering::Relaxed);
        let fault = self.strikes(message);
        match fault {
            Some(Fault::Panic) => strike(),
            Some(Fault::Fail) => return Err(ActorError(PLANNED.to_owned())),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::PanicAfter) | None => {}
        }
        Ok(fault)
    }

    /// To be called after a message was handled.
    pub(crate) fn after(fault: Option<Fault>) {
        if fault == Some(Fault::PanicAfter) {
            strike();
        }
    }
}

#[allow(clippy::panic, reason = "the fault that was asked for")]
fn strike() {
    panic!("{PLANNED}");
}
