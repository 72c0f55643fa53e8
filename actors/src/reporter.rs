//! Tells the control plane what really runs: the latest status of each object, once.
//!
//! A standby says nothing, and once it leads everything (D22). Owns: the calls under way. Never guesses from what is desired. Lost when it dies: reports in
//! flight; they are due again, and the next incarnation looks at every object once more.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use krane_domain::ids::{Moment, ObjectKey};
use krane_domain::outbox::{SendId, Sending};
use krane_domain::report::Gist;
use krane_ports::{ControlPlane, RpcFailure, RpcFailureKind};
use krane_supervision::actor::Behaviour;
use krane_supervision::alarm::Alarm;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::contact;
use crate::events::Happening;
use crate::lease::{Duty, Leadership, Turn};
use crate::metrics::ControllerMetrics;
use crate::status::{Context, StatusBoard};
use crate::store::Store;
use crate::tree;

/// Objects whose warning is remembered.
const WARNINGS: usize = 10_000;

/// What a reporter understands.
#[derive(Debug)]
pub enum ReporterMessage {
    /// The status of some workloads may have changed.
    Look,
    /// A report was delivered, or not.
    Sent {
        /// Which send it was.
        id: SendId,
        /// Its object.
        key: ObjectKey,
        /// How it went; of what was taken, what it said.
        result: Result<Gist, RpcFailure>,
        /// Since when what it said was true.
        since: Moment,
    },
    /// A report may be due.
    Timer,
    /// This process may write from now on, or may not any more.
    Turn,
}

impl Message for ReporterMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Sent { .. } => "sent",
            Self::Timer => "timer",
            Self::Turn => "turn",
        }
    }
}

/// A reporter's state.
pub struct Reporter {
    store: Arc<Store>,
    control_plane: Arc<dyn ControlPlane>,
    metrics: ControllerMetrics,
    sending: JoinSet<()>,
    duty: Duty,
    alarm: Alarm,
    last_failure: Option<String>,
    /// Objects that were warned about, by uid: once is enough.
    warned: BTreeSet<Arc<str>>,
}

impl Reporter {
    /// A reporter on this store.
    pub fn new(
        store: Arc<Store>,
        control_plane: Arc<dyn ControlPlane>,
        metrics: ControllerMetrics,
        leadership: Leadership,
    ) -> Self {
        let sending = JoinSet::new();
        let warned = BTreeSet::new();
        Self {
            store,
            control_plane,
            metrics,
            sending,
            duty: Duty::new(leadership),
            alarm: Alarm::default(),
            last_failure: None,
            warned,
        }
    }
}

impl Behaviour for Reporter {
    type Message = ReporterMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<ReporterMessage>) -> Result<(), ActorError> {
        self.duty.follow(context, || ReporterMessage::Turn);
        // What is already said is said again only after a standby, or a long silence.
        if self.duty.turn(context.board.now()).is_some() {
            self.look_at_all(context);
            self.send_due(context);
        }
        Ok(())
    }

    async fn handle(
        &mut self,
        message: ReporterMessage,
        context: &Context<ReporterMessage>,
    ) -> Result<(), ActorError> {
        self.take_turn(context);
        match message {
            ReporterMessage::Look => self.look_at_changed(context),
            ReporterMessage::Turn => {}
            ReporterMessage::Timer => self.alarm.rang(),
            ReporterMessage::Sent {
                id,
                key,
                result,
                since,
            } => {
                // The answer to a send that was given up says nothing of the one after it.
                if self.store.is_report_in_flight(&id) {
                    self.sent(&id, &key, result, since, context);
                }
            }
        }
        self.send_due(context);
        Ok(())
    }

    async fn stopping(&mut self, _context: &Context<ReporterMessage>) {
        // Reports under way may still arrive; none starts any more.
        let drained = async { while self.sending.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(tree::drain(tree::REPORTER_PATIENCE), drained).await;
        self.sending.abort_all();
    }
}

