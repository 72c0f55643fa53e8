//! The agent of one process: ports, tree and servers put together, from start to signal.

mod ports;
mod signals;
mod view;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use krane_actors::agent::{Agent, AgentParts};
use krane_actors::cause::Cause;
use krane_actors::controller::ControllerParts;
use krane_actors::metrics::{ControllerFamilies, StoreCollector};
use krane_actors::status::StatusBoard;
use krane_domain::ids::Controller;
use prometheus::Registry;

use crate::edge::cluster::{
    AccessError, CallTimeouts, KubeAccess, KubeCluster, KubeConnection,
};
use crate::edge::control_plane::{EndpointError, GrpcControlPlane};
use crate::rpc::bind::Listeners;
use crate::settings::{Settings, WritesMode};
use ports::SystemClock;
use signals::Signals;
use view::AgentView;

/// How long the tree may take to stop before the process ends without it.
const STOP_LIMIT: Duration = Duration::from_secs(9);

/// Why the agent did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Signals cannot be heard.
    #[error("signals cannot be listened to")]
    Signals(#[source] std::io::Error),
    /// There are no usable Kubernetes credentials.
    #[error("Kubernetes cannot be reached with these credentials")]
    Kubernetes(#[source] AccessError),
    /// The control plane's address or authorities are not usable.
    #[error("the control plane cannot be reached with these settings")]
    ControlPlane(#[source] EndpointError),
    /// Metrics collide: a defect of krane.
    #[error("metrics cannot be registered")]
    Metrics(#[source] prometheus::Error),
    /// A server's TLS files are not usable.
    #[error("the TLS files of the RPC port cannot be used")]
    Tls(#[source] crate::rpc::tls::TlsError),
    /// The tree could not start.
    #[error("the supervision tree did not start")]
    Start(#[source] Cause),
    /// The tree ended by itself.
    #[error("the supervision tree gave up")]
    GaveUp(#[source] Cause),
    /// A second signal asked for the end at once.
    #[error("ended at once by a second signal")]
    Interrupted {
        /// 130 or 143.
        code: u8,
    },
}

/// Runs the agent until a signal or its own end.
pub async fn run(settings: Settings, listeners: Listeners) -> Result<(), RunError> {
    let mut signals = Signals::listen().map_err(RunError::Signals)?;
    let registry = Registry::new();
    crate::admin::metrics::register_build_info(&registry).map_err(RunError::Metrics)?;
    let board = StatusBoard::new();
    let parts = parts(&settings, &board, &registry).await?;
    let mut agent = Agent::start(parts).await.map_err(RunError::Start)?;
    let collector =
        StoreCollector::new(agent.stores().to_vec()).map_err(RunError::Metrics)?;
    registry.register(Box::new(collector)).map_err(RunError::Metrics)?;
    let view = Arc::new(AgentView::new(agent.stores().to_vec(), board.clone()));
    let mut servers = view::serve(&settings, listeners, &registry, Arc::clone(&view))?;
    tracing::info!(
        version = crate::cli::version::LONG,
        region = %settings.region,
        rpc_port = settings.rpc_port,
        "krane started"
    );
    let result = tokio::select! {
        signal = signals.first() => {
            tracing::info!(signal, "stopping");
            Ok(())
        }
        end = agent.finished() => end.map_err(RunError::GaveUp),
    };
    view.stop();
    for store in agent.stores() {
        store.halt();
    }
    let stopping = async {
        agent.stop().await;
        servers.stop().await;
    };
    tokio::select! {
        () = stopping => {}
        code = signals.second() => return Err(RunError::Interrupted { code }),
        () = ports::pause(STOP_LIMIT) => {
            tracing::warn!("some parts did not stop in time and are cut off");
        }
    }
    tracing::info!("stopped");
    result
}

async fn parts(
    settings: &Settings,
    board: &StatusBoard,
    registry: &Registry,
) -> Result<AgentParts, RunError> {
    let access = KubeAccess::choose(&settings.kubernetes).map_err(RunError::Kubernetes)?;
    let observers = ports::Observers::register(registry).map_err(RunError::Metrics)?;
    let connection =
        KubeConnection::open(access, ports::user_agent(), observers.api()).await;
    let connection = Arc::new(connection.map_err(RunError::Kubernetes)?);
    let rules = ports::rules(settings, connection.namespace());
    let families = ControllerFamilies::register(registry).map_err(RunError::Metrics)?;
    let is_region_known = Arc::new(AtomicBool::new(false));
    let writes = Arc::new(AtomicBool::new(settings.safety.writes == WritesMode::On));
    let control = ports::control_plane_access(settings, &observers);
    let controller = Controller::Deployments;
    let control_plane = |controller| {
        let wire = ports::wire(settings, controller, &rules);
        GrpcControlPlane::new(&control, wire).map_err(RunError::ControlPlane)
    };
    let limits = ports::call_limits(settings);
    let deployments = ControllerParts {
        controller,
        rules: rules.clone(),
        cluster: Arc::new(KubeCluster::new(connection, limits, CallTimeouts::default())),
        control_plane: Arc::new(control_plane(controller)?),
        clock: Arc::new(SystemClock::new()),
        board: board.clone(),
        max_lanes: settings.k8s.max_in_flight,
        max_backlog: usize::try_from(settings.control.max_backlog.as_bytes()).unwrap_or(usize::MAX),
        resync_interval: settings.resync.interval,
        max_deletes_percent: settings.safety.max_deletes_percent,
        writes,
        is_region_known: Arc::clone(&is_region_known),
        metrics: families.of(controller),
    };
    Ok(AgentParts {
        controllers: vec![deployments],
        heartbeat: Arc::new(control_plane(controller)?),
        is_region_known,
        board: board.clone(),
        seed: fastrand::u64(..),
    })
}
