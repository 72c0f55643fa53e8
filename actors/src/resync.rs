//! Re-reads desired state every minute: asks the control plane about every live object.
//!
//! A standby asks nothing (D22). Owns: the pass under way. Never applies anything itself; answers go to the store, and what the
//! control plane does not know is deleted only after a second question, and only as far as the
//! brake lets it. Lost when it dies: its pass; the next incarnation begins a new one.

mod pass;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krane_domain::desired::Change;
use krane_domain::ids::Moment;
use krane_ports::{Answer, ControlPlane};
use krane_supervision::actor::Behaviour;
use krane_supervision::address::Address;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
pub use pass::Finding;
use tokio::task::JoinSet;

use crate::contact::Contact;
use crate::events::Happening;
use crate::lease::{Duty, OneTimer, Turn};
use crate::metrics::ControllerMetrics;
use crate::reconciler::{self, ReconcilerMessage};
use crate::status::{Context, StatusBoard};
use crate::store::{QUIET, ResyncSummary, Store, UnknownObjects};

/// A pass that a person waits for spreads its questions over this long.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How often to look whether the first pass may begin.
const FIRST_PASS_CHECK: Duration = Duration::from_secs(1);

/// What a resync actor understands.
#[derive(Debug)]
pub enum ResyncMessage {
    /// Time for a pass.
    Tick,
    /// A person wants a pass now.
    Now,
    /// This process may write from now on, or may not any more.
    Turn,
    /// One question was answered, or not.
    Found(Finding),
    /// A pass is over.
    PassEnded(pass::PassResult),
}

impl Message for ResyncMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Now => "now",
            Self::Turn => "turn",
            Self::Found(_) => "found",
            Self::PassEnded(_) => "pass_ended",
        }
    }
}

/// What a resync actor is made of.
pub struct Resync {
    /// What the controller knows.
    pub store: Arc<Store>,
    /// Whom to ask.
    pub control_plane: Arc<dyn ControlPlane>,
    /// Whom to wake.
    pub reconciler: Address<ReconcilerMessage>,
    /// Told of every answer and of every question without one.
    pub contact: Contact,
    /// Whether the control plane took a heartbeat of this process.
    pub is_region_known: Arc<AtomicBool>,
    /// Time between passes (`resync.interval`).
    pub interval: Duration,
    /// `safety.max_deletes_percent`.
    pub max_deletes_percent: u8,
    /// Counters.
    pub metrics: ControllerMetrics,
    /// The pass under way, if one is.
    pub passes: JoinSet<()>,
    /// Whether a person asked for another one meanwhile.
    pub(crate) is_wanted_again: bool,
    pub(crate) duty: Duty,
    pub(crate) timer: OneTimer,
    /// What was asked before this is no answer any more.
    pub(crate) on_since: Moment,
}

impl Behaviour for Resync {
    type Message = ResyncMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<ResyncMessage>) -> Result<(), ActorError> {
        // The last incarnation may have died with the breaker's probe.
        self.contact.lost(context.board.now());
        self.duty.follow(context, || ResyncMessage::Turn);
        self.take_turn(context);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: ResyncMessage,
        context: &Context<ResyncMessage>,
    ) -> Result<(), ActorError> {
        self.take_turn(context);
        if !self.duty.is_on() {
            return Ok(());
        }
        match message {
            ResyncMessage::Tick => self.tick(self.interval / 2, context),
            ResyncMessage::Now if self.is_under_way() => self.is_wanted_again = true,
            ResyncMessage::Now => self.tick(AT_ONCE, context),
            ResyncMessage::Found(finding) if finding.asked_at >= self.on_since => {
                self.found(&finding, context);
            }
            ResyncMessage::PassEnded(result) if result.started_at >= self.on_since => {
                self.pass_ended(&result, context);
                if std::mem::take(&mut self.is_wanted_again) {
                    self.passes.join_next().await;
                    self.tick(AT_ONCE, context);
                }
            }
            ResyncMessage::Turn | ResyncMessage::Found(_) | ResyncMessage::PassEnded(_) => {}
        }
        Ok(())
    }
}

impl Resync {
    fn take_turn(&mut self, context: &Context<ResyncMessage>) {
        let now = context.board.now();
        match self.duty.turn(now) {
            Some(Turn::On(term)) => {
                self.store.enter_term(term, now);
                self.on_since = now;
                self.passes.abort_all();
                self.timer
                    .set(FIRST_PASS_CHECK, context, ResyncMessage::Tick);
            }
            Some(Turn::Off) => {
                self.timer.cancel();
                self.passes.abort_all();
                self.contact.lost(now);
            }
            None => {}
        }
    }

