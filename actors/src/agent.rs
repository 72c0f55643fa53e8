//! The whole agent: what every worker of the tree is made of.
//!
//! Nothing here decides who restarts with whom; that is the tree's business.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use krane_domain::ids::Controller;
use krane_ports::{ControlPlane, Server};
use krane_supervision::actor::{Behaviour, ShellArguments};
use krane_supervision::address::Address;
use krane_supervision::meter::Meter;
use krane_supervision::root::{Root, RootArguments, RootError, RootHandle};
use krane_supervision::supervisor::{StartFn, worker};
use krane_supervision::tree::{Crew, Kind, Node, TreeError};
use prometheus::Registry;

use crate::controller::{ControllerParts, ControllerWorkers};
use crate::heartbeat::Heartbeat;
use crate::lease::{Election, Leadership, Lease};
use crate::metrics::{ActorFamilies, ActorMetrics, LeaseCollector, StoreCollector};
use crate::operator::Operator;
use crate::scheduler::Desk;
use crate::secrets::{
    PodOwnership, Secrets, SecretsClient, SecretsMessage, SecretsMetrics, SecretsParts,
    SecretsStatus,
};
use crate::server::ServerActor;
use crate::status::StatusBoard;
use crate::store::Store;
use crate::tree::TREE;

const SECRETS: &str = "root/secrets";

/// What an agent is made with.
pub struct AgentParts {
    /// The controllers, each with ports of its own.
    pub controllers: Vec<ControllerParts>,
    /// The control plane, over the heartbeat's own connection.
    pub heartbeat: Arc<dyn ControlPlane>,
    /// Set by the heartbeat at its first success.
    pub is_region_known: Arc<AtomicBool>,
    /// Whether this process is the one that writes; the controllers have the same.
    pub leadership: Leadership,
    /// Whether nothing is written, whoever leads.
    pub observes: bool,
    /// How that is decided, when several processes run.
    pub election: Option<Election>,
    /// What pods are given their secrets with; nothing without a vault.
    pub secrets: Option<SecretsParts>,
    /// Where every actor publishes.
    pub board: StatusBoard,
    /// Seed of the jitter of restarts.
    pub seed: u64,
}

/// The servers of the tree.
pub struct Servers {
    /// RPCs and health.
    pub rpc: Arc<dyn Server>,
    /// Metrics and health.
    pub metrics: Arc<dyn Server>,
    /// Health alone.
    pub health: Arc<dyn Server>,
    /// The page and its API.
    pub admin: Arc<dyn Server>,
}

