//! Holds or seeks the Lease that decides which of several processes writes (D22).
//!
//! Owns: the request under way. Never writes anything else, and decides nothing itself: the rules
//! are [`krane_domain::lease`]. Lost when it dies: that request; what it had reached is in
//! [`Leadership`], above it, and ends by itself when no successor prolongs it.

mod duty;
mod leadership;

use std::sync::Arc;

pub(crate) use duty::{Duty, OneTimer, Turn};
use krane_domain::ids::Moment;
use krane_domain::lease::{Elector, Failure, Move, Record, Timing};
use krane_ports::{LeaseFailure, Leases};
use krane_supervision::actor::Behaviour;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
pub use leadership::{Leadership, Role, Shown};
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::events::Happening;
use crate::status::{Context, StatusBoard};
use crate::tree;

/// What an election needs.
#[derive(Clone)]
pub struct Election {
    /// Where the Lease is.
    pub leases: Arc<dyn Leases>,
    /// How long everything takes.
    pub timing: Timing,
    /// Keeps candidates apart.
    pub chance: Chance,
}

/// What the lease actor understands.
#[derive(Debug)]
pub enum LeaseMessage {
    /// The next request is due.
    Due,
    /// A request is over.
    Over {
        /// What it was.
        made: Box<Move>,
        /// When it was begun.
        began: Moment,
        /// The Lease as it is now.
        result: Result<Option<Record>, LeaseFailure>,
    },
}

impl Message for LeaseMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Over { .. } => "over",
        }
    }
}

/// The lease actor's state.
pub struct Lease {
    leadership: Leadership,
    election: Option<Election>,
    elector: Option<Elector>,
    request: JoinSet<()>,
    failure: Option<String>,
    /// Restores of the cluster that the elector knows of.
    restores: u64,
}

impl Lease {
    /// One that tells this leadership what it reaches; without an election it has nothing to do.
    pub fn new(leadership: Leadership, election: Option<Election>) -> Self {
        let elector = election.as_ref().map(|election| {
            let elector = Elector::new(leadership.identity(), election.timing);
            elector.resumed(leadership.tenure())
        });
        Self {
            leadership,
            election,
            elector,
            request: JoinSet::new(),
            failure: None,
            restores: 0,
        }
    }
}

impl Behaviour for Lease {
    type Message = LeaseMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<LeaseMessage>) -> Result<(), ActorError> {
        self.act(context);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: LeaseMessage,
        context: &Context<LeaseMessage>,
    ) -> Result<(), ActorError> {
        match message {
            LeaseMessage::Due => self.act(context),
            LeaseMessage::Over {
                made,
                began,
                result,
            } => {
                // The task that told it is ending. If the next request found it still there it
                // would not be made, and none after it.
                self.request.join_next().await;
                self.over(&made, began, result, context);
            }
        }
        Ok(())
    }

    /// All lanes have ended: whoever waits need not wait for the lease to run out.
    async fn stopping(&mut self, context: &Context<LeaseMessage>) {
        self.request.shutdown().await;
        let given_back = self.give_back(context);
        let limit = tree::drain(tree::LEASE_PATIENCE);
        if tokio::time::timeout(limit, given_back).await.is_err() {
            tracing::warn!("the lease was not given back in time; it runs out by itself");
        }
    }
}

impl Lease {
    fn act(&mut self, context: &Context<LeaseMessage>) {
        while self.request.try_join_next().is_some() {}
        let (Some(elector), Some(election)) = (&mut self.elector, &self.election) else {
            return;
        };
        if !self.request.is_empty() {
            return;
        }
        let restores = context.board.api_server().restores();
        if std::mem::replace(&mut self.restores, restores) != restores {
            elector.mistrust();
        }
        // Before the request is sent: what it grants counts from here.
        let began = context.board.now();
        let made = elector.next(began);
        let (leases, limit) = (Arc::clone(&election.leases), election.timing.request());
        let own = context.own.clone();
        self.request.spawn(async move {
            let carried_out = carry_out(leases.as_ref(), &made);
            let result = tokio::time::timeout(limit, carried_out).await;
            let result = result.unwrap_or_else(|_| Err(LeaseFailure::no_answer(limit)));
            let made = Box::new(made);
            own.tell(LeaseMessage::Over {
                made,
                began,
                result,
            });
        });
    }

