//! The shape every worker of the tree has.
//!
//! A worker is a [`Behaviour`]: state and a handler. [`Shell`] makes a ractor actor of it and
//! does what is the same for all: the address, the gate, the published status, the metrics.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use crate::address::{Address, Own, Residence};
use crate::cause::{ActorError, Cause};
use crate::message::{Envelope, Message};
use crate::meter::Meter;
use crate::status::{Activity, Board, Occupancy, StatusCell};

/// A worker: its state, and what it does with a message.
///
/// Handlers do no work that can hang without a deadline of its own and hold no other actor's
/// reference. Waiting for the outside world belongs in owned tasks that report back.
pub trait Behaviour: Send + Sync + Sized + 'static {
    /// What it understands.
    type Message: Message;
    /// Where it publishes: [`Board`], or one that has more.
    type Board: AsRef<Board> + Clone + fmt::Debug + Send + Sync + 'static;

    /// First words after the start: arm timers, send oneself the first message. No I/O.
    fn started(
        &mut self,
        context: &Context<Self::Message, Self::Board>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send;

    /// Handles one message.
    fn handle(
        &mut self,
        message: Self::Message,
        context: &Context<Self::Message, Self::Board>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send;

    /// An ordered stop. Nothing that correctness depends on: a crash skips it.
    fn stopping(
        &mut self,
        _context: &Context<Self::Message, Self::Board>,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// What a worker knows about its own place in the tree.
#[derive(Debug)]
pub struct Context<M: Message, B = Board> {
    /// How its own tasks reach it.
    pub own: Own<M>,
    /// Where all actors publish; also the tree's clock.
    pub board: B,
    /// Its own published state.
    pub status: Arc<StatusCell>,
}

impl<M: Message, B> Context<M, B> {
    /// Sends the worker itself a message later.
    pub fn later(&self, delay: Duration, message: M) {
        self.own.tell_after(delay, message);
    }
}

/// What a [`Shell`] is started with.
pub struct ShellArguments<B: Behaviour> {
    /// The worker's initial state.
    pub behaviour: B,
    /// Where it will live.
    pub address: Address<B::Message>,
    /// Where it publishes.
    pub board: B::Board,
    /// Where its messages are counted.
    pub meter: Meter,
}

/// A [`Behaviour`] as a ractor actor.
pub struct Shell<B>(PhantomData<fn() -> B>);

impl<B: Behaviour> Shell<B> {
    /// Starts the worker as a child of `supervisor`.
    pub async fn start(
        arguments: ShellArguments<B>,
        supervisor: ActorCell,
    ) -> Result<ActorCell, Cause> {
        let (actor, _) =
            Actor::spawn_linked(None, Self(PhantomData), arguments, supervisor).await?;
        Ok(actor.get_cell())
    }
}

/// A running worker's state within its shell.
///
/// Dropped in this order, however the worker ends: its own state with all tasks it owns first,
/// the proof that it lived here last.
pub struct Running<B: Behaviour> {
    behaviour: B,
    context: Context<B::Message, B::Board>,
    meter: Meter,
    residence: Residence<B::Message>,
    _occupancy: Occupancy,
}

/// Runs one step of a worker, published under `name`. A panic becomes an error that tells its
/// place and keeps its text, which may quote input, to itself.
async fn step<M: Message, B: AsRef<Board>>(
    context: &Context<M, B>,
    name: &'static str,
    work: impl Future<Output = Result<(), ActorError>> + Send,
) -> Result<(), Cause> {
    let since = context.board.as_ref().now();
    context.status.update(|status| {
        status.activity = Activity::Handling {
            message: name,
            since,
        };
        status.last_message = Some(name);
    });
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(ActorError(words))) => Err(Cause::Failed(words.into())),
        Err(_text) => {
            context.status.update(|status| status.panics += 1);
            Err(Cause::caught_panic())
        }
    }
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
        let ShellArguments {
            behaviour,
            address,
            board,
            meter,
        } = arguments;
        let status = board.as_ref().cell(address.path(), Some(address.gate()));
        let occupancy = Occupancy::begin(board.as_ref(), &status, myself.get_cell());
        let residence = address.occupy(myself);
        let context = Context {
            own: residence.own(),
            board,
            status,
        };
        Ok(Running {
            behaviour,
            context,
            meter,
            residence,
            _occupancy: occupancy,
        })
    }

    async fn post_start(
        &self,
        _myself: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let Running {
            behaviour, context, ..
        } = state;
        step(context, "started", async {
            behaviour.started(context).await
        })
        .await?;
        let now = context.board.as_ref().now();
        context.status.update(|status| {
            status.activity = Activity::Idle;
            status.since = now;
        });
        Ok(())
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        envelope: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let Running {
            behaviour,
            context,
            meter,
            ..
        } = state;
        let Envelope {
            message,
            place,
            sent,
        } = envelope;
        let began = Instant::now();
        let wait = began.duration_since(sent);
        meter.waited(wait);
        let name = message.name();
        let result = step(context, name, async {
            #[cfg(any(test, debug_assertions))]
            let fault = context.status.fault.before(name).await?;
            let result = behaviour.handle(message, context).await;
            #[cfg(any(test, debug_assertions))]
            crate::fault::FaultSlot::after(fault);
            result
        })
        .await;
        let handle = began.elapsed();
        meter.handled(handle);
        context.status.note_message(wait, handle);
        drop(place);
        result?;
        context.status.update(|status| {
            status.activity = Activity::Idle;
            status.handled += 1;
        });
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Self::Msg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let Running {
            behaviour,
            context,
            residence,
            ..
        } = state;
        residence.leave();
        let work = async {
            behaviour.stopping(context).await;
            Ok(())
        };
        Ok(step(context, "stopping", work).await?)
    }
}
