//! Which state of the cluster a client sees: the newest, or that of a server that lags behind.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::bell::{Bell, Listener};

/// A view that several clients may share.
#[derive(Clone, Debug)]
pub(super) struct View {
    lag: Arc<Mutex<Lag>>,
    bell: Bell,
    news: Listener,
}

/// How far what a client reads is behind what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lag {
    /// Not at all.
    #[default]
    None,
    /// Reads and watches show nothing that happened after this resource version.
    At(u64),
    /// Reads and watches show nothing of the last so many resource versions.
    Behind(u64),
}

impl View {
    pub(super) fn new() -> Self {
        let bell = Bell::default();
        Self {
            lag: Arc::default(),
            news: bell.listener(),
            bell,
        }
    }

    pub(super) fn set(&self, lag: Lag) {
        *self.lag.lock() = lag;
        self.bell.ring();
    }

    /// The newest version that is seen.
    pub(super) fn horizon(&self, newest: u64) -> u64 {
        match *self.lag.lock() {
            Lag::None => newest,
            Lag::At(version) => version.min(newest),
            Lag::Behind(count) => newest.saturating_sub(count),
        }
    }

    pub(super) async fn changed(&mut self) {
        self.news.rung().await;
    }
}
