//! Addresses that survive restarts.
//!
//! A restarted ractor actor has a new reference. Peers hold an [`Address`], which asks for the
//! current reference at every send and never keeps one across messages.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use ractor::ActorRef;
use tokio::task::{AbortHandle, JoinSet};

use crate::gate::Gate;
use crate::message::{Envelope, Message};

/// Where messages for one actor of the tree go, whichever incarnation lives there.
#[derive(Debug)]
pub struct Address<M: Message> {
    slot: Arc<Slot<M>>,
}

#[derive(Debug)]
struct Slot<M: Message> {
    path: Arc<str>,
    gate: Gate,
    current: ArcSwapOption<Resident<M>>,
}

/// One incarnation, with the timers it set: they end with it.
#[derive(Debug)]
struct Resident<M: Message> {
    actor: ActorRef<Envelope<M>>,
    timers: Mutex<JoinSet<()>>,
}

/// How an incarnation's own tasks and timers reach it, and nobody else: what they say of work that
/// was begun before a restart must not reach the successor, which knows nothing of it.
#[derive(Debug)]
pub struct Own<M: Message> {
    resident: Arc<Resident<M>>,
    gate: Gate,
}

/// The stay of one incarnation at an address; over when dropped.
#[derive(Debug)]
pub(crate) struct Residence<M: Message> {
    slot: Arc<Slot<M>>,
    resident: Arc<Resident<M>>,
}

impl<M: Message> Residence<M> {
    /// Forgets this incarnation, unless a newer one has moved in.
    pub(crate) fn leave(&self) {
        self.resident.timers.lock().abort_all();
        let current = self.slot.current.load();
        if current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, &self.resident))
        {
            self.slot.current.compare_and_swap(&current, None);
        }
    }
}

impl<M: Message> Drop for Residence<M> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<M: Message> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self {
            slot: Arc::clone(&self.slot),
        }
    }
}

/// Why a message was not taken. The sender does not retry: what matters is in the store, and a
/// restarted actor looks there first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No incarnation lives there now.
    #[error("the actor is down")]
    Down,
    /// The mailbox is full.
    #[error("the mailbox is full")]
    Full,
}

impl<M: Message> Address<M> {
    /// An address nobody lives at yet, with room for `capacity` messages from outside.
    pub fn vacant(path: impl Into<Arc<str>>, capacity: usize) -> Self {
        Self {
            slot: Arc::new(Slot {
                path: path.into(),
                gate: Gate::new(capacity),
                current: ArcSwapOption::empty(),
            }),
        }
    }

    /// The actor's path in the tree.
    pub fn path(&self) -> &Arc<str> {
        &self.slot.path
    }

    /// The gate of the mailbox.
    pub fn gate(&self) -> &Gate {
        &self.slot.gate
    }

    /// Sends, waiting for room.
    pub async fn send(&self, message: M) -> Result<(), SendError> {
        let place = self.slot.gate.enter().await;
        self.deliver(Envelope::new(message, place))
    }

    /// Sends if there is room.
    pub fn try_send(&self, message: M) -> Result<(), SendError> {
        let place = self.slot.gate.try_enter().ok_or(SendError::Full)?;
        self.deliver(Envelope::new(message, place))
    }

    fn deliver(&self, envelope: Envelope<M>) -> Result<(), SendError> {
        let current = self.slot.current.load();
        let resident = current.as_ref().ok_or(SendError::Down)?;
        resident.actor.cast(envelope).map_err(|_| SendError::Down)
    }

    pub(crate) fn occupy(&self, actor: ActorRef<Envelope<M>>) -> Residence<M> {
        let resident = Arc::new(Resident {
            actor,
            timers: Mutex::default(),
        });
        self.slot.current.store(Some(Arc::clone(&resident)));
        Residence {
            slot: Arc::clone(&self.slot),
            resident,
        }
    }

    /// Whether an incarnation lives there now.
    pub fn is_occupied(&self) -> bool {
        self.slot.current.load().is_some()
    }
}

impl<M: Message> Residence<M> {
    /// How the tasks of this incarnation reach it.
    pub(crate) fn own(&self) -> Own<M> {
        Own {
            resident: Arc::clone(&self.resident),
            gate: self.slot.gate.clone(),
        }
    }
}

impl<M: Message> Clone for Own<M> {
    fn clone(&self) -> Self {
        Self {
            resident: Arc::clone(&self.resident),
            gate: self.gate.clone(),
        }
    }
}

impl<M: Message> Own<M> {
    /// Tells the actor of its own work. Takes no permit: the actor bounds what it begins.
    /// Nothing happens when this incarnation is gone.
    pub fn tell(&self, message: M) {
        self.cast(message, self.gate.enter_own());
    }

    /// Hands in what came from outside, waiting for room in the mailbox.
    pub async fn hand_in(&self, message: M) {
        let place = self.gate.enter().await;
        self.cast(message, place);
    }

    /// Tells the actor later, unless the timer is aborted or this incarnation is gone by then.
    pub fn tell_after(&self, delay: Duration, message: M) -> AbortHandle {
        let actor = self.resident.actor.clone();
        let gate = self.gate.clone();
        let mut timers = self.resident.timers.lock();
        while timers.try_join_next().is_some() {}
        timers.spawn(async move {
            #[allow(clippy::disallowed_methods, reason = "the timer behind timer messages")]
            tokio::time::sleep(delay).await;
            let _ = actor.cast(Envelope::new(message, gate.enter_own()));
        })
    }

    /// Timers that have not rung and were not aborted.
    #[cfg(test)]
    pub(crate) fn timers(&self) -> usize {
        let mut timers = self.resident.timers.lock();
        while timers.try_join_next().is_some() {}
        timers.len()
    }

    fn cast(&self, message: M, place: crate::gate::Place) {
        // A dead actor needs no message.
        let _ = self.resident.actor.cast(Envelope::new(message, place));
    }
}
