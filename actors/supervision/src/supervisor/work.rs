//! The supervisor as an actor: events change the children's phases, and [`Work::advance`] takes
//! the next step from whatever the phases are. No step depends on how they came to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{oneshot, watch};

use crate::Moment;
use crate::cause::Cause;
use crate::restart::Budget;
use crate::status::{Activity, Occupancy, StatusCell};
use crate::supervisor::child::{Child, Ending, Phase};
use crate::supervisor::tasks::{Report, Tasks};
use crate::supervisor::{End, Pulse, Strategy, SupervisorSpec, Surroundings};

pub(super) struct Supervisor;

#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) spec: SupervisorSpec,
    pub(super) surroundings: Surroundings,
    /// Told when all children were started once, or why that will not happen.
    pub(super) ready: Option<oneshot::Sender<Result<(), Cause>>>,
    pub(super) pulse: Option<Pulse>,
    /// Told how the topmost supervisor ended.
    pub(super) end: Option<watch::Sender<End>>,
}

/// A running supervisor.
pub(super) struct Work {
    pub(super) myself: ActorCell,
    pub(super) spec: SupervisorSpec,
    pub(super) surroundings: Surroundings,
    pub(super) ready: Option<oneshot::Sender<Result<(), Cause>>>,
    pub(super) end: Option<watch::Sender<End>>,
    pub(super) status: Arc<StatusCell>,
    pub(super) children: Vec<Child>,
    pub(super) tasks: Tasks,
    /// Why it gives up; set once it does.
    pub(super) giving_up: Option<Cause>,
    pulse: Option<Pulse>,
    is_prepared: bool,
    /// One budget for all, when spending it escalates.
    pub(super) budget: Budget,
    pub(super) chance: fastrand::Rng,
    /// Ends of actors that are not known yet: a child can end before its start is reported.
    pub(super) early_ends: BTreeMap<ActorId, Ending>,
    _occupancy: Arc<Occupancy>,
}

impl Actor for Supervisor {
    type Msg = Report;
    type State = Work;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Report>,
        arguments: Arguments,
    ) -> Result<Work, ActorProcessingErr> {
        Ok(Work::new(myself, arguments))
    }

    async fn post_start(
        &self,
        _myself: ActorRef<Report>,
        work: &mut Work,
    ) -> Result<(), ActorProcessingErr> {
        work.begin();
        Ok(())
    }

    async fn handle(
        &self,
        _myself: ActorRef<Report>,
        report: Report,
        work: &mut Work,
    ) -> Result<(), ActorProcessingErr> {
        work.tasks.reap();
        match report {
            Report::Prepared(outcome) => work.prepared(outcome),
            Report::Started { child, outcome } => work.started(child, outcome),
            Report::Stopped { child, outcome } => work.stopped(child, outcome),
            Report::Due => {}
            Report::Pulse => work.beat(),
        }
        work.advance();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<Report>,
        event: SupervisionEvent,
        work: &mut Work,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(actor, state, reason) => {
                // With it go the tasks and timers of the dead one.
                drop(state);
                work.ended(actor.get_id(), ending_by_reason(reason.as_deref()));
            }
            SupervisionEvent::ActorFailed(actor, error) => {
                work.ended(actor.get_id(), Ending::Failed(Cause::of_error(&error)));
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        work.advance();
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Report>,
        work: &mut Work,
    ) -> Result<(), ActorProcessingErr> {
        Ok(work.wind_down().await?)
    }
}

/// ractor reports kills and cancelled tasks as if they were ordered ends.
fn ending_by_reason(reason: Option<&str>) -> Ending {
    if matches!(reason, Some("killed" | "actor_task_cancelled")) {
        Ending::Failed(Cause::Killed)
    } else {
        Ending::InOrder
    }
}

