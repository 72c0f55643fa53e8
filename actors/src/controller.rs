//! One controller's workers: what each is made of, and the store they share.
//!
//! Which of them restarts with which is in the tree; this file only knows how to make them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_ports::{Clock, Cluster, ControlPlane, PasswordSource};
use krane_supervision::actor::{Behaviour, ShellArguments};
use krane_supervision::address::Address;
use krane_supervision::cause::Cause;
use krane_supervision::message::Message;
use krane_supervision::meter::Meter;
use krane_supervision::supervisor::{PrepareFn, ResetFn, StartFn, worker};
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::contact::Contact;
use crate::lanes::LaneContext;
use crate::lease::{Duty, Leadership, OneTimer};
use crate::metrics::{ActorMetrics, ControllerMetrics};
use crate::operator::Operator;
use crate::reconciler::{Reconciler, ReconcilerMessage};
use crate::replay::{Replay, ReplayMessage};
use crate::reporter::{Reporter, ReporterMessage};
use crate::resync::{Resync, ResyncMessage};
use crate::scheduler::Front;
use crate::status::StatusBoard;
use crate::store::{BROKEN, Store};
use crate::stream::{Stream, StreamMessage};
use crate::watch::{self, Watch, WatchMessage};

/// What a controller is made with.
#[derive(Clone)]
pub struct ControllerParts {
    /// Which one.
    pub controller: Controller,
    /// The settings that change what is decided.
    pub rules: Rules,
    /// The password in `rules`, re-read: `registry.password_file` may change while krane runs.
    pub registry_password: Option<PasswordSource>,
    /// The cluster, with limits of this controller's own.
    pub cluster: Arc<dyn Cluster>,
    /// The control plane, over a connection of this controller's own.
    pub control_plane: Arc<dyn ControlPlane>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Where its actors publish.
    pub board: StatusBoard,
    /// Lanes at once (`k8s.max_in_flight`).
    pub max_lanes: usize,
    /// Bytes of unapplied states at which reading the stream pauses (`control.max_backlog`).
    pub max_backlog: usize,
    /// Time between passes over all objects (`resync.interval`).
    pub resync_interval: Duration,
    /// Time between full replays (`replay.interval`); absent for none.
    pub replay_interval: Option<Duration>,
    /// Share of objects that may go on `not_found` (`safety.max_deletes_percent`).
    pub max_deletes_percent: u8,
    /// Whether writes are allowed (`safety.writes`).
    pub writes: Arc<AtomicBool>,
    /// Whether objects are rewritten only because an earlier krane rendered them otherwise
    /// (`safety.upgrades`).
    pub may_upgrade: bool,
    /// Whether this process is the one that writes.
    pub leadership: Leadership,
    /// Whether the control plane took a heartbeat of this process.
    pub is_region_known: Arc<AtomicBool>,
    /// Its source of jitter.
    pub chance: Chance,
    /// What it counts with.
    pub metrics: ControllerMetrics,
}

/// A controller's store, addresses and workers.
#[derive(Clone)]
pub struct ControllerWorkers {
    parts: ControllerParts,
    store: Arc<Store>,
    watch: Address<WatchMessage>,
    /// Vacant for ever where there is nothing to report.
    reporter: Address<ReporterMessage>,
    reconciler: Address<ReconcilerMessage>,
    stream: Address<StreamMessage>,
    resync: Address<ResyncMessage>,
    replay: Address<ReplayMessage>,
}

impl ControllerWorkers {
    /// Workers with an empty store and vacant addresses. `place` gives the path and the mailbox
    /// capacity of a worker by its id.
    pub fn new<E>(
        parts: ControllerParts,
        place: impl Fn(&str) -> Result<(Arc<str>, usize), E>,
    ) -> Result<Self, E> {
        let controller = parts.controller;
        let rules = parts.rules.clone();
        let store = Arc::new(Store::new(
            parts.controller,
            rules,
            parts.max_backlog,
            parts.chance.clone(),
        ));
        Ok(Self {
            parts,
            store,
            watch: vacant("watch", &place)?,
            reporter: if controller.has_reports() {
                vacant("reporter", &place)?
            } else {
                Address::vacant("nobody", 1)
            },
            reconciler: vacant("reconciler", &place)?,
            stream: vacant("stream", &place)?,
            resync: vacant("resync", &place)?,
            replay: vacant("replay", &place)?,
        })
    }

    /// Whose workers they are.
    pub fn controller(&self) -> Controller {
        self.parts.controller
    }

    /// What the controller knows.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Its contact with the control plane, for whoever notices a sign of life.
    pub fn contact(&self) -> Contact {
        Contact::new(
            Arc::clone(&self.store),
            self.reporter.clone(),
            self.parts.board.clone(),
        )
    }

    /// Where the scheduler's calls of this kind go.
    pub fn front(&self) -> Front {
        Front::new(Arc::clone(&self.store), self.reconciler.clone())
    }

    /// What a person may tell it to do.
    pub fn operator(&self) -> Operator {
        Operator {
            store: Arc::clone(&self.store),
            reconciler: self.reconciler.clone(),
            resync: self.resync.clone(),
            writes: Arc::clone(&self.parts.writes),
            leadership: self.parts.leadership.clone(),
            cluster: Arc::clone(&self.parts.cluster),
            board: self.parts.board.clone(),
        }
    }

