//! The agent of one process: ports, tree and servers put together, from start to signal.

mod assembly;
mod files;
mod ports;
mod servers;
mod signals;
pub mod take_over;
mod view;

use std::sync::Arc;
use std::time::Duration;

pub use assembly::{Running, World};
use krane_actors::agent::AgentError;
use krane_actors::chance::Chance;
use krane_actors::secrets::SecretsParts;
use krane_actors::status::StatusBoard;
use krane_control_plane::EndpointError;
use krane_domain::kinds::Rules;
use krane_kubernetes::{
    AccessError, CallTimeouts, KubeAccess, KubeCluster, KubeConnection, KubeEvents, KubeIdentities,
    KubeLeases, MetadataLister,
};
use krane_ports::Cluster;
use krane_server::bind::Listeners;
use krane_settings::{Settings, UpgradesMode, WritesMode};
use krane_supervision::cause::Cause;
use krane_vault::{VaultMetrics, VaultSetupError};
use ports::Observers;
pub use ports::SystemClock;
use prometheus::Registry;
use signals::Signals;
use take_over::Findings;

use crate::observe::{Coverage, Journal, Rehearsal, Shadows, Summary};

/// Of one request of `krane check --takeover`, which somebody waits for.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

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
    Tls(#[source] krane_server::tls::TlsError),
    /// The vault cannot be asked with these settings.
    #[error("pods cannot be given their secrets with these settings")]
    Vault(#[source] VaultSetupError),
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

/// Runs the agent and writes nothing, until a signal, its own end, or for this long.
pub async fn observe(
    mut settings: Settings,
    listeners: Listeners,
    length: Option<Duration>,
) -> Result<Summary, RunError> {
    let mut signals = Signals::listen().map_err(RunError::Signals)?;
    // What another agent is in charge of is not ours to hold, to answer or to stop.
    settings.lease.enabled = false;
    settings.safety.writes = WritesMode::On;
    settings.scheduler.token = None;
    let may_upgrade = settings.safety.upgrades == UpgradesMode::On;
    let registry = Registry::new();
    let journal = Arc::new(Journal::default());
    let world = tokio::select! {
        world = rehearsal(&settings, &registry, &journal) => world?,
        _ = signals.first() => return Ok(journal.summary(Coverage::nothing("nothing was started"))),
    };
    let agent = Running::start(&settings, world, listeners, &registry, None).await?;
    tracing::info!("observe mode: nothing is written, and the control plane is told nothing");
    let exit = tokio::select! {
        _ = signals.first() => None,
        () = elapsed(length) => None,
        exit = agent.finished() => Some(exit),
    };
    let summary = journal.summary(agent.coverage(may_upgrade));
    let exit = if let Some(exit) = exit {
        exit
    } else {
        tokio::select! {
            exit = agent.stop() => exit,
            code = signals.second() => return Err(RunError::Interrupted { code }),
        }
    };
    agent.outcome(exit)?;
    Ok(summary)
}

#[expect(
    clippy::disallowed_methods,
    reason = "waits beside the signals, in no actor"
)]
async fn elapsed(length: Option<Duration>) {
    match length {
        Some(length) => tokio::time::sleep(length).await,
        None => std::future::pending().await,
    }
}

/// The world, in which every write is a dry run and the control plane is told nothing. No pod is
/// given secrets.
async fn rehearsal(
    settings: &Settings,
    registry: &Registry,
    journal: &Arc<Journal>,
) -> Result<World, RunError> {
    let shadows = Arc::new(Shadows::default());
    let rehearse = |cluster: KubeCluster| -> Arc<dyn Cluster> {
        let (shadows, journal) = (Arc::clone(&shadows), Arc::clone(journal));
        Arc::new(Rehearsal::new(Arc::new(cluster.dry()), shadows, journal))
    };
    let (world, _) = reach(settings, registry, CallTimeouts::default(), rehearse).await?;
    Ok(world.observing())
}

/// Runs the agent until a signal or its own end, connected to what `alter` makes of the world.
pub async fn run(
    settings: Settings,
    listeners: Listeners,
    alter: fn(World) -> World,
) -> Result<(), RunError> {
    let mut signals = Signals::listen().map_err(RunError::Signals)?;
    let registry = Registry::new();
    // Credentials may come from a plugin that takes its time.
    let world = tokio::select! {
        world = kubernetes(&settings, &registry) => world?,
        signal = signals.first() => {
            tracing::info!(signal, "stopped before anything was started");
            return Ok(());
        }
    };
    let world = alter(world);
    let agent = Running::start(&settings, world, listeners, &registry, None).await?;
    let exit = tokio::select! {
        signal = signals.first() => {
            tracing::info!(signal, "stopping");
            tokio::select! {
                exit = agent.stop() => exit,
                code = signals.second() => return Err(RunError::Interrupted { code }),
            }
        }
        exit = agent.finished() => exit,
    };
    agent.outcome(exit)
}

