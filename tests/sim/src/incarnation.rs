//! One life of the whole agent.

use std::sync::Arc;

use krane_actors::status::StatusBoard;
use krane_domain::ids::Controller;
use krane_sim::cluster::{Lag, SimClient};
use krane_supervision::root::RootHandle;
use krane_supervision::status::{Activity, ActorStatus};

use crate::assembly::{self, Process};
use crate::kinds::index;
use crate::ports::{ClusterPort, ControlPort};
use crate::shared::{Epoch, Shared};

/// The running agent.
pub(crate) struct Incarnation {
    pub(crate) epoch: Epoch,
    pub(crate) board: StatusBoard,
    pub(crate) root: RootHandle,
    client: SimClient,
}

impl Incarnation {
    /// A new process over the same world; its jitter follows from the seed.
    pub(crate) async fn start(shared: &Arc<Shared>, seed: u64) -> Result<Self, String> {
        let epoch = Epoch::begin(shared);
        let (began, number) = shared.with(|ledger| (ledger.began, ledger.epoch));
        let seed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let board = StatusBoard::new();
        let controls = Controller::ALL.map(|controller| ControlPort::new(&epoch, controller));
        let client = shared.cluster.client();
        let process = Process {
            board: board.clone(),
            rules: shared.rules.clone(),
            began,
            seed,
            heartbeat: Arc::new(ControlPort::new(&epoch, Controller::Deployments)),
            secrets: None,
            election: None,
        };
        let agent = process.agent(|controller| {
            let cluster = ClusterPort::new(&epoch, controller, client.clone());
            let control = controls[index(controller)].clone();
            (Arc::new(cluster), Arc::new(control))
        })?;
        for (port, store) in controls.iter().zip(agent.stores()) {
            port.serve(&store);
        }
        let root = agent.start(assembly::servers()).await;
        let root = root.map_err(|e| e.to_string())?;
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

    pub(crate) fn bury(&self) {
        assembly::bury(&self.board);
    }

    /// What is not as the tree wants it when all is well.
    pub(crate) fn disorder(&self) -> Option<String> {
        let all = self.board.all();
        let down = all.iter().find(|(_, cell)| !cell.read().activity.is_up())?;
        Some(format!("{} is {:?}", down.0, down.1.read().activity))
    }

    pub(crate) fn is_parked(&self) -> bool {
        let parked = |status: &ActorStatus| matches!(status.activity, Activity::Parked { .. });
        self.board
            .look(|mut all| all.any(|(_, cell)| cell.look(parked)))
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
        self.board.look(|mut all| {
            all.find_map(|(path, cell)| {
                let gate = cell.gate()?;
                (gate.depth() > gate.capacity() + 256)
                    .then(|| format!("{} messages wait for {path}", gate.depth()))
            })
        })
    }

    /// Panics and hangs of all actors.
    pub(crate) fn panics(&self) -> u64 {
        let of = |status: &ActorStatus| status.panics + status.hangs;
        self.board
            .look(|all| all.map(|(_, cell)| cell.look(of)).sum())
    }
}
