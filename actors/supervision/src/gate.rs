//! Bounds and measures one mailbox.
//!
//! ractor's mailboxes are unbounded. A message from outside carries a permit of its target's
//! gate; the permit comes back when the message is dropped, also when a dying mailbox is flushed.
//! An actor's own messages (timers, outcomes of its lanes) are bounded by what it started and
//! take no permit, so that a full mailbox can never keep an actor from hearing of its own work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The gate of one mailbox. Outlives restarts of the actor behind it.
#[derive(Clone, Debug)]
pub struct Gate {
    permits: Arc<Semaphore>,
    load: Arc<Load>,
    capacity: usize,
}

/// How full a mailbox is, and was at most.
#[derive(Debug, Default)]
struct Load {
    depth: AtomicUsize,
    high_water: AtomicUsize,
}

/// The right of one message to be in the mailbox; dropping it gives the place back.
#[derive(Debug)]
pub struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    load: Arc<Load>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.load.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gate {
    /// A gate that lets `capacity` messages from outside wait at once.
    pub fn new(capacity: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(capacity)),
            load: Arc::default(),
            capacity,
        }
    }

    /// Waits for a place.
    pub async fn enter(&self) -> Place {
        // The semaphore is never closed, so the only outcome is a permit.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        self.place(permit)
    }

    /// A place if one is free.
    pub fn try_enter(&self) -> Option<Place> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(self.place(Some(permit)))
    }

    /// A place for a message the actor sends itself.
    pub fn enter_own(&self) -> Place {
        self.place(None)
    }

    fn place(&self, permit: Option<OwnedSemaphorePermit>) -> Place {
        let load = Arc::clone(&self.load);
        let depth = load.depth.fetch_add(1, Ordering::Relaxed) + 1;
        // Most messages set no record, and reading is cheaper than writing.
        if depth > load.high_water.load(Ordering::Relaxed) {
            load.high_water.fetch_max(depth, Ordering::Relaxed);
        }
        Place {
            _permit: permit,
            load,
        }
    }

    /// Messages waiting or being handled.
    pub fn depth(&self) -> usize {
        self.load.depth.load(Ordering::Relaxed)
    }

    /// The most messages that were ever waiting or being handled at once.
    pub fn high_water(&self) -> usize {
        self.load.high_water.load(Ordering::Relaxed)
    }

    /// Messages from outside that may wait at once.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;

    #[test]
    fn a_full_gate_opens_again_when_a_place_is_dropped() {
        let gate = Gate::new(2);
        let first = gate.try_enter();
        let second = gate.try_enter();
        assert!(first.is_some() && second.is_some());
        assert!(gate.try_enter().is_none());
        assert_eq!(gate.depth(), 2);
        drop(first);
        assert!(gate.try_enter().is_some());
        assert_eq!(gate.depth(), 1, "the place just taken was dropped at once");
        assert_eq!(gate.high_water(), 2, "the record outlives the crowd");
    }

    #[test]
    fn own_messages_count_for_depth_and_need_no_permit() {
        let gate = Gate::new(1);
        let _outside = gate.try_enter();
        let own = gate.enter_own();
        assert_eq!(gate.depth(), 2);
        drop(own);
        assert_eq!((gate.depth(), gate.high_water()), (1, 2));
    }
}
