//! The servers of the tree, on the listeners that were bound before it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use krane_actors::agent::Servers;
use krane_actors::ports::Server;
use krane_actors::tree;
use prometheus::Registry;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::RunError;
use super::view::AgentView;
use crate::rpc::bind::Listeners;
use crate::rpc::health;
use crate::rpc::serve::{App, Patience, serve};
use crate::settings::Settings;

/// Serves on a listener that stays bound between incarnations.
struct HttpServer<F> {
    listener: std::net::TcpListener,
    app: F,
    tls: Option<Arc<ServerConfig>>,
    /// What the tree gives it to stop.
    patience: Duration,
}

#[async_trait]
impl<F: Fn(CancellationToken) -> App + Send + Sync + 'static> Server for HttpServer<F> {
    async fn serve(&self, stop: CancellationToken) -> Result<(), String> {
        let listener = self
            .listener
            .try_clone()
            .map_err(|error| error.to_string())?;
        let listener = TcpListener::from_std(listener).map_err(|error| error.to_string())?;
        let (app, tls) = ((self.app)(stop.clone()), self.tls.clone());
        let patience = Patience::draining(tree::drain(self.patience));
        serve(listener, app, tls, patience, stop)
            .await
            .map_err(|error| error.to_string())
    }
}

/// A server whose port is switched off.
struct Off;

#[async_trait]
impl Server for Off {
    async fn serve(&self, stop: CancellationToken) -> Result<(), String> {
        stop.cancelled().await;
        Ok(())
    }
}

pub(super) fn servers(
    settings: &Settings,
    listeners: Listeners,
    registry: &Registry,
    view: &Arc<AgentView>,
) -> Result<Servers, RunError> {
    let tls = settings
        .rpc
        .tls
        .as_ref()
        .map(crate::rpc::tls::server_config);
    let tls = tls.transpose().map_err(RunError::Tls)?;
    let rpc_view = Arc::clone(view);
    let rpc = HttpServer {
        listener: listeners.rpc.into_std().map_err(RunError::Listener)?,
        tls,
        patience: tree::RPC_PATIENCE,
        app: move |stop| {
            let health = health::grpc_health(rpc_view.clone(), &[], stop);
            App::new(health::router(rpc_view.clone()))
                .with_grpc(tonic::service::Routes::new(health))
        },
    };
    let metrics: Arc<dyn Server> = match listeners.metrics {
        None => Arc::new(Off),
        Some(listener) => {
            let (registry, view) = (registry.clone(), Arc::clone(view));
            Arc::new(HttpServer {
                listener: listener.into_std().map_err(RunError::Listener)?,
                tls: None,
                patience: tree::SIDE_SERVER_PATIENCE,
                app: move |_stop| {
                    App::new(crate::admin::metrics::router(
                        registry.clone(),
                        view.clone(),
                    ))
                },
            })
        }
    };
    Ok(Servers {
        rpc: Arc::new(rpc),
        metrics,
        admin: Arc::new(Off),
    })
}
