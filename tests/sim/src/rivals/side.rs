//! One of the two processes.

use std::sync::Arc;

use fastrand::Rng;
use krane_actors::chance::Chance;
use krane_actors::lease::{Election, Leadership};
use krane_actors::status::StatusBoard;
use krane_actors::store::Store;
use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_supervision::root::RootHandle;
use parking_lot::Mutex;

use super::fate::Fate;
use super::scene::{Scene, TIMING};
use super::ways::{ClusterWay, ControlWay, LeaseWay, Way};
use crate::assembly::{self, Process};

/// A process that runs.
pub(super) struct Side {
    pub(super) fate: Fate,
    pub(super) root: RootHandle,
    board: StatusBoard,
    leadership: Leadership,
    stores: Vec<Arc<Store>>,
}

impl Side {
    /// Nobody has had this number before.
    pub(super) async fn start(scene: &Arc<Scene>, number: u64, seed: u64) -> Result<Self, String> {
        let seed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let identity: Arc<str> = format!("p{number}").into();
        scene.note(&format!("{identity} starts"));
        let board = StatusBoard::new();
        let leadership = Leadership::elected(Arc::clone(&identity), board.clone());
        let way = Way {
            scene: Arc::clone(scene),
            fate: Fate::new(identity),
            chance: Arc::new(Mutex::new(Rng::with_seed(seed))),
        };
        let election = Election {
            leases: Arc::new(LeaseWay { way: way.clone() }),
            timing: TIMING,
            chance: Chance::new(seed),
        };
        let control = |controller| ControlWay {
            way: way.clone(),
            controller,
        };
        let process = Process {
            board: board.clone(),
            rules: Rules::default(),
            began: scene.began,
            seed,
            heartbeat: Arc::new(control(Controller::Deployments)),
            secrets: None,
            election: Some((leadership.clone(), election)),
        };
        let client = scene.cluster.client();
        let agent = process.agent(|controller| {
            let cluster = ClusterWay {
                way: way.clone(),
                client: client.clone(),
                controller,
                leadership: leadership.clone(),
            };
            (Arc::new(cluster), Arc::new(control(controller)))
        })?;
        let stores = agent.stores();
        let root = agent.start(assembly::servers()).await;
        Ok(Self {
            fate: way.fate,
            root: root.map_err(|problem| problem.to_string())?,
            board,
            leadership,
            stores,
        })
    }

    pub(super) fn leads(&self) -> bool {
        self.leadership.is_leader(self.board.now())
    }

    /// What each controller has brought about.
    pub(super) fn cursors(&self) -> Vec<u64> {
        let stores = self.stores.iter();
        stores.map(|store| store.cursor()).collect()
    }

    /// It is dead: what is left of it is taken away.
    pub(super) fn bury(&self) {
        assembly::bury(&self.board);
    }

    /// What is not as the tree wants it when all is well.
    pub(super) fn disorder(&self) -> Option<String> {
        let all = self.board.all();
        let down = all.iter().find(|(_, cell)| !cell.read().activity.is_up())?;
        let activity = &down.1.read().activity;
        Some(format!(
            "{} of {} is {activity:?}",
            down.0, self.fate.identity
        ))
    }
}
