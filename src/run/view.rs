//! What the servers show of the running agent, and the servers themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use krane_actors::breaker::BreakerState;
use krane_actors::status::StatusBoard;
use krane_actors::store::Store;
use prometheus::Registry;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::RunError;
use crate::rpc::bind::Listeners;
use crate::rpc::health::{self, CheckState, HealthView, Readiness};
use crate::rpc::serve::{self, App, Patience};
use crate::settings::Settings;

/// Health as the published copies tell it.
pub(super) struct AgentView {
    stores: Vec<Arc<Store>>,
    _board: StatusBoard,
    is_stopping: AtomicBool,
}

impl AgentView {
    pub(super) fn new(stores: Vec<Arc<Store>>, board: StatusBoard) -> Self {
        Self { stores, _board: board, is_stopping: AtomicBool::new(false) }
    }

    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }
}

impl HealthView for AgentView {
    fn live(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        let mut checks = BTreeMap::new();
        let mut ready = true;
        for store in &self.stores {
            let (is_listed, is_open, breaker) = store.with(|memory| {
                let is_open = memory.stream.opened_at.is_some();
                (memory.is_listed, is_open, memory.breaker.state())
            });
            ready &= is_listed;
            let state = match (is_listed, is_open, breaker) {
                (false, _, _) => CheckState::Fail,
                (true, true, BreakerState::Closed) => CheckState::Ok,
                (true, _, _) => CheckState::Degraded,
            };
            checks.insert(store.controller().name().to_owned(), state);
        }
        Readiness { ready, stopping: self.is_stopping.load(Ordering::Relaxed), checks }
    }
}

/// The servers' tasks.
pub(super) struct Servers {
    running: JoinSet<()>,
    stop: CancellationToken,
}

impl Servers {
    pub(super) async fn stop(&mut self) {
        self.stop.cancel();
        while self.running.join_next().await.is_some() {}
    }
}

/// Starts the servers on their listeners.
pub(super) fn serve(
    settings: &Settings,
    listeners: Listeners,
    registry: &Registry,
    view: Arc<AgentView>,
) -> Result<Servers, RunError> {
    let tls = settings.rpc.tls.as_ref().map(crate::rpc::tls::server_config);
    let tls = tls.transpose().map_err(RunError::Tls)?;
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    let rpc = App::new(health::router(view.clone()))
        .with_grpc(tonic::service::Routes::new(health::grpc_health(
            view.clone(),
            &[],
            stop.clone(),
        )));
    let mut start = |name: &'static str, listener, app, tls| {
        let stop = stop.clone();
        running.spawn(async move {
            if let Err(error) =
                serve::serve(listener, app, tls, Patience::default(), stop).await
            {
                tracing::error!(server = name, %error, "a server ended");
            }
        });
    };
    start("rpc", listeners.rpc, rpc, tls);
    if let Some(listener) = listeners.metrics {
        let app = App::new(crate::admin::metrics::router(registry.clone(), view));
        start("metrics", listener, app, None);
    }
    Ok(Servers { running, stop })
}
