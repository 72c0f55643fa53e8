//! What calls, streams and the script share.

use std::collections::BTreeMap;
use std::time::Duration;

use krane_domain::ids::ObjectKey;
use krane_ports::RpcFailure;
use parking_lot::{Mutex, MutexGuard};

use super::rows::{Order, Rows};
use super::script::Reply;
use super::told::Told;
use super::unreachable;
use crate::bell::{Bell, Listener};

/// A method of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Opening a desired-state stream.
    Watch,
    /// A question about one object.
    Desired,
    /// A report.
    Report,
    /// A heartbeat.
    Heartbeat,
}

impl Call {
    /// Its name, as hooks are told.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Desired => "desired",
            Self::Report => "report",
            Self::Heartbeat => "heartbeat",
        }
    }
}

/// What the way to the control plane lets through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    #[default]
    Open,
    /// Nothing gets through and nothing fails.
    Frozen,
    /// Everything fails at once.
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) failing: BTreeMap<Call, (RpcFailure, u32)>,
    pub(super) slow: BTreeMap<Call, Duration>,
}

impl Faults {
    /// The failure this call has to end with, if any.
    pub(super) fn take(&mut self, call: Call) -> Option<RpcFailure> {
        let (failure, times) = self.failing.get_mut(&call)?;
        let failure = failure.clone();
        // `u32::MAX` stands for ever.
        if *times != u32::MAX {
            *times -= 1;
        }
        if *times == 0 {
            self.failing.remove(&call);
        }
        Some(failure)
    }
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) rows: Rows,
    pub(super) answers: BTreeMap<ObjectKey, Reply>,
    pub(super) faults: Faults,
    pub(super) told: Told,
    pub(super) way: Way,
    pub(super) order: Order,
    pub(super) holds_headers: bool,
    /// Streams among the first so many end with this failure.
    pub(super) cut: Option<(usize, RpcFailure)>,
    pub(super) chance: fastrand::Rng,
    calls: u64,
}

/// Everything under one lock, and a counter that moves with every change.
#[derive(Debug)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    changes: Bell,
}

impl Shared {
    pub(super) fn new(seed: u64) -> Self {
        let inner = Inner {
            rows: Rows::default(),
            answers: BTreeMap::new(),
            faults: Faults::default(),
            told: Told::default(),
            way: Way::default(),
            order: Order::default(),
            holds_headers: true,
            cut: None,
            chance: fastrand::Rng::with_seed(seed),
            calls: 0,
        };
        Self {
            inner: Mutex::new(inner),
            changes: Bell::default(),
        }
    }

    pub(super) fn look(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let result = change(&mut self.inner.lock());
        self.changes.ring();
        result
    }

    pub(super) fn changes(&self) -> Listener {
        self.changes.listener()
    }

    pub(super) fn number(&self) -> u64 {
        let mut inner = self.inner.lock();
        inner.calls += 1;
        inner.calls - 1
    }

    /// Waits while the way is frozen; fails when it is gone.
    pub(super) async fn passable(&self) -> Result<(), RpcFailure> {
        let mut changes = self.changes();
        loop {
            changes.catch_up();
            let way = self.look().way;
            match way {
                Way::Open => return Ok(()),
                Way::Gone => return Err(unreachable()),
                Way::Frozen => {
                    changes.rung().await;
                }
            }
        }
    }

    pub(super) async fn delay(&self, call: Call) {
        let delay = self.look().faults.slow.get(&call).copied();
        if let Some(delay) = delay {
            #[expect(
                clippy::disallowed_methods,
                reason = "the outside world takes its time"
            )]
            tokio::time::sleep(delay).await;
        }
    }
}
