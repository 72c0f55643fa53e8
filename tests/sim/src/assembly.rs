//! The whole agent, over a test's own ways to the world.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use krane_actors::agent::{Agent, AgentParts, Servers};
use krane_actors::chance::Chance;
use krane_actors::controller::ControllerParts;
use krane_actors::lease::{Election, Leadership};
use krane_actors::metrics::ControllerFamilies;
use krane_actors::secrets::SecretsParts;
use krane_actors::status::StatusBoard;
use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_domain::labels;
use krane_ports::{Clock, Cluster, ControlPlane, Server};
use krane_sim::cluster::{Options, SimCluster};
use prometheus::Registry;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// 2026-01-01T00:00:00Z, where the clock of the cluster in memory begins.
const BEGINNING: u64 = 1_767_225_600;

/// A cluster with its controllers at work, and the namespace of sentinels, which is nobody's to
/// make here.
pub(crate) fn cluster(seed: u64, tasks: &mut JoinSet<()>) -> SimCluster {
    let cluster = SimCluster::new(Options {
        seed,
        ..Options::default()
    });
    tasks.spawn(cluster.clone().run());
    let _ = cluster.admin().create_namespace(labels::SENTINEL_NAMESPACE);
    cluster
}

/// What one process is made of.
pub(crate) struct Process {
    pub(crate) board: StatusBoard,
    pub(crate) rules: Rules,
    /// When the clock on its wall showed the beginning.
    pub(crate) began: Instant,
    pub(crate) seed: u64,
    pub(crate) heartbeat: Arc<dyn ControlPlane>,
    /// What pods are given their secrets with.
    pub(crate) secrets: Option<SecretsParts>,
    /// When it is one of several.
    pub(crate) election: Option<(Leadership, Election)>,
}

/// A controller's ways to the cluster and to its control plane.
pub(crate) type Ways = (Arc<dyn Cluster>, Arc<dyn ControlPlane>);

impl Process {
    /// The agent, not started yet.
    pub(crate) fn agent(self, ways: impl Fn(Controller) -> Ways) -> Result<Agent, String> {
        let registry = Registry::new();
        let families = ControllerFamilies::register(&registry).map_err(|e| e.to_string())?;
        let is_region_known = Arc::new(AtomicBool::new(false));
        let (leadership, election) = self.election.unzip();
        let leadership = leadership.unwrap_or_default();
        let began = self.began;
        let parts = |controller| {
            let (cluster, control_plane) = ways(controller);
            ControllerParts {
                controller,
                rules: self.rules.clone(),
                registry_password: None,
                cluster,
                control_plane,
                clock: Arc::new(WallClock { began }),
                board: self.board.clone(),
                max_lanes: 32,
                max_backlog: 16 << 20,
                resync_interval: Duration::from_secs(60),
                replay_interval: Some(Duration::from_secs(600)),
                max_deletes_percent: 10,
                writes: Arc::new(AtomicBool::new(true)),
                may_upgrade: true,
                leadership: leadership.clone(),
                is_region_known: Arc::clone(&is_region_known),
                chance: Chance::new(self.seed),
                metrics: families.of(controller),
            }
        };
        let parts = AgentParts {
            controllers: Controller::ALL.into_iter().map(parts).collect(),
            heartbeat: self.heartbeat,
            is_region_known: Arc::clone(&is_region_known),
            observes: false,
            leadership,
            election,
            secrets: self.secrets,
            board: self.board,
            seed: self.seed,
        };
        Agent::new(parts, &registry).map_err(|problem| problem.to_string())
    }
}

/// Servers that nobody calls.
pub(crate) fn servers() -> Servers {
    Servers {
        rpc: Arc::new(Quiet),
        metrics: Arc::new(Quiet),
        health: Arc::new(Quiet),
        admin: Arc::new(Quiet),
    }
}

#[derive(Debug)]
struct WallClock {
    began: Instant,
}

impl Clock for WallClock {
    fn unix_seconds(&self) -> u64 {
        BEGINNING + self.began.elapsed().as_secs()
    }
}

struct Quiet;

#[async_trait]
impl Server for Quiet {
    async fn serve(&self, stop: CancellationToken) -> Result<(), String> {
        stop.cancelled().await;
        Ok(())
    }
}

/// Takes what is left of a dead process away: in an order that is always the same.
pub(crate) fn bury(board: &StatusBoard) {
    for (path, _) in board.all().into_iter().rev() {
        board.kill(&path);
    }
}
