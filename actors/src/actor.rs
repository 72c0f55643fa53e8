//! The shape every worker of the tree has.
//!
//! A worker is a [`Behaviour`]: state and a handler. [`Shell`] makes a ractor actor of it and
//! does what is the same for all: the address, the gate, the published status, the metrics.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use crate::address::{Address, sent_now};
use crate::gate::Place;
use crate::metrics::ActorMetrics;
use crate::status::{Activity, StatusBoard, StatusCell};

/// A message an actor understands.
pub trait Message: Send + fmt::Debug + 'static {
    /// The variant's name in snake case, for status and metrics: a closed set.
    fn name(&self) -> &'static str;
}

/// A message on its way: with its place in the mailbox and when it was sent.
#[derive(Debug)]
pub struct Envelope<M> {
    pub(crate) message: M,
    pub(crate) place: Place,
    pub(crate) sent: Instant,
}

impl<M> Envelope<M> {
    pub(crate) fn new(message: M, place: Place) -> Self {
        Self { message, place, sent: sent_now() }
    }
}

/// Why a worker gives up; its supervisor restarts it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ActorError(pub String);

/// A worker: its state, and what it does with a message.
///
/// Handlers do no work that can hang without a deadline of its own and hold no other actor's
/// reference. Waiting for the outside world belongs in owned tasks that report back.
pub trait Behaviour: Send + Sync + Sized + 'static {
    /// What it understands.
    type Message: Message;

    /// First words after the start: arm timers, send oneself the first message. No I/O.
    fn started(
        &mut self,
        context: &Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send;

    /// Handles one message.
    fn handle(
        &mut self,
        message: Self::Message,
        context: &Context<Self::Message>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send;

    /// An ordered stop. Nothing that correctness depends on: a crash skips it.
    fn stopping(
        &mut self,
        _context: &Context<Self::Message>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// What a worker knows about its own place in the tree.
#[derive(Debug)]
pub struct Context<M: Message> {
    /// Its own address.
    pub address: Address<M>,
    /// Where all actors publish; also the tree's clock.
    pub board: StatusBoard,
    /// Its own published state.
    pub status: Arc<StatusCell>,
}

impl<M: Message> Context<M> {
    /// Sends the worker itself a message later.
    pub fn later(&self, delay: Duration, message: M) {
        self.address.send_own_after(delay, message);
    }
}

/// What a [`Shell`] is started with.
pub struct ShellArguments<B: Behaviour> {
    /// The worker's initial state.
    pub behaviour: B,
    /// Where it will live.
    pub address: Address<B::Message>,
    /// Where it publishes.
    pub board: StatusBoard,
    /// Where its messages are counted.
    pub metrics: ActorMetrics,
}

/// A [`Behaviour`] as a ractor actor.
pub struct Shell<B>(PhantomData<fn() -> B>);

impl<B: Behaviour> Shell<B> {
    /// Starts the worker as a child of `supervisor`.
    pub async fn start(
        arguments: ShellArguments<B>,
        supervisor: ActorCell,
    ) -> Result<ActorCell, ractor::SpawnErr> {
        let (actor, _) =
            Actor::spawn_linked(None, Self(PhantomData), arguments, supervisor).await?;
        Ok(actor.get_cell())
    }
}

/// A running worker's state within its shell.
pub struct Running<B: Behaviour> {
    behaviour: B,
    context: Context<B::Message>,
    metrics: ActorMetrics,
}

impl<B: Behaviour> Actor for Shell<B> {
    type Msg = Envelope<B::Message>;
    type State = Running<B>;
    type Arguments = ShellArguments<B>;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let ShellArguments { behaviour, address, board, metrics } = arguments;
        let status = board.cell(address.path(), Some(address.gate()));
        let now = board.now();
        status.update(|status| {
            status.activity = Activity::Idle;
            status.since = now;
        });
        address.occupy(myself);
        Ok(Running { behaviour, context: Context { address, board, status }, metrics })
    }

    async fn post_start(
        &self,
        _myself: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.behaviour.started(&state.context).await?;
        Ok(())
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        envelope: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let Running { behaviour, context, metrics } = state;
        let Envelope { message, place, sent } = envelope;
        let name = message.name();
        let since = context.board.now();
        context.status.update(|status| {
            status.activity = Activity::Handling { message: name, since };
            status.last_message = Some(name);
        });
        let started = Instant::now();
        metrics.waited(started.duration_since(sent));
        let result = behaviour.handle(message, context).await;
        metrics.handled(started.elapsed());
        drop(place);
        context.status.update(|status| {
            status.activity = Activity::Idle;
            status.handled += 1;
        });
        Ok(result?)
    }

    async fn post_stop(
        &self,
        myself: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.context.address.vacate(myself.get_id());
        state.behaviour.stopping(&state.context).await;
        Ok(())
    }
}
