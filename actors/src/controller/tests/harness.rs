//! Starts a controller's subtree and waits for states of its small world.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use krane_domain::desired::State;
use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_ports::PasswordSource;
use krane_supervision::restart::Backoff;
use krane_supervision::supervisor::{
    ChildSpec, End, OnExhausted, Preparation, Restart, Shutdown, Strategy, SupervisorSpec,
    Surroundings, start_topmost, supervisor,
};
use prometheus::Registry;
use ractor::ActorCell;
use tokio::sync::watch::Receiver;

use crate::chance::Chance;
use crate::controller::{ControllerParts, ControllerWorkers};
use crate::metrics::{ActorMetrics, ControllerFamilies};
use crate::status::StatusBoard;
use crate::store::Inside;
use crate::testing::{FakeCluster, FakeControlPlane, Office, StoppedClock};

pub(super) struct World {
    pub(super) cluster: FakeCluster,
    pub(super) control_plane: FakeControlPlane,
    pub(super) workers: ControllerWorkers,
    pub(super) board: StatusBoard,
    pub(super) is_region_known: Arc<AtomicBool>,
    registry: Registry,
    tree: Option<(ActorCell, Receiver<End>)>,
}

/// What a test may choose.
pub(super) struct Choices {
    pub(super) controller: Controller,
    pub(super) rules: Rules,
    pub(super) registry_password: Option<PasswordSource>,
    pub(super) max_lanes: usize,
    pub(super) max_backlog: usize,
    pub(super) may_upgrade: bool,
    /// The term that it works in, and its clock; a process without a lease has one that never ends.
    pub(super) office: Option<Office>,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            controller: Controller::Deployments,
            rules: Rules::default(),
            registry_password: None,
            max_lanes: 8,
            max_backlog: 1 << 20,
            may_upgrade: true,
            office: None,
        }
    }
}

impl World {
    pub(super) async fn start() -> Self {
        Self::start_with(
            Choices::default(),
            FakeCluster::default(),
            FakeControlPlane::default(),
        )
        .await
    }

    /// One that follows states of another kind.
    pub(super) async fn of(controller: Controller) -> Self {
        let choices = Choices {
            controller,
            ..Choices::default()
        };
        Self::start_with(choices, FakeCluster::default(), FakeControlPlane::default()).await
    }

    /// What it counts.
    pub(super) fn scrape(&self) -> String {
        prometheus::TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .expect("encodes")
    }

    /// Everything of these states is applied.
    pub(super) async fn that_applied(controller: Controller, states: &[State]) -> Self {
        let world = Self::of(controller).await;
        for state in states {
            world.control_plane.push(state.clone());
        }
        let newest = states.iter().map(|state| state.version).max();
        world
            .until("applied", |world| Some(world.cursor()) == newest)
            .await;
        world
    }

    pub(super) async fn start_with(
        choices: Choices,
        cluster: FakeCluster,
        control_plane: FakeControlPlane,
    ) -> Self {
        let office = choices.office;
        let board = office.as_ref().map_or_else(StatusBoard::new, Office::board);
        let is_region_known = Arc::new(AtomicBool::new(true));
        let registry = Registry::new();
        let families = ControllerFamilies::register(&registry).expect("registers");
        let parts = ControllerParts {
            controller: choices.controller,
            rules: choices.rules,
            registry_password: choices.registry_password,
            cluster: Arc::new(cluster.clone()),
            control_plane: Arc::new(control_plane.clone()),
            clock: Arc::new(StoppedClock),
            board: board.clone(),
            max_lanes: choices.max_lanes,
            max_backlog: choices.max_backlog,
            resync_interval: Duration::from_secs(60),
            replay_interval: Some(Duration::from_secs(600)),
            max_deletes_percent: 10,
            writes: Arc::new(AtomicBool::new(true)),
            may_upgrade: choices.may_upgrade,
            leadership: office.as_ref().map(Office::leadership).unwrap_or_default(),
            is_region_known: Arc::clone(&is_region_known),
            chance: Chance::new(7),
            metrics: families.of(choices.controller),
        };
        let workers = ControllerWorkers::new(parts, |id| {
            Ok::<_, std::convert::Infallible>((format!("root/{id}").into(), 64))
        })
        .unwrap_or_else(|never| match never {});
        let mut world = Self {
            cluster,
            control_plane,
            workers,
            board,
            is_region_known,
            registry,
            tree: None,
        };
        world.boot().await;
        world
    }