/// Why an agent did not start. Nothing of it runs.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A worker's place is not in the tree.
    #[error("tree and workers do not fit")]
    Tree(#[from] TreeError),
    /// Metrics collide.
    #[error("metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
    /// The root did not start.
    #[error("the root did not start")]
    Root(#[from] RootError),
}

/// An agent whose workers are made and not started yet: servers may show it before it runs.
pub struct Agent {
    parts: AgentParts,
    metrics: ActorFamilies,
    controllers: Vec<ControllerWorkers>,
    secrets: Address<SecretsMessage>,
    secrets_metrics: SecretsMetrics,
}

impl Agent {
    /// Makes stores and addresses; registers the metrics.
    pub fn new(parts: AgentParts, registry: &Registry) -> Result<Self, AgentError> {
        let metrics = ActorFamilies::register(&TREE, &parts.board, registry)?;
        let mut controllers = Vec::new();
        for controller in parts.controllers.iter().cloned() {
            let which = controller.controller;
            controllers.push(ControllerWorkers::new(controller, |id| {
                let path = || format!("root/{which}/{id}").into();
                TREE.place(which.name(), id)
                    .ok_or_else(|| TreeError::UnknownWorker { path: path() })
            })?);
        }
        let agent = Self {
            parts,
            metrics,
            controllers,
            secrets: TREE.address(SECRETS)?,
            secrets_metrics: SecretsMetrics::register(registry)?,
        };
        registry.register(Box::new(StoreCollector::new(agent.stores())?))?;
        let leadership = agent.parts.leadership.clone();
        registry.register(Box::new(LeaseCollector::new(
            leadership,
            agent.parts.board.clone(),
            agent.parts.observes,
        )?))?;
        Ok(agent)
    }

    /// What the controllers know.
    pub fn stores(&self) -> Vec<Arc<Store>> {
        self.controllers
            .iter()
            .map(|workers| Arc::clone(workers.store()))
            .collect()
    }

    /// Who does what the scheduler calls for.
    pub fn scheduler_desk(&self) -> Desk {
        Desk::new(
            self.controllers.iter().map(ControllerWorkers::front),
            self.parts.leadership.clone(),
            self.parts.board.clone(),
        )
    }

    /// What a person may tell each controller to do.
    pub fn operators(&self) -> Vec<Operator> {
        self.controllers
            .iter()
            .map(ControllerWorkers::operator)
            .collect()
    }

    /// Who answers pods that ask for their secrets; nothing without a vault.
    pub fn secrets(&self) -> Option<SecretsClient> {
        let client = || SecretsClient::new(self.secrets.clone(), self.secrets_metrics.clone());
        self.parts.secrets.as_ref().map(|_| client())
    }

    /// How pods that ask for their secrets are proved; nothing without a vault.
    pub fn secrets_status(&self) -> Option<SecretsStatus> {
        let status = || SecretsStatus::new(self.ownership(), self.secrets_metrics.clone());
        self.parts.secrets.as_ref().map(|_| status())
    }

    fn ownership(&self) -> PodOwnership {
        let is_it = |it: &&ControllerWorkers| it.controller() == Controller::Deployments;
        let deployments = self.controllers.iter().find(is_it);
        let store = deployments.map(|workers| Arc::clone(workers.store()));
        PodOwnership::new(store, self.parts.leadership.clone())
    }

    /// Starts the tree. Returns before its controllers are ready.
    pub async fn start(self, servers: Servers) -> Result<RootHandle, AgentError> {
        let mut crew = Crew::default();
        let ownership = self.ownership();
        let (control_plane, known) = (self.parts.heartbeat, self.parts.is_region_known);
        let places = Places {
            board: &self.parts.board,
            metrics: &self.metrics,
        };
        let (leadership, election) = (self.parts.leadership, self.parts.election);
        let writer = leadership.clone();
        let path = "root/lease";
        crew = crew.worker(
            path,
            places.start(path, move || {
                Lease::new(leadership.clone(), election.clone())
            })?,
        );
        let path = "root/heartbeat";
        let contacts: Vec<_> = self
            .controllers
            .iter()
            .map(ControllerWorkers::contact)
            .collect();
        crew = crew.worker(
            path,
            places.start(path, move || {
                Heartbeat::new(
                    Arc::clone(&control_plane),
                    Arc::clone(&known),
                    contacts.clone(),
                    writer.clone(),
                )
            })?,
        );
        let (parts, counts) = (self.parts.secrets, self.secrets_metrics);
        let start = places.start_at(SECRETS, self.secrets, move || {
            Secrets::new(parts.clone(), ownership.clone(), counts.clone())
        });
        crew = crew.worker(SECRETS, start);
        let served = [
            ("rpc", servers.rpc),
            ("metrics", servers.metrics),
            ("health", servers.health),
            ("admin", servers.admin),
        ];
        for (name, server) in served {
            let path = format!("root/servers/{name}");
            let start = places.start(&path, move || ServerActor::new(Arc::clone(&server)))?;
            crew = crew.worker(path, start);
        }
        for workers in &self.controllers {
            crew = crew_of(crew, workers, &self.metrics, &TREE, "");
            crew = crew.group(
                workers.controller().name(),
                workers.prepare(),
                workers.reset(),
            );
        }
        let (board, seed) = (self.parts.board, self.parts.seed);
        Ok(Root::start(RootArguments {
            tree: &TREE,
            crew,
            board: board.actors().clone(),
            seed,
        })
        .await?)
    }
}

struct Places<'a> {
    board: &'a StatusBoard,
    metrics: &'a ActorFamilies,
}

impl Places<'_> {
    fn start<B: Behaviour<Board = StatusBoard>>(
        &self,
        path: &str,
        make: impl Fn() -> B + Send + Sync + 'static,
    ) -> Result<StartFn, TreeError> {
        Ok(self.start_at(path, TREE.address(path)?, make))
    }

    fn start_at<B: Behaviour<Board = StatusBoard>>(
        &self,
        path: &str,
        address: Address<B::Message>,
        make: impl Fn() -> B + Send + Sync + 'static,
    ) -> StartFn {
        let (board, meter) = (self.board.clone(), Meter::from(self.metrics.actor(path)));
        worker(move || ShellArguments {
            behaviour: make(),
            address: address.clone(),
            board: board.clone(),
            meter: meter.clone(),
        })
    }
}

/// Adds the workers of one controller, wherever below its node the tree has them.
fn crew_of(
    mut crew: Crew,
    workers: &ControllerWorkers,
    metrics: &ActorFamilies,
    node: &Node,
    parent: &str,
) -> Crew {
    let path = if parent.is_empty() {
        node.name.to_owned()
    } else {
        format!("{parent}/{}", node.name)
    };
    match &node.kind {
        Kind::Worker(_) => {
            let metrics: ActorMetrics = metrics.actor(&path);
            match workers.start(node.name, metrics) {
                Some(start) => crew.worker(path, start),
                None => crew,
            }
        }
        Kind::Supervisor(policy) => {
            let is_ours = policy
                .group
                .is_none_or(|group| group.name == workers.controller().name());
            for child in policy.children.iter().filter(|_| is_ours) {
                crew = crew_of(crew, workers, metrics, child, &path);
            }
            crew
        }
    }
}

#[cfg(test)]
mod tests;
