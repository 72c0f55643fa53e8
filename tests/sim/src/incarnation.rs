//! One life of the whole agent.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use krane_actors::agent::{Agent, AgentParts, Servers};
use krane_actors::chance::Chance;
use krane_actors::controller::ControllerParts;
use krane_actors::lease::Leadership;
use krane_actors::metrics::ControllerFamilies;
use krane_actors::ports::{Clock, Server};
use krane_actors::root::RootHandle;
use krane_actors::status::{Activity, StatusBoard};
use krane_domain::ids::Controller;
use krane_sim::cluster::{Lag, SimClient};
use prometheus::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::kinds::index;
use crate::ports::{ClusterPort, ControlPort};
use crate::shared::{Epoch, Shared};

/// 2026-01-01T00:00:00Z, where the clock of the cluster in memory begins.
const BEGINNING: u64 = 1_767_225_600;

/// The running agent.
pub(crate) struct Incarnation {
    pub(crate) epoch: Epoch,
    pub(crate) board: StatusBoard,
    pub(crate) root: RootHandle,
    client: SimClient,
}

#[derive(Debug)]
struct RunClock {
    began: Instant,
}

impl Clock for RunClock {
    fn unix_seconds(&self) -> u64 {
        BEGINNING + self.began.elapsed().as_secs()
    }
}

/// A server that nobody calls.
struct Quiet;

#[async_trait]
impl Server for Quiet {
    async fn serve(&self, stop: CancellationToken) -> Result<(), String> {
        stop.cancelled().await;
        Ok(())
    }
}

impl Incarnation {
    /// A new process over the same world; its jitter follows from the seed.
    pub(crate) async fn start(shared: &Arc<Shared>, seed: u64) -> Result<Self, String> {
        let epoch = Epoch::begin(shared);
        let (began, number) = shared.with(|ledger| (ledger.began, ledger.epoch));
        let seed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let board = StatusBoard::new();
        let registry = Registry::new();
        let is_region_known = Arc::new(AtomicBool::new(false));
        let families = ControllerFamilies::register(&registry).map_err(|e| e.to_string())?;
        let controls = Controller::ALL.map(|controller| ControlPort::new(&epoch, controller));
        let client = shared.cluster.client();
        let parts = AgentParts {
            controllers: Controller::ALL
                .into_iter()
                .map(|controller| ControllerParts {
                    controller,
                    rules: shared.rules.clone(),
                    registry_password: None,
                    cluster: Arc::new(ClusterPort::new(&epoch, controller, client.clone())),
                    control_plane: Arc::new(controls[index(controller)].clone()),
                    clock: Arc::new(RunClock { began }),
                    board: board.clone(),
                    max_lanes: 32,
                    max_backlog: 16 << 20,
                    resync_interval: Duration::from_secs(60),
                    replay_interval: Some(Duration::from_secs(600)),
                    max_deletes_percent: 10,
                    writes: Arc::new(AtomicBool::new(true)),
                    may_upgrade: true,
                    leadership: Leadership::default(),
                    is_region_known: Arc::clone(&is_region_known),
                    chance: Chance::new(seed),
                    metrics: families.of(controller),
                })
                .collect(),
            heartbeat: Arc::new(ControlPort::new(&epoch, Controller::Deployments)),
            is_region_known,
            leadership: Leadership::default(),
            election: None,
            board: board.clone(),
            seed,
        };
        let agent = Agent::new(parts, &registry).map_err(|problem| problem.to_string())?;
        for (port, store) in controls.iter().zip(agent.stores()) {
            port.serve(&store);
        }
        let servers = Servers {
            rpc: Arc::new(Quiet),
            metrics: Arc::new(Quiet),
            admin: Arc::new(Quiet),
        };
        let root = agent.start(servers).await.map_err(|e| e.to_string())?;
        Ok(Self {
            epoch,
            board,
            root,
            client,
        })
    }

    /// From now on it sees the cluster so many versions late.
    pub(crate) fn lag(&self, versions: u64) {
        self.client.set_lag(match versions {
            0 => Lag::None,
            versions => Lag::Behind(versions),
        });
    }

    /// Takes what is left of a dead process away: in an order that is always the same.
    pub(crate) fn bury(&self) {
        for (path, _) in self.board.all().into_iter().rev() {
            self.board.kill(&path);
        }
    }

    /// What is not as the tree wants it when all is well.
    pub(crate) fn disorder(&self) -> Option<String> {
        let all = self.board.all();
        let down = all.iter().find(|(_, cell)| !cell.read().activity.is_up())?;
        Some(format!("{} is {:?}", down.0, down.1.read().activity))
    }

    pub(crate) fn is_parked(&self) -> bool {
        let all = self.board.all();
        all.iter()
            .any(|(_, cell)| matches!(cell.read().activity, Activity::Parked { .. }))
    }

    /// An actor of this controller that failed or was started again.
    pub(crate) fn touched(&self, controller: Controller) -> Option<String> {
        let prefix = format!("root/{}", controller.name());
        let all = self.board.all();
        let mine = all.iter().filter(|(path, _)| path.starts_with(&prefix));
        mine.filter(|(_, cell)| cell.read().restarts > 0)
            .map(|(path, _)| format!("{path} was started again, and nothing happened to it"))
            .next()
    }

    /// A mailbox that holds more than it may.
    pub(crate) fn overflow(&self) -> Option<String> {
        let all = self.board.all();
        all.iter().find_map(|(path, cell)| {
            let gate = cell.gate()?;
            (gate.depth() > gate.capacity() + 256)
                .then(|| format!("{} messages wait for {path}", gate.depth()))
        })
    }

    /// Panics and hangs of all actors.
    pub(crate) fn panics(&self) -> u64 {
        let all = self.board.all();
        all.iter()
            .map(|(_, cell)| cell.read().panics + cell.read().hangs)
            .sum()
    }
}