/// Whether the files that settings name can be used, as far as another machine can tell.
pub fn check(settings: &Settings) -> Result<(), RunError> {
    if let Some(tls) = &settings.rpc.tls {
        krane_server::tls::server_config(tls).map_err(RunError::Tls)?;
    }
    krane_vault::from_settings(settings.vault.as_ref(), Arc::new(())).map_err(RunError::Vault)?;
    let control = &settings.control;
    match krane_control_plane::check(control.url.as_str(), control.ca_file.as_deref()) {
        // Which authorities a system trusts is no question of configuration.
        Ok(()) | Err(EndpointError::NoRoots) => Ok(()),
        Err(error) => Err(RunError::ControlPlane(error)),
    }
}

/// The settings that change what is rendered, for a krane that runs in no cluster.
pub(crate) fn rules(settings: &Settings) -> Rules {
    ports::rules(settings, "krane")
}

/// What krane would do in this cluster, and what it would leave lying (`krane check --takeover`).
pub async fn look_before_take_over(settings: &Settings) -> Result<Findings, RunError> {
    let timeouts = CallTimeouts::fixed(CHECK_LIMIT);
    let (world, connection) = reach(settings, &Registry::new(), timeouts, as_it_is).await?;
    let limits = ports::call_limits(settings);
    let lister = MetadataLister::new(connection, limits, timeouts);
    Ok(take_over::survey(&world.controllers, &world.rules, &lister).await)
}

/// The world outside: a Kubernetes cluster and the control plane.
async fn kubernetes(settings: &Settings, registry: &Registry) -> Result<World, RunError> {
    let timeouts = CallTimeouts::default();
    let (world, connection) = reach(settings, registry, timeouts, as_it_is).await?;
    let counts = VaultMetrics::register(registry).map_err(RunError::Metrics)?;
    let vault = krane_vault::from_settings(settings.vault.as_ref(), Arc::new(counts));
    let events = KubeEvents::new(Arc::clone(&connection), &settings.instance_id);
    let namespace = connection.namespace().into();
    let identities = Arc::new(KubeIdentities::new(connection));
    let secrets = vault.map_err(RunError::Vault)?.map(|vault| SecretsParts {
        identities,
        vault,
        audience: settings.secrets.audience.as_deref().map(Arc::from),
        chance: Chance::new(ports::seed()),
    });
    Ok(World {
        secrets,
        events: Some((Arc::new(events), namespace)),
        ..world
    })
}

fn as_it_is(cluster: KubeCluster) -> Arc<dyn Cluster> {
    Arc::new(cluster)
}

async fn reach(
    settings: &Settings,
    registry: &Registry,
    timeouts: CallTimeouts,
    wrap: impl Fn(KubeCluster) -> Arc<dyn Cluster>,
) -> Result<(World, Arc<KubeConnection>), RunError> {
    let access = KubeAccess::choose(&settings.kubernetes).map_err(RunError::Kubernetes)?;
    let observers = Observers::register(registry).map_err(RunError::Metrics)?;
    let connection = KubeConnection::open(access, ports::user_agent(), observers.api()).await;
    let connection = Arc::new(connection.map_err(RunError::Kubernetes)?);
    observers.expect(connection.host());
    let rules = ports::rules(settings, connection.namespace());
    let limits = ports::call_limits(settings);
    let (seed, board) = (ports::seed(), StatusBoard::new());
    let leadership = ports::leadership(settings, &board);
    let cluster = |_| -> Arc<dyn Cluster> {
        let connection = Arc::clone(&connection);
        let cluster = KubeCluster::new(connection, limits, timeouts);
        wrap(cluster.led_by(Arc::new(leadership.clone())))
    };
    let world = World::new(settings, cluster, rules, seed, &observers)?;
    let leases = Arc::new(KubeLeases::new(Arc::clone(&connection)));
    let election = ports::election(settings, leases, seed);
    Ok((world.with_election(leadership, election, board), connection))
}
