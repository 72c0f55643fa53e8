//! Works on what is to be done: at most one lane per key, a bounded number in all.
//!
//! Owns: the lanes of one controller. Never waits for the cluster itself; lanes do, and report
//! back. Lost when it dies: its lanes; the store has every desired state, and the next incarnation
//! looks again at every key whose lane was lost.

use std::time::Duration;

use krane_domain::backlog::{InTrouble, Outcome, Task, TroubleKind};
use krane_domain::ids::{Controller, Moment, WorkKey};
use krane_domain::kinds::Password;
use krane_domain::scheduler::Wish;
use krane_ports::StateSpan;
use krane_supervision::actor::Behaviour;
use krane_supervision::address::Address;
use krane_supervision::alarm::Alarm;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
use tokio::task::JoinSet;
use tracing::{Instrument, field};

use crate::events::Happening;
use crate::lanes::{self, LaneContext};
use crate::lease::{Duty, Turn};
use crate::refusals::{standby, stopping};
use crate::reporter::ReporterMessage;
use crate::status::{Context, StatusBoard};
use crate::store::{BROKEN, CallAnswer};
use crate::tree;

/// Chores that need no exact moment.
const HOUSEKEEPING: Duration = Duration::from_secs(30);
/// Between two looks at whether the next workload may roll (D44).
const ROLL: Duration = Duration::from_secs(1);
/// Between two looks at outdated pods (D16).
const OUTDATED: Duration = Duration::from_secs(10);
/// Between two looks at the password of the registry (D42).
const RENEWAL: Duration = Duration::from_secs(5);
/// How long a deleted object is remembered: two full replays.
const TOMBSTONE: Duration = Duration::from_secs(20 * 60);

/// What a reconciler understands.
#[derive(Debug)]
pub enum ReconcilerMessage {
    /// Keys may be ready.
    Work,
    /// A lane ended.
    LaneEnded {
        /// Its key.
        key: WorkKey,
        /// How.
        outcome: Outcome,
        /// The round it was begun in.
        round: u64,
    },
    /// The scheduler calls for something, and waits for the answer.
    Call(Box<(Wish, CallAnswer)>),
    /// This process may write from now on, or may not any more.
    Turn,
    /// A waiting time may be over.
    Timer,
    /// Time to look for outdated pods.
    Outdated,
    /// Time to let the next workload roll.
    Roll,
    /// Time to see whether the password of the registry is another one.
    Renewal,
    /// Time for chores.
    Housekeeping,
}

impl Message for ReconcilerMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::LaneEnded { .. } => "lane_ended",
            Self::Call(_) => "call",
            Self::Turn => "turn",
            Self::Timer => "timer",
            Self::Outdated => "outdated",
            Self::Roll => "roll",
            Self::Renewal => "renewal",
            Self::Housekeeping => "housekeeping",
        }
    }
}

/// A reconciler's state.
pub struct Reconciler {
    lanes: LaneContext,
    max_lanes: usize,
    running: JoinSet<()>,
    /// The term of the lanes that run.
    term: Option<u64>,
    /// Counts how often all lanes were dropped: what one of an earlier round says is late.
    round: u64,
    duty: Duty,
    alarm: Alarm,
    reporter: Address<ReporterMessage>,
    may_upgrade: bool,
    is_rolling: bool,
    /// With which password every pull secret was looked at last; nothing before the first time,
    /// for the last incarnation may have died over it.
    renewed_with: Option<Password>,
}

impl Reconciler {
    /// A reconciler with room for this many lanes. With `may_upgrade` it rolls the pods of workloads
    /// whose template another renderer made, one workload at a time.
    pub fn new(
        lanes: LaneContext,
        max_lanes: usize,
        reporter: Address<ReporterMessage>,
        may_upgrade: bool,
    ) -> Self {
        let duty = Duty::new(lanes.leadership.clone());
        let most = i64::try_from(max_lanes).unwrap_or(i64::MAX);
        lanes.metrics.reconcile.most.set(most);
        Self {
            may_upgrade,
            is_rolling: false,
            renewed_with: None,
            lanes,
            max_lanes,
            running: JoinSet::new(),
            term: None,
            round: 0,
            duty,
            alarm: Alarm::default(),
            reporter,
        }
    }
}

