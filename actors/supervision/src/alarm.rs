//! Wakes an actor when something is due.

use tokio::task::AbortHandle;

use crate::Moment;
use crate::actor::Context;
use crate::message::Message;
use crate::status::Board;

/// The next moment at which an actor wakes itself: at most one timer at a time.
#[derive(Debug, Default)]
pub struct Alarm {
    set: Option<(Moment, AbortHandle)>,
}

impl Alarm {
    /// Sends `message` at this moment, unless an alarm rings before it anyway. A later alarm
    /// gives way: whoever hears this one asks again what is due next.
    ///
    /// A moment that has passed rings at once: time goes on between the look at what is due and
    /// this call, and what became due in between must not be slept over.
    pub fn set<M: Message, B: AsRef<Board>>(
        &mut self,
        at: Moment,
        context: &Context<M, B>,
        message: M,
    ) {
        if let Some((rings_at, timer)) = &self.set {
            if *rings_at <= at {
                return;
            }
            timer.abort();
        }
        let delay = at.saturating_sub(context.board.as_ref().now());
        self.set = Some((at, context.own.tell_after(delay, message)));
    }

    /// Its message arrived.
    pub fn rang(&mut self) {
        self.set = None;
    }
}

#[cfg(test)]
mod tests;
