//! An agent put together from its ports, whatever world they lead to.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use krane_actors::agent::{Agent, AgentParts};
use krane_actors::chance::Chance;
use krane_actors::controller::ControllerParts;
use krane_actors::lease::{Election, Leadership};
use krane_actors::metrics::ControllerFamilies;
use krane_actors::notices::{NoticeParts, Notices};
use krane_actors::secrets::SecretsParts;
use krane_actors::status::StatusBoard;
use krane_actors::store::Store;
use krane_admin::actions::Controls;
use krane_admin::model::{Epoch, Identity, Sources};
use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_ports::SecretsDesk;
use krane_ports::{Cluster, ControlPlane, EventSink};
use krane_server::bind::Listeners;
use krane_settings::{SecretFiles, Settings, UpgradesMode, WritesMode};
use krane_supervision::root::{Exit, RootHandle};
use prometheus::Registry;

use super::RunError;
use super::files::FileReader;
use super::ports::{self, Observers, SystemClock};
use super::servers::{self, Admin, Desks};
use super::view::AgentView;
use crate::observe::{Coverage, Silent};

/// What an agent is connected to.
pub struct World {
    /// The Kubernetes cluster and the control plane, as each controller sees them.
    pub(crate) controllers: Vec<Ports>,
    /// The control plane, over the heartbeat's connection.
    pub(crate) heartbeat: Arc<dyn ControlPlane>,
    /// What is decided how; the same rules as the ports read messages with.
    pub(crate) rules: Rules,
    /// Whether this process is the one that writes …
    pub(crate) leadership: Leadership,
    /// … and how that is decided, if not always.
    pub(crate) election: Option<Election>,
    /// What pods are given their secrets with; nothing without a vault.
    pub(crate) secrets: Option<SecretsParts>,
    /// Whether nothing is written.
    pub(crate) observes: bool,
    /// Where Events go, and krane's own namespace; nothing where nobody reads any.
    pub(crate) events: Option<(Arc<dyn EventSink>, Arc<str>)>,
    /// The clock of all that.
    pub(crate) board: StatusBoard,
    /// Where all jitter begins.
    pub(crate) seed: u64,
}

/// What one controller has for itself: its calls wait for nobody else's.
pub(crate) struct Ports {
    /// Whose they are.
    pub(crate) controller: Controller,
    /// The cluster, with limits of its own.
    pub(crate) cluster: Arc<dyn Cluster>,
    /// The control plane, over a connection of its own.
    pub(crate) control_plane: Arc<dyn ControlPlane>,
}

impl World {
    /// The control plane of the settings, and any cluster.
    pub(super) fn new(
        settings: &Settings,
        cluster: impl Fn(Controller) -> Arc<dyn Cluster>,
        rules: Rules,
        seed: u64,
        observers: &Observers,
    ) -> Result<Self, RunError> {
        let control = ports::control_plane_access(settings, observers);
        let control_plane =
            |controller| ports::control_plane(settings, &control, controller, &rules);
        let controllers = Controller::ALL.into_iter().map(|controller| {
            Ok(Ports {
                controller,
                cluster: cluster(controller),
                control_plane: control_plane(controller)?,
            })
        });
        Ok(Self {
            controllers: controllers.collect::<Result<_, RunError>>()?,
            // A heartbeat is about no kind of object.
            heartbeat: control_plane(Controller::Deployments)?,
            rules,
            leadership: Leadership::default(),
            election: None,
            secrets: None,
            observes: false,
            events: None,
            board: StatusBoard::new(),
            seed,
        })
    }

    /// The same world, in which an election decides who writes.
    pub(super) fn with_election(
        self,
        leadership: Leadership,
        election: Option<Election>,
        board: StatusBoard,
    ) -> Self {
        Self {
            leadership,
            election,
            board,
            ..self
        }
    }

    /// The same world, of which nobody is told anything.
    pub(super) fn observing(mut self) -> Self {
        for ports in &mut self.controllers {
            ports.control_plane = Arc::new(Silent::new(Arc::clone(&ports.control_plane)));
        }
        Self {
            heartbeat: Arc::new(Silent::new(self.heartbeat)),
            observes: true,
            ..self
        }
    }

    /// The same world, with what `wrap` makes of each controller's way to the cluster.
    #[must_use]
    pub fn map_clusters(
        mut self,
        wrap: impl Fn(Controller, Arc<dyn Cluster>) -> Arc<dyn Cluster>,
    ) -> Self {
        for ports in &mut self.controllers {
            ports.cluster = wrap(ports.controller, Arc::clone(&ports.cluster));
        }
        self
    }

    /// Where its actors will publish.
    pub fn board(&self) -> &StatusBoard {
        &self.board
    }

    /// The control plane of the settings, and a cluster that is not reached over a network.
    pub fn with_cluster(
        settings: &Settings,
        cluster: &Arc<dyn Cluster>,
        secrets: SecretsParts,
        seed: u64,
        registry: &Registry,
    ) -> Result<Self, RunError> {
        let observers = Observers::register(registry).map_err(RunError::Metrics)?;
        let rules = ports::rules(settings, "krane");
        let world = Self::new(settings, |_| Arc::clone(cluster), rules, seed, &observers)?;
        Ok(Self {
            secrets: Some(secrets),
            ..world
        })
    }
}

/// An agent that runs.
pub struct Running {
    root: RootHandle,
    view: Arc<AgentView>,
    stores: Vec<Arc<Store>>,
    _notices: Option<Notices>,
    _files: FileReader,
    board: StatusBoard,
}