    fn is_under_way(&mut self) -> bool {
        while self.passes.try_join_next().is_some() {}
        !self.passes.is_empty()
    }

    /// Begins a pass whose questions are spread over this time, unless one is under way.
    fn tick(&mut self, spread: Duration, context: &Context<ResyncMessage>) {
        while self.passes.try_join_next().is_some() {}
        let now = context.board.now();
        let is_first = !self.store.has_resynced();
        if is_first && !self.store.is_replayed(now) {
            self.timer
                .set(FIRST_PASS_CHECK, context, ResyncMessage::Tick);
            return;
        }
        self.timer.set(self.interval, context, ResyncMessage::Tick);
        if !self.passes.is_empty() {
            return;
        }
        let controller = self.store.controller();
        let questions = self.store.resync_questions();
        tracing::debug!(
            controller = controller.name(),
            questions = questions.len(),
            "resync"
        );
        let spread = if is_first { QUIET.min(spread) } else { spread };
        self.passes.spawn(pass::run(pass::Pass {
            questions,
            spread,
            store: Arc::clone(&self.store),
            control_plane: Arc::clone(&self.control_plane),
            own: context.own.clone(),
            board: context.board.clone(),
            contact: self.contact.clone(),
        }));
    }

    fn record(&self, what: Happening, context: &Context<ResyncMessage>) {
        context.board.record(Some(self.store.controller()), what);
    }

    fn found(&self, finding: &Finding, context: &Context<ResyncMessage>) {
        let now = context.board.now();
        let key = &finding.question.key;
        let Answer::State { key: named, change } = &finding.answer else {
            return;
        };
        let controller = self.store.controller().name();
        if named != key {
            tracing::error!(
                controller,
                %key,
                %named,
                "the control plane answered about another object; the answer is ignored"
            );
            return;
        }
        let is_foreign = |change: &Change| !change.is_for(self.store.controller());
        if change.as_ref().is_ok_and(is_foreign) {
            tracing::error!(
                controller,
                %key,
                "the control plane answered with an object of another kind; the answer is ignored"
            );
            return;
        }
        let effect = self
            .store
            .receive_answer(key, change, finding.asked_at, now);
        if effect.is_adopted {
            tracing::info!(controller, %key, "resync changed what is wanted");
            self.record(Happening::ResyncChanged { key: key.clone() }, context);
        }
        if effect.is_work {
            reconciler::nudge(&self.reconciler);
        }
    }

    fn pass_ended(&self, result: &pass::PassResult, context: &Context<ResyncMessage>) {
        self.judge(result, context);
        let now = context.board.now();
        // Last, so that whoever sees the pass sees what came of it.
        self.store.note_resync(ResyncSummary {
            ended_at: now,
            took: now.saturating_sub(result.started_at),
            asked: result.asked,
            failed: result.failed,
            unknown: result.unknown.len(),
        });
    }

    fn judge(&self, result: &pass::PassResult, context: &Context<ResyncMessage>) {
        let now = context.board.now();
        let controller = self.store.controller().name();
        self.metrics
            .resync_duration
            .observe(now.saturating_sub(result.started_at).as_secs_f64());
        let unknown = result.unknown.keys().cloned().collect();
        let may_believe = self.is_region_known.load(Ordering::Relaxed);
        let (asked, failed, found) = (result.asked, result.failed, result.unknown.len());
        if failed > 0 {
            tracing::warn!(
                controller,
                asked,
                failed,
                "resync: questions without an answer"
            );
        }
        if found > 0 && !may_believe {
            tracing::warn!(
                controller,
                found,
                "not_found is not believed before the control plane took a heartbeat"
            );
            return;
        }
        let percent = self.max_deletes_percent;
        match self.store.judge_unknown(unknown, percent, now) {
            UnknownObjects::Delete(keys) => {
                for key in keys {
                    let asked_at = result.unknown.get(&key).copied().unwrap_or(Moment::ZERO);
                    if self.store.disown(&key, asked_at, now) {
                        tracing::warn!(
                            controller,
                            %key,
                            "the control plane does not know this object (asked twice): \
                             deleting it"
                        );
                        self.record(Happening::Disowned { key }, context);
                    }
                }
                reconciler::nudge(&self.reconciler);
            }
            UnknownObjects::Held { is_news: false } => {
                tracing::debug!(controller, found, "deletions are held as before");
            }
            UnknownObjects::Held { is_news: true } => {
                tracing::error!(
                    controller,
                    found,
                    "the control plane does not know these objects any more; that is too many at \
                     once, so none is deleted until a person (krane allow-deletes) or the control plane \
                     says so"
                );
                self.record(Happening::DeletesHeld { found }, context);
            }
        }
    }
}
