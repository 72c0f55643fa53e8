//! The demo, `krane-demo`: the whole agent on a cluster and a control plane in memory, and a story to watch.
//!
//! The agent is the real one, with the real gRPC adapter on a loopback connection; only the
//! cluster behind its port is simulated.

pub mod cli;
mod cluster;
mod controls;
mod crowd;
mod narrator;
mod outcome;
mod play;
mod script;
mod stage;
mod summary;
#[cfg(test)]
mod tests;
mod wish;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cluster::DemoCluster;
use controls::Hands;
use crowd::Crowd;
pub use crowd::CrowdOptions;
use krane_actors::chance::Chance;
use krane_actors::secrets::SecretsParts;
use krane_admin::actions::DemoControls;
use krane_domain::secret::Secret;
use krane_server::bind::Listeners;
use krane_settings::{InvalidSettings, LoadInput, Settings};
use krane_sim::control_plane::{ControlPlane, PLATFORM, REGION};
use krane_sim::vault::SimVault;
pub use narrator::Format;
use narrator::{Links, Narrator};
use play::Play;
use prometheus::Registry;
use script::Script;
use stage::{Secrets, Stage, pause};
use tokio::net::TcpListener;
use tokio::time::Instant;

use krane::run::{RunError, Running, World};

/// The pause between two acts: time to read.
const PACE: Duration = Duration::from_secs(2);

/// The pause of a story that has to come to an end.
const BRISK: Duration = Duration::from_millis(900);

/// Requests to the control plane and events of the cluster that are remembered: a demo may run for days.
const KEPT: usize = 1_000;

/// Events of the cluster that are remembered beside them for each app of the crowd, which comes all at once: a watch that is
/// further behind has to begin again.
const KEPT_OF_AN_APP: usize = 2;

/// How long the agent may take to stop before it is left to the end of the process.
const STOP: Duration = Duration::from_secs(2);

/// The bearer token of the embedded control plane, which listens on the loopback interface only.
const TOKEN: &str = "demo";

/// What the variables begin with that send the traces of a demo to a collector.
const TRACES: &str = "KRANE__OBSERVABILITY__TRACING__";

/// How a demo is played.
#[derive(Clone, Debug)]
pub struct Options {
    /// The story.
    pub seed: u64,
    /// When it ends by itself; `None` plays until it is interrupted.
    pub length: Option<Duration>,
    /// How it is told.
    pub format: Format,
    /// The port of the live page; `None` takes a free one.
    pub port: Option<u16>,
    /// Apps beside those of the story.
    pub crowd: CrowdOptions,
    /// What the page asks for; with it, krane's own actions work.
    pub token: Option<Secret>,
}