impl Work {
    fn new(myself: ActorRef<Report>, arguments: Arguments) -> Self {
        let Arguments {
            spec,
            surroundings,
            ready,
            pulse,
            end,
        } = arguments;
        let board = &surroundings.board;
        let now = board.now();
        let status = board.cell(&spec.path, None);
        let occupancy = Arc::new(Occupancy::begin(board, &status, myself.get_cell()));
        let budget = Budget::new(spec.intensity, spec.period);
        let children = spec
            .children
            .iter()
            .map(|child| {
                let status = board.cell(&child.path, None);
                Child::new(child.clone(), budget.clone(), status, now)
            })
            .collect();
        Self {
            myself: myself.get_cell(),
            chance: fastrand::Rng::with_seed(surroundings.seed ^ hash(&spec.path)),
            tasks: Tasks::new(myself, Arc::clone(&occupancy)),
            is_prepared: spec.prepare.is_none(),
            spec,
            surroundings,
            ready,
            end,
            pulse,
            status,
            children,
            giving_up: None,
            budget,
            early_ends: BTreeMap::new(),
            _occupancy: occupancy,
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.surroundings.board.now()
    }

    fn begin(&mut self) {
        if let Some(pulse) = &self.pulse {
            self.tasks.wake(pulse.every, Report::Pulse);
        }
        if let Some(prepare) = self.spec.prepare.clone() {
            self.publish(Activity::Preparing);
            self.tasks.prepare(prepare);
        }
        self.advance();
    }

    fn beat(&mut self) {
        let Some(pulse) = &self.pulse else { return };
        let outcome = (pulse.beat)();
        self.tasks.wake(pulse.every, Report::Pulse);
        if let Err(cause) = outcome {
            self.give_up(cause);
        }
    }

    fn prepared(&mut self, outcome: Result<(), Cause>) {
        match outcome {
            Ok(()) => {
                self.is_prepared = true;
                self.publish(Activity::Starting);
            }
            Err(cause) => self.give_up(cause),
        }
    }

    /// Stops all children and fails. Its own supervisor decides what becomes of it.
    pub(super) fn give_up(&mut self, cause: Cause) {
        if self.giving_up.is_none() {
            // Whoever starts it again says so, with the cause.
            tracing::debug!(actor = %self.spec.path, %cause, kind = cause.kind(), "giving up");
            self.giving_up = Some(cause);
            self.myself.stop(None);
        }
    }

    /// Takes whatever step is due.
    fn advance(&mut self) {
        if self.giving_up.is_some() || !self.is_prepared {
            return;
        }
        match self.spec.strategy {
            Strategy::OneForOne => {
                for index in 0..self.children.len() {
                    self.start_if_due(index);
                }
            }
            Strategy::RestForOne => self.advance_in_order(),
        }
        if self.children.iter().all(Child::is_settled) {
            self.publish_up();
        }
    }

    /// Whatever comes after the first child that is down goes down, last one first; then the
    /// first one starts, and the next.
    fn advance_in_order(&mut self) {
        let Some(first) = self.children.iter().position(|child| !child.is_settled()) else {
            return;
        };
        for index in (first + 1..self.children.len()).rev() {
            match &self.children[index].phase {
                Phase::Up { actor, .. } => {
                    let actor = actor.clone();
                    return self.stop_child(index, actor);
                }
                Phase::Starting | Phase::Ending { .. } => return,
                Phase::Down { .. } | Phase::Done => {}
            }
        }
        self.start_if_due(first);
    }

    fn stop_child(&mut self, index: usize, actor: ActorCell) {
        let child = &mut self.children[index];
        child.phase = Phase::Ending { id: actor.get_id() };
        self.tasks
            .stop(index, actor, &child.spec, &self.surroundings);
    }

    fn start_if_due(&mut self, index: usize) {
        let now = self.now();
        let child = &mut self.children[index];
        match child.phase {
            Phase::Down { due } if due <= now => {
                let is_reset = child.begin_start(now);
                let supervisor = self.myself.clone();
                self.tasks
                    .start(index, &child.spec, is_reset, supervisor, &self.surroundings);
            }
            Phase::Down { .. }
            | Phase::Starting
            | Phase::Up { .. }
            | Phase::Ending { .. }
            | Phase::Done => {}
        }
    }

    fn publish_up(&mut self) {
        if self.status.read().activity != Activity::Idle {
            self.publish(Activity::Idle);
        }
        if let Some(ready) = self.ready.take() {
            // A parent that no longer waits is about to stop this supervisor.
            let _ = ready.send(Ok(()));
        }
    }

    pub(super) fn publish(&self, activity: Activity) {
        let now = self.now();
        self.status.update(|status| {
            status.activity = activity;
            status.since = now;
        });
    }
}

/// FNV-1a: the same in every process, unlike the standard library's.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
