//! The servers of the tree, on the listeners that were bound before it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use krane_actors::agent::Servers;
use krane_actors::operator::Operator;
use krane_actors::tree;
use krane_admin::Desk;
use krane_admin::actions::Controls;
use krane_admin::feed::Feed;
use krane_admin::guard::Access;
use krane_admin::model::Sources;
use krane_admin::operate::Hands;
use krane_ports::SchedulerDesk;
use krane_ports::SecretsDesk;
use krane_ports::Server;
use krane_server::bind::Listeners;
use krane_server::bounds::{Bounds, open_files};
use krane_server::calls::CallFamilies;
use krane_server::health;
use krane_server::port::RpcPort;
use krane_server::serve::{App, Patience, serve};
use krane_settings::Settings;
use prometheus::Registry;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::RunError;
use super::view::AgentView;

/// For an answer of a few hundred KiB at most.
const TAKE: Duration = Duration::from_secs(30);
/// For all workloads of a large cluster, through a port-forward over a slow line.
const TAKE_OF_OPERATORS: Duration = Duration::from_mins(5);

/// Serves on a listener that stays bound between incarnations.
struct HttpServer<F> {
    listener: std::net::TcpListener,
    app: F,
    tls: Option<Arc<ServerConfig>>,
    /// What the tree gives it to stop.
    patience: Duration,
    /// How long its peers may take for an answer.
    take: Duration,
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
        let patience = Patience {
            take: self.take,
            ..Patience::draining(tree::drain(self.patience))
        };
        serve(listener, app, tls, patience, stop)
            .await
            .map_err(|error| error.to_string())
    }
}

/// The health endpoints alone, on a listener that stays bound between incarnations.
struct HealthPort {
    listener: std::net::TcpListener,
    view: Arc<AgentView>,
}

#[async_trait]
impl Server for HealthPort {
    async fn serve(&self, stop: CancellationToken) -> Result<(), String> {
        let listener = self.listener.try_clone().and_then(TcpListener::from_std);
        let listener = listener.map_err(|error| error.to_string())?;
        let served = health::port::serve(listener, self.view.clone(), stop);
        served.await.map_err(|error| error.to_string())
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

/// The page and its API, with the feed that tells viewers of changes.
struct AdminServer<F> {
    http: HttpServer<F>,
    feed: Arc<Feed>,
}

#[async_trait]
impl<F: Fn(CancellationToken) -> App + Send + Sync + 'static> Server for AdminServer<F> {
    async fn serve(&self, stop: CancellationToken) -> Result<(), String> {
        let (served, ()) = tokio::join!(self.http.serve(stop.clone()), async {
            self.feed.run(stop.clone()).await;
        });
        served
    }
}

/// What the page shows, and whose hands may change it.
pub(super) struct Admin {
    /// Where its views are taken from.
    pub(super) sources: Sources,
    /// The controls of a demo.
    pub(super) controls: Controls,
    /// What a person may tell the controllers to do.
    pub(super) operators: Arc<[Operator]>,
}

/// Who answers the calls of the RPC port.
pub(super) struct Desks {
    /// Pods, if there is a vault.
    pub(super) secrets: Option<Arc<dyn SecretsDesk>>,
    /// The scheduler.
    pub(super) scheduler: Arc<dyn SchedulerDesk>,
}

pub(super) fn servers(
    settings: &Settings,
    listeners: Listeners,
    registry: &Registry,
    view: &Arc<AgentView>,
    desks: Desks,
    admin: Admin,
) -> Result<Servers, RunError> {
    let tls = settings
        .rpc
        .tls
        .as_ref()
        .map(krane_server::tls::server_config);
    let tls = tls.transpose().map_err(RunError::Tls)?;
    let port = RpcPort {
        health: view.clone(),
        secrets: desks.secrets,
        scheduler: Some((desks.scheduler, settings.scheduler.token.clone())),
        reflection: settings.rpc.reflection,
        families: CallFamilies::register(registry).map_err(RunError::Metrics)?,
    };
    let rpc = HttpServer {
        listener: listeners.rpc.into_std().map_err(RunError::Listener)?,
        tls,
        patience: tree::RPC_PATIENCE,
        take: TAKE,
        app: move |stop| port.app(stop).with_bounds(bounds(Bounds::RPC)),
    };
    let metrics: Arc<dyn Server> = match listeners.metrics {
        None => Arc::new(Off),
        Some(listener) => {
            let (registry, view) = (registry.clone(), Arc::clone(view));
            Arc::new(HttpServer {
                listener: listener.into_std().map_err(RunError::Listener)?,
                tls: None,
                patience: tree::SIDE_SERVER_PATIENCE,
                take: TAKE,
                app: move |_stop| {
                    App::new(krane_admin::metrics::router(registry.clone(), view.clone()))
                        .with_bounds(bounds(Bounds::METRICS))
                },
            })
        }
    };
    let health: Arc<dyn Server> = match listeners.health {
        None => Arc::new(Off),
        Some(listener) => Arc::new(HealthPort {
            listener: listener.into_std().map_err(RunError::Listener)?,
            view: Arc::clone(view),
        }),
    };
    Ok(Servers {
        rpc: Arc::new(rpc),
        metrics,
        health,
        admin: admin_server(settings, listeners.admin, admin)?,
    })
}

/// No more connections than there are files for them.
fn bounds(of: Bounds) -> Bounds {
    of.within(open_files())
}

fn admin_server(
    settings: &Settings,
    listener: Option<TcpListener>,
    admin: Admin,
) -> Result<Arc<dyn Server>, RunError> {
    let Some(listener) = listener else {
        return Ok(Arc::new(Off));
    };
    let address = listener.local_addr().map_err(RunError::Listener)?;
    let access = Arc::new(Access::new(address, settings.admin.token.clone()));
    let feed = Feed::new(admin.sources);
    let desk = Desk::new(admin.controls, form_token()?);
    let shown = Arc::clone(&feed);
    let hands = Hands {
        operators: admin.operators,
        are_allowed: settings.admin.actions,
        epoch: feed.sources().epoch,
    };
    let http = HttpServer {
        listener: listener.into_std().map_err(RunError::Listener)?,
        tls: None,
        patience: tree::SIDE_SERVER_PATIENCE,
        take: TAKE_OF_OPERATORS,
        app: move |stop| {
            App::new(krane_admin::router(&shown, &access, &desk, &hands, stop))
                .with_bounds(bounds(Bounds::ADMIN))
        },
    };
    Ok(Arc::new(AdminServer { http, feed }))
}

/// Nobody can guess it, so that only this page's own forms carry it.
fn form_token() -> Result<String, RunError> {
    let mut bytes = [0; 24];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random
        .fill(&mut bytes)
        .map_err(|_| RunError::Listener(std::io::Error::other("no random bytes")))?;
    Ok(base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