impl Running {
    /// Starts tree and servers. Returns before the controllers are ready. With `controls` the page
    /// has buttons.
    pub async fn start(
        settings: &Settings,
        world: World,
        listeners: Listeners,
        registry: &Registry,
        controls: Controls,
    ) -> Result<Self, RunError> {
        crate::version::register_build_info(registry).map_err(RunError::Metrics)?;
        let board = world.board.clone();
        let (leadership, observes) = (world.leadership.clone(), world.observes);
        if let Some(traces) = krane_telemetry::traces() {
            board.trace_to(traces);
        }
        let writes = Arc::new(AtomicBool::new(settings.safety.writes == WritesMode::On));
        let files = SecretFiles::of(settings);
        let events = world.events.clone();
        let parts = parts(settings, world, &board, registry, &writes)?;
        let agent = Agent::new(parts, registry).map_err(RunError::Start)?;
        let stores = agent.stores();
        let epoch = Epoch::of(SystemClock::unix_time(), board.now());
        let view = Arc::new(AgentView::new(stores.clone(), leadership.clone(), epoch));
        let notices = events.map(|(sink, namespace)| NoticeParts {
            board: board.clone(),
            stores: stores.clone(),
            sink,
            leadership: leadership.clone(),
            writes: Arc::clone(&writes),
            namespace,
        });
        let sources = Sources {
            identity: identity(settings),
            board: board.clone(),
            stores: stores.clone(),
            health: Arc::<AgentView>::clone(&view),
            writes,
            writes_configured: settings.safety.writes == WritesMode::On,
            observes,
            leadership,
            secrets: agent.secrets_status(),
            epoch,
            log: krane_telemetry::tail(),
            files: files.clone(),
        };
        let admin = Admin {
            sources,
            controls,
            operators: agent.operators().into(),
        };
        let secrets = agent.secrets();
        let desks = Desks {
            secrets: secrets.map(|desk| -> Arc<dyn SecretsDesk> { Arc::new(desk) }),
            scheduler: Arc::new(agent.scheduler_desk()),
        };
        let servers = servers::servers(settings, listeners, registry, &view, desks, admin)?;
        let root = agent.start(servers).await.map_err(RunError::Start)?;
        view.watch(Arc::clone(root.watchdog()));
        tracing::info!(
            version = crate::version::LONG,
            rpc_port = settings.rpc_port,
            "krane started"
        );
        Ok(Self {
            root,
            view,
            stores,
            _notices: notices.map(Notices::start),
            _files: FileReader::start(files, board.clone()),
            board,
        })
    }

    /// What the controllers know.
    pub fn stores(&self) -> &[Arc<Store>] {
        &self.stores
    }

    /// What the actors publish.
    pub fn board(&self) -> &StatusBoard {
        &self.board
    }

    /// What is not looked at yet, and what krane would not get past.
    pub(crate) fn coverage(&self, may_upgrade: bool) -> Coverage {
        Coverage::of(&self.stores, may_upgrade, self.board.now())
    }

    /// Stops it in order: from now on no write and no report begins.
    pub async fn stop(&self) -> Exit {
        self.view.stop();
        for store in &self.stores {
            store.halt();
        }
        self.root.stop().await
    }

    /// Waits until it ends by itself.
    pub async fn finished(&self) -> Exit {
        self.root.finished().await
    }

    /// What the end of the tree means for the process.
    pub fn outcome(&self, exit: Exit) -> Result<(), RunError> {
        match exit {
            Exit::Stopped => {
                tracing::info!("stopped");
                Ok(())
            }
            // A part that had to be cut off on the way out is no reason to alarm anyone.
            Exit::Failed(cause) if self.view.is_stopping() => {
                tracing::warn!(%cause, "some parts did not stop in time and were cut off");
                Ok(())
            }
            Exit::Failed(cause) => Err(RunError::GaveUp(cause)),
        }
    }
}

/// Who this process is, as the page says it.
fn identity(settings: &Settings) -> Identity {
    Identity {
        instance: settings.instance_id.clone(),
        platform: settings.region.platform.clone(),
        region: settings.region.name.clone(),
        version: crate::version::LONG,
        short_version: crate::version::VERSION,
    }
}

fn parts(
    settings: &Settings,
    world: World,
    board: &StatusBoard,
    registry: &Registry,
    writes: &Arc<AtomicBool>,
) -> Result<AgentParts, RunError> {
    let families = ControllerFamilies::register(registry).map_err(RunError::Metrics)?;
    let is_region_known = Arc::new(AtomicBool::new(false));
    let mut chance = fastrand::Rng::with_seed(world.seed);
    let controllers = world.controllers.into_iter().map(|ports| ControllerParts {
        controller: ports.controller,
        rules: world.rules.clone(),
        registry_password: ports::registry_password(settings),
        cluster: ports.cluster,
        control_plane: ports.control_plane,
        clock: Arc::new(SystemClock),
        board: board.clone(),
        max_lanes: settings.k8s.max_in_flight,
        max_backlog: usize::try_from(settings.control.max_backlog.as_bytes()).unwrap_or(usize::MAX),
        resync_interval: settings.resync.interval,
        replay_interval: settings.replay.interval,
        max_deletes_percent: settings.safety.max_deletes_percent,
        writes: Arc::clone(writes),
        may_upgrade: settings.safety.upgrades == UpgradesMode::On,
        leadership: world.leadership.clone(),
        is_region_known: Arc::clone(&is_region_known),
        chance: Chance::new(chance.u64(..)),
        metrics: families.of(ports.controller),
    });
    Ok(AgentParts {
        controllers: controllers.collect(),
        observes: world.observes,
        heartbeat: world.heartbeat,
        is_region_known,
        leadership: world.leadership,
        election: world.election,
        secrets: world.secrets,
        board: board.clone(),
        seed: world.seed,
    })
}
