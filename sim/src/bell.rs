//! Wakes whoever waits for news, in the order in which they began to wait.
//!
//! tokio's own watch channel wakes its receivers in an order of chance that no seed controls, and
//! a run has to be repeatable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Rung at every change. Clones are the same bell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bell(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    rings: AtomicU64,
    waiting: Notify,
}

/// Somebody who waits for a bell.
#[derive(Debug)]
pub(crate) struct Listener {
    bell: Bell,
    heard: u64,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.rings.fetch_add(1, Ordering::AcqRel);
        self.0.waiting.notify_waiters();
    }

    /// Hears what rings from now on.
    pub(crate) fn listener(&self) -> Listener {
        Listener {
            heard: self.0.rings.load(Ordering::Acquire),
            bell: self.clone(),
        }
    }
}

impl Clone for Listener {
    fn clone(&self) -> Self {
        self.bell.listener()
    }
}

impl Listener {
    /// What has rung so far is known.
    pub(crate) fn catch_up(&mut self) {
        self.heard = self.bell.0.rings.load(Ordering::Acquire);
    }

    /// Waits for the first ring that is not known.
    pub(crate) async fn rung(&mut self) {
        loop {
            let rung = self.bell.0.waiting.notified();
            let rings = self.bell.0.rings.load(Ordering::Acquire);
            if rings != self.heard {
                self.heard = rings;
                return;
            }
            rung.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_ring_between_looking_and_waiting_is_heard_once() {
        let bell = Bell::default();
        let mut listener = bell.listener();
        bell.ring();
        listener.rung().await;
        assert!(futures::poll!(std::pin::pin!(listener.rung())).is_pending());
        bell.ring();
        listener.catch_up();
        let mut waiting = std::pin::pin!(listener.rung());
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        bell.ring();
        waiting.await;
    }
}
