//! What the page and its API show: copies of published states, in words.
//!
//! A view holds no secret: names, versions, reasons and addresses, never the value of a variable.
//! Moments are points in time here, so that two views are equal when nothing but time has passed.

mod controllers;
mod events;
mod filter;
mod health;
mod lease;
mod listing;
mod log;
mod object;
mod secrets;
mod time;
mod tree;
mod workloads;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use krane_actors::events::Happening;
use krane_actors::lease::Leadership;
use krane_actors::operator::WRITES_OFF;
use krane_actors::secrets::SecretsStatus;
use krane_actors::status::StatusBoard;
use krane_actors::store::Store;
use serde::Serialize;

pub use controllers::{
    BrokenWatchView, ControllerView, QuarantineView, ResyncView, SilenceView, StreamView,
    WatchesView,
};
pub use events::EventView;
pub use filter::Filter;
pub use health::{HealthSummary, Problem, ProblemKind};
pub use lease::LeaseView;
pub use listing::{ListQuery, Listing, PAGE, Sort};
pub use log::LogView;
pub use object::{ChainStep, DifferenceView, ForeignView, ObjectView, PartView};
pub use secrets::{SecretsView, UnprovedView};
pub use time::{Epoch, Stamp};
pub use tree::{ActorView, ErrorView, MailboxView, TimingView};
pub use workloads::{PodView, ReportView, WorkloadView};

use krane_server::health::HealthView;
use krane_settings::SecretFiles;
use krane_telemetry::LogTail;

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Good,
    /// On its way.
    Busy,
    /// It is worked around, or waits.
    Warn,
    /// A person has to act.
    Bad,
}

impl Level {
    /// Its name, also the class in the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Who this process is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The name of this process.
    pub instance: String,
    /// The platform of the region.
    pub platform: String,
    /// The region.
    pub region: String,
    /// Version, commit and compiler.
    pub version: &'static str,
    /// The first part of it.
    pub short_version: &'static str,
}

/// Where a view is taken from. Nothing here asks an actor.
#[derive(Clone)]
pub struct Sources {
    /// Who this process is.
    pub identity: Identity,
    /// What every actor publishes, and what happened.
    pub board: StatusBoard,
    /// What the controllers know.
    pub stores: Vec<Arc<Store>>,
    /// Whether the process stops, and whether the watchdog is content.
    pub health: Arc<dyn HealthView>,
    /// Whether writes are allowed (`safety.writes`).
    pub writes: Arc<AtomicBool>,
    /// Whether the configuration allows them.
    pub writes_configured: bool,
    /// Whether every write is a dry run (`krane run --observe`).
    pub observes: bool,
    /// Whether this process is the one that writes.
    pub leadership: Leadership,
    /// How pods that ask for their secrets are proved; nothing without a vault.
    pub secrets: Option<SecretsStatus>,
    /// The wall clock when the board was made.
    pub epoch: Epoch,
    /// The last lines of the log.
    pub log: LogTail,
    /// The files of secrets, with what the last look at each found.
    pub files: SecretFiles,
}

/// Everything there is to see, at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// When it was taken.
    pub taken_at: Stamp,
    /// In one sentence, and what to do.
    pub health: Arc<HealthSummary>,
    /// The supervision tree, in start order.
    pub tree: Arc<Vec<ActorView>>,
    /// The controllers.
    pub controllers: Arc<Vec<ControllerView>>,
    /// The workloads, in trouble first.
    pub workloads: Arc<Vec<WorkloadView>>,
    /// What happened, newest first.
    pub events: Arc<Vec<EventView>>,
    /// Since when krane does not see all of the cluster, if so.
    pub blind_since: Option<Stamp>,
    /// Events forgotten because there were too many.
    pub events_dropped: u64,
    /// How often each part has changed.
    pub revisions: Revisions,
}

/// Counts the changes of each part of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Revisions {
    /// Of the health sentence and the problems.
    pub health: u64,
    /// Of the tree.
    pub tree: u64,
    /// Of the controllers.
    pub controllers: u64,
    /// Of the workloads.
    pub workloads: u64,
    /// Of the events.
    pub events: u64,
}