impl Behaviour for Reconciler {
    type Message = ReconcilerMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<ReconcilerMessage>) -> Result<(), ActorError> {
        let now = context.board.now();
        self.lanes.store.abandon_tasks(now);
        self.duty.follow(context, || ReconcilerMessage::Turn);
        context.later(HOUSEKEEPING, ReconcilerMessage::Housekeeping);
        if self.lanes.store.rules().replaces_outdated_pods {
            context.later(OUTDATED, ReconcilerMessage::Outdated);
        }
        if self.lanes.registry_password.is_some() {
            context.later(RENEWAL, ReconcilerMessage::Renewal);
        }
        self.start_lanes(context);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: ReconcilerMessage,
        context: &Context<ReconcilerMessage>,
    ) -> Result<(), ActorError> {
        // Whoever broke it, a lane or a reader, may live on: this actor begins the end of the controller.
        if self.lanes.store.is_broken() {
            return Err(ActorError(BROKEN.to_owned()));
        }
        self.take_turn(context);
        match message {
            ReconcilerMessage::Work | ReconcilerMessage::Turn => {}
            ReconcilerMessage::Timer => self.alarm.rang(),
            ReconcilerMessage::Call(call) => self.call(*call, context),
            ReconcilerMessage::LaneEnded {
                key,
                outcome,
                round,
            } => {
                if self.round == round {
                    self.end_lane(&key, outcome, context);
                }
            }
            ReconcilerMessage::Outdated => {
                self.look_at_outdated(context);
                context.later(OUTDATED, ReconcilerMessage::Outdated);
            }
            ReconcilerMessage::Roll => {
                self.is_rolling = false;
                let now = context.board.now();
                self.lanes.store.let_one_roll(now);
            }
            ReconcilerMessage::Renewal => {
                self.renew(context);
                context.later(RENEWAL, ReconcilerMessage::Renewal);
            }
            ReconcilerMessage::Housekeeping => {
                self.keep_house(context);
                context.later(HOUSEKEEPING, ReconcilerMessage::Housekeeping);
            }
        }
        self.start_lanes(context);
        self.keep_rolling(context);
        Ok(())
    }

    async fn stopping(&mut self, _context: &Context<ReconcilerMessage>) {
        // A write that was sent is allowed to be answered; nothing new starts.
        let drained = async { while self.running.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(tree::drain(tree::RECONCILER_PATIENCE), drained).await;
        self.running.abort_all();
    }
}

impl Reconciler {
    /// With a term end its lanes, and their requests in flight (D49): what they decided may be old
    /// by now, and another process may write.
    fn take_turn(&mut self, context: &Context<ReconcilerMessage>) {
        let now = context.board.now();
        match self.duty.turn(now) {
            None => {}
            Some(Turn::Off) => self.drop_lanes(now),
            Some(Turn::On(term)) => {
                if self.term.replace(term) != Some(term) {
                    self.drop_lanes(now);
                }
                let store = &self.lanes.store;
                store.enter_term(term, now);
                store.retry_waiting(now);
            }
        }
    }

    fn drop_lanes(&mut self, now: Moment) {
        self.running.abort_all();
        self.round += 1;
        self.lanes.store.abandon_tasks(now);
    }

    /// Takes in a call; a process that does not write takes none.
    fn call(&mut self, (wish, answer): (Wish, CallAnswer), context: &Context<ReconcilerMessage>) {
        self.take_turn(context);
        let refusal = if self.lanes.store.is_stopping() {
            stopping()
        } else if self.duty.is_on() {
            let now = context.board.now();
            return self.lanes.store.call(wish, answer, now);
        } else {
            standby()
        };
        // Who does not wait any more needs no answer.
        let _ = answer.send(Err(refusal));
    }

    fn start_lanes(&mut self, context: &Context<ReconcilerMessage>) {
        self.take_turn(context);
        while self.running.try_join_next().is_some() {}
        let Some(term) = self.duty.term() else { return };
        let now = context.board.now();
        self.lanes.store.forget_lost_callers();
        while let Some(task) = self.lanes.store.begin_next_task(self.max_lanes, now) {
            if let Some(ago) = task.received_ago {
                let stage = &self.lanes.metrics.reconcile.received_to_started;
                stage.observe(ago.as_secs_f64());
            }
            let lanes = self.lanes.of(&task, term);
            let (own, round) = (context.own.clone(), self.round);
            let span = tracing::info_span!(
                "apply",
                controller = lanes.store.controller().name(),
                key = %task.key,
                version = task.state.as_ref().map(|state| state.version),
                outcome = field::Empty,
                otel.status_code = field::Empty,
            );
            trace(&task, &span, lanes.store.controller(), &context.board);
            let seen = span.clone();
            let lane = async move {
                let key = task.key.clone();
                let outcome = lanes::run(task, lanes).await;
                tell_span(&seen, &outcome);
                own.tell(ReconcilerMessage::LaneEnded {
                    key,
                    outcome,
                    round,
                });
            };
            self.running.spawn(lane.instrument(span));
        }
        self.arm_timer(context);
    }

    fn arm_timer(&mut self, context: &Context<ReconcilerMessage>) {
        if let Some(at) = self.lanes.store.next_timer() {
            self.alarm.set(at, context, ReconcilerMessage::Timer);
        }
    }

    fn end_lane(&self, key: &WorkKey, outcome: Outcome, context: &Context<ReconcilerMessage>) {
        let now = context.board.now();
        let jitter = self.lanes.store.chance().unit();
        let store = &self.lanes.store;
        let before = store.trouble_of(key);
        if let Some(time) = store.end_task(key, outcome, now, jitter) {
            let stage = &self.lanes.metrics.reconcile.started_to_applied;
            stage.observe(time.as_secs_f64());
        }
        self.tell_trouble(key, before.as_ref(), store.trouble_of(key).as_ref());
        if store.has_workloads_to_observe() {
            let _ = self.reporter.try_send(ReporterMessage::Look);
        }
    }

