//! The agent of one process: ports, tree and servers put together, from start to signal.

mod ports;
mod servers;
mod signals;
mod view;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use krane_actors::agent::{Agent, AgentError, AgentParts};
use krane_actors::cause::Cause;
use krane_actors::chance::Chance;
use krane_actors::controller::ControllerParts;
use krane_actors::metrics::ControllerFamilies;
use krane_actors::root::Exit;
use krane_actors::status::StatusBoard;
use krane_domain::ids::Controller;
use prometheus::Registry;

use crate::edge::cluster::{AccessError, CallTimeouts, KubeAccess, KubeCluster, KubeConnection};
use crate::edge::control_plane::{EndpointError, GrpcControlPlane};
use crate::rpc::bind::Listeners;
use crate::settings::{Settings, WritesMode};
use ports::SystemClock;
use signals::Signals;
use view::AgentView;

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
    /// A bound port cannot be handed to its server.
    #[error("a bound port cannot be served")]
    Listener(#[source] std::io::Error),
    /// The tree could not start.
    #[error("the supervision tree did not start")]
    Start(#[source] AgentError),
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
    let agent = Agent::new(parts, &registry).map_err(RunError::Start)?;
    let stores = agent.stores();
    let view = Arc::new(AgentView::new(stores.clone()));
    let servers = servers::servers(&settings, listeners, &registry, &view)?;
    let root = agent.start(servers).await.map_err(RunError::Start)?;
    view.watch(Arc::clone(root.watchdog()));
    tracing::info!(
        version = crate::cli::version::LONG,
        rpc_port = settings.rpc_port,
        "krane started"
    );
    let exit = tokio::select! {
        signal = signals.first() => {
            tracing::info!(signal, "stopping");
            view.stop();
            for store in &stores {
                store.halt();
            }
            tokio::select! {
                exit = root.stop() => exit,
                code = signals.second() => return Err(RunError::Interrupted { code }),
            }
        }
        exit = root.finished() => exit,
    };
    match exit {
        Exit::Stopped => {
            tracing::info!("stopped");
            Ok(())
        }
        // A part that had to be cut off on the way out is no reason to alarm anyone.
        Exit::Failed(cause) if view.is_stopping() => {
            tracing::warn!(%cause, "some parts did not stop in time and were cut off");
            Ok(())
        }
        Exit::Failed(cause) => Err(RunError::GaveUp(cause)),
    }
}

async fn parts(
    settings: &Settings,
    board: &StatusBoard,
    registry: &Registry,
) -> Result<AgentParts, RunError> {
    let access = KubeAccess::choose(&settings.kubernetes).map_err(RunError::Kubernetes)?;
    let observers = ports::Observers::register(registry).map_err(RunError::Metrics)?;
    let connection = KubeConnection::open(access, ports::user_agent(), observers.api()).await;
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
    let seed = ports::seed();
    let deployments = ControllerParts {
        controller,
        rules: rules.clone(),
        cluster: Arc::new(KubeCluster::new(
            connection,
            limits,
            CallTimeouts::default(),
        )),
        control_plane: Arc::new(control_plane(controller)?),
        clock: Arc::new(SystemClock::new()),
        board: board.clone(),
        max_lanes: settings.k8s.max_in_flight,
        max_backlog: usize::try_from(settings.control.max_backlog.as_bytes()).unwrap_or(usize::MAX),
        resync_interval: settings.resync.interval,
        max_deletes_percent: settings.safety.max_deletes_percent,
        writes,
        is_region_known: Arc::clone(&is_region_known),
        chance: Chance::new(seed),
        metrics: families.of(controller),
    };
    Ok(AgentParts {
        controllers: vec![deployments],
        heartbeat: Arc::new(control_plane(controller)?),
        is_region_known,
        board: board.clone(),
        seed,
    })
}