    fn over(
        &mut self,
        made: &Move,
        began: Moment,
        result: Result<Option<Record>, LeaseFailure>,
        context: &Context<LeaseMessage>,
    ) {
        let now = context.board.now();
        let (Some(elector), Some(election)) = (&mut self.elector, &self.election) else {
            return;
        };
        note_failure(&mut self.failure, result.as_ref().err());
        self.leadership.note_trouble(self.failure.as_deref());
        learn(elector, made, result, began, now);
        let change = self.leadership.publish(elector, now);
        let next_at = elector.next_at(began, now, election.chance.unit());
        if let Some(change) = change {
            tell(change, elector.record(), context);
        }
        context.later(next_at.saturating_sub(now), LeaseMessage::Due);
    }

    async fn give_back(&mut self, context: &Context<LeaseMessage>) {
        let (Some(elector), Some(election)) = (&mut self.elector, &self.election) else {
            return;
        };
        let has_led = elector.tenure().is_some();
        let is_write_left = self.leadership.withdraw(election.timing.duration);
        if is_write_left {
            tracing::warn!("a write was sent and not answered: the lease is left to run out");
            return;
        }
        while let Some(made) = elector.release() {
            let began = context.board.now();
            let result = carry_out(election.leases.as_ref(), &made).await;
            let is_over = matches!(
                &result,
                Err(failure) if failure.kind == Failure::Unknown || made == Move::Look
            );
            if let Err(failure) = &result {
                tracing::warn!(reason = failure.text, "the lease was not given back");
            }
            learn(elector, &made, result, began, context.board.now());
            if is_over {
                return;
            }
        }
        if has_led {
            tracing::info!("gave the lease back");
        }
    }
}

async fn carry_out(leases: &dyn Leases, made: &Move) -> Result<Option<Record>, LeaseFailure> {
    match made {
        Move::Look => leases.read().await,
        Move::Create(claim) => leases.create(claim).await.map(Some),
        Move::Update { version, claim } => leases.update(version, claim).await.map(Some),
    }
}

fn learn(
    elector: &mut Elector,
    made: &Move,
    result: Result<Option<Record>, LeaseFailure>,
    began: Moment,
    now: Moment,
) {
    match (made, result) {
        (Move::Look, Ok(record)) => elector.read(record, now),
        (Move::Look, Err(_)) => elector.read_failed(),
        (Move::Create(_) | Move::Update { .. }, Ok(Some(record))) => {
            elector.wrote(record, began, now);
        }
        (Move::Create(_) | Move::Update { .. }, Ok(None)) => {
            elector.write_failed(Failure::Conflict);
        }
        (Move::Create(_) | Move::Update { .. }, Err(failure)) => {
            elector.write_failed(failure.kind);
        }
    }
}

/// Says once that requests fail, and once that they do not any more. A conflict is no failure.
fn note_failure(before: &mut Option<String>, failure: Option<&LeaseFailure>) {
    match failure {
        Some(failure) if failure.kind == Failure::Conflict => {}
        Some(failure) if before.as_ref() == Some(&failure.text) => {}
        Some(failure) => {
            tracing::warn!(reason = failure.text, "the lease cannot be read or written");
            *before = Some(failure.text.clone());
        }
        None if before.take().is_some() => tracing::info!("the lease can be reached again"),
        None => {}
    }
}

fn tell(role: Role, record: Option<&Record>, context: &Context<LeaseMessage>) {
    match role {
        Role::Leader => {
            tracing::info!("holds the lease: this process writes from now on");
            context.board.record(None, Happening::LeaseWon);
        }
        Role::Standby => {
            let holder = record.and_then(|record| record.holder.clone());
            tracing::warn!(
                holder = holder.as_deref().unwrap_or("nobody"),
                "no longer holds the lease: this process does not write any more"
            );
            context.board.record(None, Happening::LeaseLost { holder });
        }
    }
}

#[cfg(test)]
mod tests;