    /// How a worker is started, by its id in the tree; `None` for an id that is no worker here.
    /// `metrics` counts its messages.
    pub fn start(&self, id: &str, metrics: ActorMetrics) -> Option<StartFn> {
        let this = self.clone();
        let board = self.parts.board.clone();
        let start = match id {
            "watch" => start(self.watch.clone(), board, metrics, move || this.watch()),
            "reporter" => start(self.reporter.clone(), board, metrics, move || {
                this.reporter()
            }),
            "reconciler" => start(self.reconciler.clone(), board, metrics, move || {
                this.reconciler()
            }),
            "stream" => start(self.stream.clone(), board, metrics, move || this.stream()),
            "resync" => start(self.resync.clone(), board, metrics, move || this.resync()),
            "replay" => start(self.replay.clone(), board, metrics, move || this.replay()),
            _ => return None,
        };
        let store = Arc::clone(&self.store);
        Some(Arc::new(move |supervisor| {
            // Budgets are spent until the controller itself starts over, with an empty store.
            if store.is_broken() {
                return Box::pin(async { Err(Cause::NotStarted(BROKEN.into())) });
            }
            start(supervisor)
        }))
    }

    /// What has to succeed before any worker starts: the first complete lists (D22b).
    pub fn prepare(&self) -> PrepareFn {
        let store = Arc::clone(&self.store);
        let (cluster, board) = (Arc::clone(&self.parts.cluster), self.parts.board.clone());
        Arc::new(move || {
            let store = Arc::clone(&store);
            let (cluster, board) = (Arc::clone(&cluster), board.clone());
            Box::pin(async move {
                // The first step of starting over: none of its actors runs.
                if store.is_broken() {
                    store.reset();
                }
                watch::first_lists(&store, cluster.as_ref(), &board).await
            })
        })
    }

    /// Empties the store: bad state must not survive every restart.
    pub fn reset(&self) -> ResetFn {
        let store = Arc::clone(&self.store);
        Arc::new(move || store.reset())
    }

    fn watch(&self) -> Watch {
        Watch::new(
            Arc::clone(&self.store),
            Arc::clone(&self.parts.cluster),
            self.reconciler.clone(),
            self.reporter.clone(),
            self.parts.metrics.clone(),
        )
    }

    fn reporter(&self) -> Reporter {
        Reporter::new(
            Arc::clone(&self.store),
            Arc::clone(&self.parts.control_plane),
            self.parts.metrics.clone(),
            self.parts.leadership.clone(),
        )
    }

    fn duty(&self) -> Duty {
        Duty::new(self.parts.leadership.clone())
    }

    fn reconciler(&self) -> Reconciler {
        let lanes = LaneContext {
            store: Arc::clone(&self.store),
            cluster: Arc::clone(&self.parts.cluster),
            registry_password: self.parts.registry_password.clone(),
            clock: Arc::clone(&self.parts.clock),
            board: self.parts.board.clone(),
            writes: Arc::clone(&self.parts.writes),
            leadership: self.parts.leadership.clone(),
            term: 0,
            writes_older: false,
            metrics: self.parts.metrics.clone(),
        };
        let (max_lanes, may_upgrade) = (self.parts.max_lanes, self.parts.may_upgrade);
        Reconciler::new(lanes, max_lanes, self.reporter.clone(), may_upgrade)
    }

    fn stream(&self) -> Stream {
        Stream::new(
            Arc::clone(&self.store),
            Arc::clone(&self.parts.control_plane),
            self.reconciler.clone(),
            self.contact(),
            self.parts.metrics.clone(),
            self.parts.leadership.clone(),
        )
    }

    fn resync(&self) -> Resync {
        Resync {
            store: Arc::clone(&self.store),
            control_plane: Arc::clone(&self.parts.control_plane),
            reconciler: self.reconciler.clone(),
            contact: self.contact(),
            is_region_known: Arc::clone(&self.parts.is_region_known),
            interval: self.parts.resync_interval,
            max_deletes_percent: self.parts.max_deletes_percent,
            metrics: self.parts.metrics.clone(),
            passes: JoinSet::new(),
            is_wanted_again: false,
            duty: self.duty(),
            timer: OneTimer::default(),
            on_since: krane_domain::ids::Moment::ZERO,
        }
    }

    fn replay(&self) -> Replay {
        Replay {
            store: Arc::clone(&self.store),
            control_plane: Arc::clone(&self.parts.control_plane),
            reconciler: self.reconciler.clone(),
            stream: self.stream.clone(),
            contact: self.contact(),
            interval: self.parts.replay_interval,
            reading: JoinSet::new(),
            under_way: krane_domain::replay::Replay::default(),
            suspects: std::collections::BTreeSet::new(),
            duty: self.duty(),
            timer: OneTimer::default(),
            is_reading: false,
        }
    }
}

fn vacant<M: Message, E>(
    id: &str,
    place: &impl Fn(&str) -> Result<(Arc<str>, usize), E>,
) -> Result<Address<M>, E> {
    let (path, capacity) = place(id)?;
    Ok(Address::vacant(path, capacity))
}

fn start<B: Behaviour<Board = StatusBoard>>(
    address: Address<B::Message>,
    board: StatusBoard,
    metrics: ActorMetrics,
    make: impl Fn() -> B + Send + Sync + 'static,
) -> StartFn {
    let meter = Meter::from(metrics);
    worker(move || ShellArguments {
        behaviour: make(),
        address: address.clone(),
        board: board.clone(),
        meter: meter.clone(),
    })
}

#[cfg(test)]
mod tests;