impl Revisions {
    /// Names of the parts that changed since `earlier`.
    #[must_use]
    pub fn changed_since(&self, earlier: &Self) -> Vec<&'static str> {
        [
            ("health", self.health != earlier.health),
            ("tree", self.tree != earlier.tree),
            ("controllers", self.controllers != earlier.controllers),
            ("workloads", self.workloads != earlier.workloads),
            ("events", self.events != earlier.events),
        ]
        .into_iter()
        .filter_map(|(name, has_changed)| has_changed.then_some(name))
        .collect()
    }
}

impl Sources {
    /// When a person last switched writes off, if that is not forgotten.
    fn switched_off_at(&self) -> Option<Stamp> {
        let events = self.board.events().newest_first();
        let is_that = |what: &Happening| matches!(what, Happening::Asked { action, .. } if *action == WRITES_OFF);
        let found = events.iter().find(|event| is_that(&event.what))?;
        Some(self.epoch.at(found.at))
    }

    /// Takes a view. Parts that are as in `last` are shared with it.
    #[must_use]
    pub fn view(&self, last: Option<&View>) -> View {
        let now = self.epoch.at(self.board.now());
        let controllers: Vec<ControllerView> = self
            .stores
            .iter()
            .map(|store| controllers::view(&store.snapshot(), &self.epoch))
            .collect();
        let tree = tree::view(self, &controllers);
        let workloads = workloads::view(self);
        let events = events::view(self);
        let files = self.files.unusable();
        let files: Vec<_> = files
            .into_iter()
            .map(|file| (self.epoch.at(file.since), file))
            .collect();
        let health = health::summary(&health::Inputs {
            now,
            api_server_back_at: self.board.api_server_back_at().map(|at| self.epoch.at(at)),
            tree: &tree,
            controllers: &controllers,
            workloads: &workloads,
            is_stopping: self.health.readiness().stopping,
            is_live: self.health.live(),
            writing: if self.observes {
                health::Writing::Rehearsed
            } else if self.writes.load(Ordering::Relaxed) {
                health::Writing::On
            } else if self.writes_configured {
                health::Writing::SwitchedOff {
                    since: self.switched_off_at(),
                }
            } else {
                health::Writing::Off
            },
            lease: LeaseView::of(&self.leadership, &self.epoch),
            secrets: self
                .secrets
                .as_ref()
                .map(|it| SecretsView::of(it, self.board.now())),
            files: &files,
        });
        let broken = controllers.iter().flat_map(|it| &it.watches.broken);
        let blind_since = broken.map(|watch| watch.since).min();
        let mut revisions = last.map_or_else(Revisions::default, |last| last.revisions);
        if last.is_some_and(|last| last.blind_since != blind_since) {
            // It is told above them.
            revisions.workloads += 1;
        }
        View {
            taken_at: now,
            health: share(health, last.map(|last| &last.health), &mut revisions.health),
            tree: share(tree, last.map(|last| &last.tree), &mut revisions.tree),
            controllers: share(
                controllers,
                last.map(|last| &last.controllers),
                &mut revisions.controllers,
            ),
            workloads: share(
                workloads,
                last.map(|last| &last.workloads),
                &mut revisions.workloads,
            ),
            events: share(events, last.map(|last| &last.events), &mut revisions.events),
            blind_since,
            events_dropped: self.board.events().dropped(),
            revisions,
        }
    }
}

/// The part as it was if it is equal, so that viewers see that nothing changed.
fn share<T: PartialEq>(new: T, last: Option<&Arc<T>>, revision: &mut u64) -> Arc<T> {
    match last {
        Some(last) if **last == new => Arc::clone(last),
        Some(_) | None => {
            *revision += 1;
            Arc::new(new)
        }
    }
}

impl View {
    /// The workloads that match what a person typed: each word in namespace, name, id or state.
    pub fn matching<'a>(&'a self, filter: &str) -> impl Iterator<Item = &'a WorkloadView> {
        let filter = Filter::new(filter);
        self.workloads.iter().filter(move |workload| {
            let id = workload.id.as_deref().unwrap_or_default();
            let (namespace, name) = (&workload.namespace, &workload.name);
            filter.is_in(&format!("{namespace}/{name} {id} {}", workload.state))
        })
    }
}