    /// Starts the tree anew over the same world, as a new process would: with an empty store.
    pub(super) async fn reboot(&mut self) {
        if let Some((actor, _)) = self.tree.take() {
            let _ = actor.kill_and_wait(None).await;
        }
        self.workers.reset()();
        self.boot().await;
    }

    async fn boot(&mut self) {
        let surroundings = Surroundings {
            board: self.board.actors().clone(),
            seed: 7,
            grace: Duration::from_secs(5),
        };
        let child = |id: &'static str| ChildSpec {
            id,
            path: format!("root/{id}").into(),
            restart: Restart::Permanent,
            start: self
                .workers
                .start(id, ActorMetrics::default())
                .expect("a worker"),
            start_timeout: Some(Duration::from_secs(5)),
            shutdown: Shutdown::Stop(Duration::from_secs(3)),
            backoff: Backoff::RESTART,
            reset: None,
        };
        let group = |path: &str, ids: &[&'static str]| SupervisorSpec {
            path: path.into(),
            strategy: Strategy::RestForOne,
            intensity: 5,
            period: Duration::from_secs(60),
            on_exhausted: OnExhausted::Escalate,
            prepare: None,
            children: ids.iter().map(|id| child(id)).collect(),
        };
        let nest = |id: &'static str, spec: SupervisorSpec| ChildSpec {
            id,
            path: Arc::clone(&spec.path),
            restart: Restart::Permanent,
            start: supervisor(spec, surroundings.clone()),
            start_timeout: None,
            shutdown: Shutdown::Stop(Duration::from_secs(8)),
            backoff: Backoff::RESTART,
            reset: None,
        };
        let observers: &[_] = if self.workers.controller().has_reports() {
            &["watch", "reporter"]
        } else {
            &["watch"]
        };
        let controller = SupervisorSpec {
            path: "root/controller".into(),
            strategy: Strategy::OneForOne,
            intensity: 5,
            period: Duration::from_secs(60),
            on_exhausted: OnExhausted::Escalate,
            prepare: Some(Preparation {
                run: self.workers.prepare(),
                timeout: Duration::from_secs(60),
            }),
            children: vec![
                nest("observer", group("root/observer", observers)),
                nest(
                    "intake",
                    group("root/intake", &["reconciler", "stream", "resync", "replay"]),
                ),
            ],
        };
        let tree = start_topmost(controller, surroundings.clone(), None)
            .await
            .expect("starts");
        self.tree = Some(tree);
    }

    /// Waits, in virtual time, until something is so.
    pub(super) async fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) -> Duration {
        let began = self.board.now();
        for _ in 0..100_000 {
            if is_so(self) {
                return self.board.now().saturating_sub(began);
            }
            crate::testing::pass(Duration::from_millis(10)).await;
        }
        let trouble: Vec<_> = self.memory(|memory| memory.backlog.in_trouble().collect());
        panic!("never so: {what}; in trouble: {trouble:?}");
    }

    /// Kills a worker; false when it was not alive.
    pub(super) fn kill(&self, id: &str) -> bool {
        let path: Arc<str> = format!("root/{id}").into();
        let occupant = self.board.cell(&path, None).occupant();
        occupant.is_some_and(|actor| {
            actor.kill();
            true
        })
    }

    /// Lets virtual time pass.
    pub(super) async fn pass(&self, seconds: u64) {
        crate::testing::pass(Duration::from_secs(seconds)).await;
    }

    pub(super) fn memory<T>(&self, read: impl FnOnce(&mut Inside<'_>) -> T) -> T {
        self.workers.store().inside(read)
    }

    /// Keys of which something waits only because another renderer made it.
    pub(super) fn to_upgrade(&self) -> usize {
        self.workers.store().snapshot().to_upgrade
    }

    pub(super) fn cursor(&self) -> u64 {
        self.memory(|memory| memory.backlog.cursor())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some((actor, _)) = self.tree.take() {
            actor.kill();
        }
    }
}