/// Why a demo could not be played.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The port that was asked for could not be had.
    #[error("the live page cannot listen on port {port} of 127.0.0.1")]
    ThisPort {
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// No port of the loopback interface could be had.
    #[error("no port of 127.0.0.1 could be had")]
    Port(#[source] io::Error),
    /// The embedded control plane did not start.
    #[error("the embedded control plane did not start")]
    ControlPlane(#[source] krane_sim::control_plane::Error),
    /// krane does not like the settings it was given: those of the environment, or a defect of the demo.
    #[error(transparent)]
    Settings(Box<InvalidSettings>),
    /// krane did not start, or gave up.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The story could not be written.
    #[error("the story cannot be written to its output")]
    Output(#[source] io::Error),
}

/// A demo on the point of starting: its ports are taken, nothing runs.
pub struct Demo {
    options: Options,
    settings: Settings,
    listeners: Listeners,
    rpc_at: SocketAddr,
    control: ControlPlane,
    links: Links,
}

impl Demo {
    /// Takes free ports and starts the control plane. Log lines are of this level; of the environment only what it says about
    /// traces counts.
    pub async fn prepare(
        options: Options,
        level: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, DemoError> {
        let (admin, admin_at) = match options.port {
            None => listen(0).await.map_err(DemoError::Port)?,
            Some(port) => listen(port)
                .await
                .map_err(|source| DemoError::ThisPort { port, source })?,
        };
        let (rpc, rpc_at) = listen(0).await.map_err(DemoError::Port)?;
        let (metrics, metrics_at) = listen(0).await.map_err(DemoError::Port)?;
        let control = ControlPlane::start(TOKEN)
            .await
            .map_err(DemoError::ControlPlane)?;
        let traces = env.iter().filter(|(key, _)| key.starts_with(TRACES));
        let traces = traces.map(|(key, value)| (key.clone(), value.clone()));
        let own = [
            ("KRANE__REGION", REGION.to_owned()),
            ("KRANE__PLATFORM", PLATFORM.to_owned()),
            ("KRANE__RPC_PORT", rpc_at.port().to_string()),
            ("KRANE__ADMIN__LISTEN", admin_at.to_string()),
            (
                "KRANE__OBSERVABILITY__METRICS__PROMETHEUS_PORT",
                metrics_at.port().to_string(),
            ),
            ("KRANE__OBSERVABILITY__LOGGING__LEVEL", level.to_owned()),
            ("KRANE__CONTROL__URL", control.url()),
            ("KRANE__CONTROL__TOKEN", TOKEN.to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value));
        let actions = options.token.iter().flat_map(|token| {
            [
                ("KRANE__ADMIN__ACTIONS".to_owned(), "true".to_owned()),
                ("KRANE__ADMIN__TOKEN".to_owned(), token.expose().to_owned()),
            ]
        });
        let input = LoadInput {
            env: own.into_iter().chain(traces).chain(actions).collect(),
            ..LoadInput::default()
        };
        let settings =
            Settings::load(&input).map_err(|invalid| DemoError::Settings(Box::new(invalid)))?;
        Ok(Self {
            options,
            settings,
            listeners: Listeners {
                rpc,
                metrics: Some(metrics),
                health: None,
                admin: Some(admin),
            },
            rpc_at,
            control,
            links: Links {
                page: format!("http://{admin_at}/"),
                metrics: format!("http://{metrics_at}/metrics"),
            },
        })
    }

    /// The settings krane runs with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts cluster and agent, with the page's hands in both.
    async fn start(self, narrator: &Arc<Narrator>) -> Result<Arc<Stage>, DemoError> {
        let (seed, settings) = (self.options.seed, &self.settings);
        let registry = Registry::new();
        let crowd = self.options.crowd;
        let cluster = DemoCluster::new(seed, KEPT + KEPT_OF_AN_APP * crowd.apps);
        let vault = SimVault::default();
        let secrets = SecretsParts {
            identities: cluster.identities(),
            vault: Arc::new(vault.clone()),
            audience: None,
            chance: Chance::new(seed),
        };
        let world = World::with_cluster(settings, &cluster.port(), secrets, seed, &registry)?;
        let secrets = Secrets::new(vault, self.rpc_at);
        self.control.keep_requests(KEPT);
        let stage = Arc::new(Stage::new(
            self.control,
            cluster,
            secrets,
            Crowd::new(crowd, seed),
        ));
        let hands = Hands::new(Arc::clone(&stage), Arc::clone(narrator));
        let controls = Some(Arc::new(hands) as Arc<dyn DemoControls>);
        let agent = Running::start(settings, world, self.listeners, &registry, controls).await?;
        stage.enter(agent);
        Ok(stage)
    }

    /// Plays until its time is over or `interrupted` ends. Whether all was well in the end; an
    /// interrupted demo is.
    pub async fn play(
        self,
        out: Box<dyn Write + Send>,
        interrupted: impl Future<Output = ()>,
    ) -> Result<bool, DemoError> {
        let Options {
            seed,
            length,
            format,
            port: _,
            crowd: _,
            token: _,
        } = self.options;
        let narrator = Arc::new(Narrator::new(format, out));
        let told = narrator.open(seed, &self.links, length.is_some());
        told.map_err(DemoError::Output)?;
        let stage = self.start(&narrator).await?;
        let agent = stage.agent();
        let play = Play {
            stage: &stage,
            narrator: &narrator,
        };
        let told = tokio::select! {
            told = story(&play, seed, length) => Some(told),
            () = interrupted => None,
            ended = finished(agent) => {
                ended?;
                None
            }
        };
        // What is left after that ends with the process.
        if let Some(agent) = agent {
            let _ = tokio::time::timeout(STOP, agent.stop()).await;
        }
        if let Some(told) = told {
            return told;
        }
        narrator.interrupted().map_err(DemoError::Output)?;
        Ok(true)
    }
}

/// Waits until the agent ends by itself, which it does only when it gives up.
async fn finished(agent: Option<&Running>) -> Result<(), RunError> {
    match agent {
        Some(agent) => agent.outcome(agent.finished().await),
        None => std::future::pending().await,
    }
}

/// Tells the story. Whether all was well in the end.
async fn story(play: &Play<'_>, seed: u64, length: Option<Duration>) -> Result<bool, DemoError> {
    let start = Instant::now();
    if let Some(length) = length {
        play.stage.end_after(length);
    }
    play.crowd_appears().await?;
    let acts = tokio::select! {
        acts = acts(play, seed, length, start) => acts?,
        () = play.stage.change_crowd() => 0,
    };
    play.stage.settle().await;
    play.stage.crowd_settled().await;
    let elapsed = play.narrator.elapsed();
    let summary = play.stage.summary(seed, elapsed, acts);
    let told = play.narrator.close(&summary);
    told.map_err(DemoError::Output)?;
    Ok(summary.ok)
}

/// Plays one act after the other until the time is over. How many there were.
async fn acts(
    play: &Play<'_>,
    seed: u64,
    length: Option<Duration>,
    start: Instant,
) -> Result<usize, DemoError> {
    let mut acts = 0;
    let mut healthy = BTreeSet::new();
    for act in Script::new(seed) {
        if let Some(length) = length
            && acts > 0
            && start.elapsed() + act.length() > length
        {
            break;
        }
        play.stage.undisturbed().await;
        if play.stage.is_looked_at(Instant::now()) {
            play.leave_alone().await?;
        }
        if act.is_outage() && play.stage.is_resting() {
            play.rest().await?;
        }
        // A visitor's bad state stays until the visitor mends it.
        if !act.about().iter().any(|wish| play.stage.is_spoilt(wish)) {
            play.tell_health(&mut healthy)?;
            play.act(&act).await?;
            acts += 1;
            play.narrator.pause().map_err(DemoError::Output)?;
        }
        pause(length.map_or(PACE, |_| BRISK)).await;
    }
    Ok(acts)
}

async fn listen(port: u16) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