    /// One line when trouble begins, changes or ends; attempts in between are only counted.
    fn tell_trouble(&self, key: &WorkKey, before: Option<&InTrouble>, after: Option<&InTrouble>) {
        let controller = self.lanes.store.controller().name();
        match (before, after) {
            (before, Some(after)) => {
                let is_same = before.is_some_and(|before| {
                    before.trouble.kind == after.trouble.kind && before.version == after.version
                });
                if is_same {
                    return;
                }
                self.lanes.record(Happening::Troubled {
                    key: key.clone(),
                    version: after.version,
                    trouble: after.trouble.clone(),
                });
                let (kind, reason) = (after.trouble.kind.name(), after.trouble.to_string());
                let version = after.version;
                match after.trouble.kind {
                    TroubleKind::Quarantined | TroubleKind::Misconfigured => {
                        tracing::error!(controller, %key, version, kind, reason, "cannot apply");
                    }
                    TroubleKind::Transient => {
                        tracing::warn!(controller, %key, version, kind, reason, "apply failed");
                    }
                    TroubleKind::Held | TroubleKind::Waiting => {
                        tracing::info!(controller, %key, version, kind, reason, "apply waits");
                    }
                }
            }
            (Some(before), None) if before.trouble.kind != TroubleKind::Waiting => {
                let attempts = before.attempts;
                tracing::info!(controller, %key, attempts, "trouble is over");
                let key = key.clone();
                self.lanes.record(Happening::Recovered { key, attempts });
            }
            (Some(_) | None, None) => {}
        }
    }

    /// While a workload waits to roll, it is asked again and again whose turn it is.
    fn keep_rolling(&mut self, context: &Context<ReconcilerMessage>) {
        let is_needed = self.may_upgrade && !self.is_rolling && self.duty.is_on();
        if is_needed && self.lanes.store.has_workloads_to_roll() {
            self.is_rolling = true;
            context.later(ROLL, ReconcilerMessage::Roll);
        }
    }

    fn look_at_outdated(&self, context: &Context<ReconcilerMessage>) {
        let now = context.board.now();
        self.lanes.store.check_outdated(now);
    }

    /// Nothing else wakes the pull secrets of namespaces in which nothing happens.
    fn renew(&mut self, context: &Context<ReconcilerMessage>) {
        let Some(password) = &self.lanes.registry_password else {
            return;
        };
        let password = password();
        if self.renewed_with.as_ref() != Some(&password) {
            self.renewed_with = Some(password);
            let now = context.board.now();
            self.lanes.store.renew_pull_secrets(now);
        }
    }

    fn keep_house(&self, context: &Context<ReconcilerMessage>) {
        let now = context.board.now();
        let gone_before = now.saturating_sub(TOMBSTONE);
        self.lanes.store.forget_gone(gone_before, now);
    }
}

/// Ties a lane to the trace of its state. What is looked at again after it was brought about is a
/// trace of its own.
fn trace(task: &Task, span: &tracing::Span, controller: Controller, board: &StatusBoard) {
    let (Some(traces), Some(trace)) = (board.traces(), task.trace) else {
        return;
    };
    let (WorkKey::Workload(key), Some(state)) = (&task.key, &task.state) else {
        return;
    };
    let state = StateSpan {
        controller,
        key,
        version: state.version,
    };
    if task.was_settled {
        traces.link(state, trace, span);
    } else {
        traces.waited(state, trace, task.waited);
        traces.join(state, trace, span);
    }
}

/// How a lane ended, on its span.
fn tell_span(span: &tracing::Span, outcome: &Outcome) {
    let word = match outcome {
        Outcome::Done { wrote: true, .. } => "applied",
        Outcome::Done { .. } => "in place",
        Outcome::Blocked(_) => "blocked",
        Outcome::Deferred { .. } => "deferred",
        Outcome::Trouble(trouble) => {
            let is_failure = match trouble.kind {
                TroubleKind::Quarantined | TroubleKind::Misconfigured | TroubleKind::Transient => {
                    true
                }
                TroubleKind::Held | TroubleKind::Waiting => false,
            };
            if is_failure {
                span.record("otel.status_code", "ERROR");
            }
            trouble.kind.name()
        }
    };
    span.record("outcome", word);
}

/// Asks a reconciler to look for work. A full mailbox already asks.
pub(crate) fn nudge(reconciler: &Address<ReconcilerMessage>) {
    let _ = reconciler.try_send(ReconcilerMessage::Work);
}

/// Everything about these addresses and stores is shared; the reconciler owns only its lanes.
impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler")
            .field("max_lanes", &self.max_lanes)
            .finish_non_exhaustive()
    }
}