impl Reporter {
    /// Calls of a term end with it: another process may report by now. Whoever leads now may have
    /// been told nothing yet, and the control plane of something else: everything is said again.
    fn take_turn(&mut self, context: &Context<ReporterMessage>) {
        let now = context.board.now();
        let Some(turn) = self.duty.turn(now) else {
            return;
        };
        self.sending.abort_all();
        match turn {
            Turn::On(_) => {
                self.look_at_all(context);
                self.store.resend_all_reports(now);
            }
            Turn::Off => self.store.abandon_reports(now),
        }
    }

    fn send_due(&mut self, context: &Context<ReporterMessage>) {
        while self.sending.try_join_next().is_some() {}
        if !self.duty.is_on() {
            return;
        }
        let now = context.board.now();
        while let Some(sending) = self.store.take_due_report(now) {
            let Sending { id, report, since } = sending;
            let control_plane = Arc::clone(&self.control_plane);
            let own = context.own.clone();
            let (metrics, board) = (self.metrics.clone(), context.board.clone());
            let span = self.span(report.key(), context);
            let seen = span.clone();
            let send = async move {
                let call = AssertUnwindSafe(control_plane.report(&report)).catch_unwind();
                let result = call.await.unwrap_or_else(|_| {
                    Err(RpcFailure {
                        kind: RpcFailureKind::Answered,
                        code: "internal",
                        message: "sending the report made krane panic".to_owned(),
                    })
                });
                if result.is_ok() {
                    let lag = board.now().saturating_sub(since);
                    metrics.report_lag.observe(lag.as_secs_f64());
                }
                let key = report.key().clone();
                let result = result.map(|()| report.gist());
                seen.record("code", result.as_ref().map_or_else(|it| it.code, |_| "ok"));
                if result.is_err() {
                    seen.record("otel.status_code", "ERROR");
                }
                own.tell(ReporterMessage::Sent {
                    id,
                    key,
                    result,
                    since,
                });
            };
            self.sending.spawn(send.instrument(span));
        }
        self.arm_timer(context);
    }

    fn arm_timer(&mut self, context: &Context<ReporterMessage>) {
        if let Some(at) = self.store.next_report_at(context.board.now()) {
            self.alarm.set(at, context, ReporterMessage::Timer);
        }
    }

    fn sent(
        &mut self,
        id: &SendId,
        key: &ObjectKey,
        result: Result<Gist, RpcFailure>,
        since: Moment,
        context: &Context<ReporterMessage>,
    ) {
        let now = context.board.now();
        let controller = self.store.controller().name();
        match result {
            Ok(gist) => {
                self.metrics.reports_delivered.inc();
                if self.last_failure.take().is_some() {
                    tracing::info!(controller, "reports get through again");
                    self.record(Happening::ReportsRecovered, context);
                }
                let reported = Happening::Reported {
                    key: key.clone(),
                    gist,
                };
                self.record(reported, context);
                let reported_after = self.store.finish_delivered_report(id, key, since, now);
                if let Some(time) = reported_after {
                    let stage = &self.metrics.reconcile.applied_to_reported;
                    stage.observe(time.as_secs_f64());
                }
            }
            Err(failure) => {
                let text = failure.to_string();
                if self.last_failure.as_ref() != Some(&text) {
                    tracing::warn!(controller, %key, failure = text, "report failed; retrying");
                    let failed = Happening::ReportFailed {
                        key: key.clone(),
                        failure: text.clone(),
                    };
                    self.record(failed, context);
                    self.last_failure = Some(text);
                }
                match failure.kind {
                    RpcFailureKind::Answered => {
                        self.metrics.reports_refused.inc();
                        self.store.finish_refused_report(id, now);
                    }
                    RpcFailureKind::Transport => {
                        self.metrics.reports_unreachable.inc();
                        if self.store.finish_unreachable_report(id, now) {
                            contact::tell_opened(self.store.controller(), &context.board);
                        }
                    }
                }
            }
        }
    }
}

impl Reporter {
    fn record(&self, what: Happening, context: &Context<ReporterMessage>) {
        context.board.record(Some(self.store.controller()), what);
    }
}

mod look;
mod span;
