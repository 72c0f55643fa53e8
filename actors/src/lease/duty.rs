//! How an actor keeps to the lease: it works while its process leads, and rests otherwise.

#[cfg(test)]
mod tests;

use std::time::Duration;

use krane_domain::ids::Moment;
use krane_supervision::message::Message;
use tokio::task::{AbortHandle, JoinSet};

use super::Leadership;
use crate::status::Context;

/// What came in between two messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// To work: a new term, or the old one again.
    On(u64),
    /// To rest.
    Off,
}

/// One actor's knowledge of whether it works. It looks before every message; a message of its own
/// only makes sure that there is one.
#[derive(Debug, Default)]
pub(crate) struct Duty {
    leadership: Leadership,
    term: Option<u64>,
    waker: JoinSet<()>,
}

impl Duty {
    pub(crate) fn new(leadership: Leadership) -> Self {
        Self {
            leadership,
            term: None,
            waker: JoinSet::new(),
        }
    }

    /// From now on the actor gets this message at every turn.
    pub(crate) fn follow<M: Message>(&mut self, context: &Context<M>, message: fn() -> M) {
        let (leadership, board) = (self.leadership.clone(), context.board.clone());
        let own = context.own.clone();
        self.waker.abort_all();
        // Looked at here: a lease that is won before the task runs for the first time is a turn, too.
        let mut known = leadership.term(board.now());
        self.waker.spawn(async move {
            loop {
                leadership.turned(known).await;
                known = leadership.term(board.now());
                own.tell(message());
            }
        });
    }

    /// What has changed since the last look.
    pub(crate) fn turn(&mut self, now: Moment) -> Option<Turn> {
        let term = self.leadership.term(now);
        if term == self.term {
            return None;
        }
        self.term = term;
        Some(term.map_or(Turn::Off, Turn::On))
    }

    /// The term the actor works in; nothing while it rests.
    pub(crate) fn term(&self) -> Option<u64> {
        self.term
    }

    pub(crate) fn is_on(&self) -> bool {
        self.term.is_some()
    }
}

/// A timer that an actor sets anew or takes back: at most one message is on its way.
#[derive(Debug, Default)]
pub(crate) struct OneTimer(Option<AbortHandle>);

impl OneTimer {
    pub(crate) fn set<M: Message>(&mut self, delay: Duration, context: &Context<M>, message: M) {
        self.cancel();
        self.0 = Some(context.own.tell_after(delay, message));
    }

    pub(crate) fn cancel(&mut self) {
        if let Some(timer) = self.0.take() {
            timer.abort();
        }
    }
}
