//! What the servers show of the running agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use krane_actors::breaker::BreakerState;
use krane_actors::lease::{Leadership, Role};
use krane_actors::store::Store;
use krane_actors::watchdog::Watchdog;

use crate::admin::model::Epoch;
use crate::rpc::health::{CheckState, HealthView, Readiness, Standing};

/// Health as the published copies tell it.
pub(super) struct AgentView {
    stores: Vec<Arc<Store>>,
    leadership: Leadership,
    epoch: Epoch,
    watchdog: ArcSwapOption<Watchdog>,
    is_stopping: AtomicBool,
}

impl AgentView {
    pub(super) fn new(stores: Vec<Arc<Store>>, leadership: Leadership, epoch: Epoch) -> Self {
        Self {
            stores,
            leadership,
            epoch,
            watchdog: ArcSwapOption::empty(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// The tree runs, and this tells whether it is alive.
    pub(super) fn watch(&self, watchdog: Arc<Watchdog>) {
        self.watchdog.store(Some(watchdog));
    }

    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

impl HealthView for AgentView {
    fn live(&self) -> bool {
        self.watchdog
            .load()
            .as_ref()
            .is_none_or(|watchdog| watchdog.live())
    }

    fn readiness(&self) -> Readiness {
        let mut checks = BTreeMap::new();
        let mut ready = self.watchdog.load().is_some();
        let shown = self.leadership.shown();
        let is_standby = shown.as_ref().is_some_and(|it| it.role == Role::Standby);
        for store in &self.stores {
            let (is_listed, is_open, breaker) = store.with(|memory| {
                let is_open = memory.stream.opened_at.is_some() || is_standby;
                (memory.is_listed, is_open, memory.breaker.state())
            });
            // Once is enough: a controller that starts over must not take secrets from pods.
            ready &= is_listed || store.was_listed();
            let state = match (is_listed, is_open, breaker) {
                (false, _, _) => CheckState::Fail,
                (true, true, BreakerState::Closed) => CheckState::Ok,
                (true, _, _) => CheckState::Degraded,
            };
            checks.insert(store.controller().name().to_owned(), state);
        }
        Readiness {
            ready,
            stopping: self.is_stopping(),
            checks,
            lease: shown.map(|shown| Standing {
                role: shown.role.name(),
                since: self.epoch.at(shown.since).to_string(),
                holder: shown.holder.map(|holder| holder.to_string()),
            }),
        }
    }
}
