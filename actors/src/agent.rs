//! The whole agent: what every worker of the tree is made of, and its life from start to stop.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use krane_domain::restart::Backoff;
use ractor::ActorCell;
use tokio::sync::watch::Receiver;

use crate::actor::ShellArguments;
use crate::address::Address;
use crate::cause::Cause;
use crate::controller::{ControllerParts, ControllerWorkers};
use crate::heartbeat::{Heartbeat, HeartbeatMessage};
use crate::metrics::ActorMetrics;
use crate::ports::ControlPlane;
use crate::status::StatusBoard;
use crate::store::Store;
use crate::supervisor::{
    ChildSpec, End, OnExhausted, Preparation, Restart, Shutdown, StartFn, Strategy, SupervisorSpec,
    Surroundings, start_topmost, supervisor, worker,
};

/// What an agent is made with.
pub struct AgentParts {
    /// The controllers, each with ports of its own.
    pub controllers: Vec<ControllerParts>,
    /// The control plane, over the heartbeat's own connection.
    pub heartbeat: Arc<dyn ControlPlane>,
    /// Set by the heartbeat at its first success.
    pub is_region_known: Arc<AtomicBool>,
    /// Where every actor publishes.
    pub board: StatusBoard,
    /// Seed of the jitter of restarts.
    pub seed: u64,
}

/// A running agent.
pub struct Agent {
    root: ActorCell,
    end: Receiver<End>,
    stores: Vec<Arc<Store>>,
}

impl Agent {
    /// Starts the tree. Returns before its controllers are ready.
    pub async fn start(parts: AgentParts) -> Result<Self, Cause> {
        let surroundings = Surroundings {
            board: parts.board.clone(),
            seed: parts.seed,
            grace: Duration::from_secs(5),
        };
        let mut stores = Vec::new();
        let address: Address<HeartbeatMessage> = Address::vacant("root/heartbeat", 64);
        let (control_plane, known, board) =
            (parts.heartbeat, parts.is_region_known, parts.board.clone());
        let heartbeat = worker(move || ShellArguments {
            behaviour: Heartbeat::new(Arc::clone(&control_plane), Arc::clone(&known)),
            address: address.clone(),
            board: board.clone(),
            metrics: ActorMetrics::default(),
        });
        let mut children = vec![leaf("heartbeat", "root/heartbeat", heartbeat)];
        for controller in parts.controllers {
            let name = controller.controller.name();
            let workers = ControllerWorkers::new(controller, |id| {
                let group =
                    if matches!(id, "watch" | "reporter") { "observer" } else { "intake" };
                (format!("root/{name}/{group}/{id}").into(), 64)
            });
            stores.push(Arc::clone(workers.store()));
            children.push(controller_spec(name, &workers, &surroundings));
        }
        let spec = SupervisorSpec {
            path: "root".into(),
            strategy: Strategy::OneForOne,
            intensity: 5,
            period: Duration::from_secs(60),
            on_exhausted: OnExhausted::Park(Backoff::PARK),
            prepare: None,
            children,
        };
        let (root, end) = start_topmost(spec, surroundings, None).await?;
        Ok(Self { root, end, stores })
    }

    /// What the controllers know.
    pub fn stores(&self) -> &[Arc<Store>] {
        &self.stores
    }

    /// Stops everything in order. Stopping twice is a no-op.
    pub async fn stop(&mut self) {
        self.root.stop(None);
        let _ = self.end.wait_for(Option::is_some).await;
    }

    /// Waits for the end of the tree, whoever caused it.
    pub async fn finished(&mut self) -> Result<(), Cause> {
        match self.end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(Ok(())),
            Err(_crashed) => Err(Cause::Killed),
        }
    }
}

fn leaf(id: &'static str, path: &str, start: StartFn) -> ChildSpec {
    ChildSpec {
        id,
        path: path.into(),
        restart: Restart::Permanent,
        start,
        start_timeout: Some(Duration::from_secs(5)),
        shutdown: Shutdown::Stop(Duration::from_secs(2)),
        backoff: Backoff::RESTART,
        reset: None,
    }
}

fn controller_spec(
    name: &'static str,
    workers: &ControllerWorkers,
    surroundings: &Surroundings,
) -> ChildSpec {
    let nest = |id: &'static str, spec: SupervisorSpec| ChildSpec {
        id,
        path: Arc::clone(&spec.path),
        restart: Restart::Permanent,
        start: supervisor(spec, surroundings.clone()),
        start_timeout: None,
        shutdown: Shutdown::Stop(Duration::from_secs(6)),
        backoff: Backoff::RESTART,
        reset: None,
    };
    let group = |group: &'static str, ids: &[&'static str]| {
        let path = format!("root/{name}/{group}");
        let children = ids
            .iter()
            .filter_map(|id| {
                let start = workers.start(id, ActorMetrics::default())?;
                Some(leaf(id, &format!("{path}/{id}"), start))
            })
            .collect();
        nest(
            group,
            SupervisorSpec {
                path: path.into(),
                strategy: Strategy::RestForOne,
                intensity: 5,
                period: Duration::from_secs(60),
                on_exhausted: OnExhausted::Escalate,
                prepare: None,
                children,
            },
        )
    };
    let spec = SupervisorSpec {
        path: format!("root/{name}").into(),
        strategy: Strategy::OneForOne,
        intensity: 5,
        period: Duration::from_secs(60),
        on_exhausted: OnExhausted::Escalate,
        prepare: Some(Preparation {
            run: workers.prepare(),
            timeout: Duration::from_secs(60),
        }),
        children: vec![
            group("observer", &["watch", "reporter"]),
            group("intake", &["reconciler", "stream", "resync"]),
        ],
    };
    ChildSpec { reset: Some(workers.reset()), ..nest(name, spec) }
}
