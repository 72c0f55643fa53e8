//! Reads all desired states again now and then (D8): finds states that became visible behind the
//! cursor, and a control plane that was restored from an older copy.
//!
//! A standby reads none (D22). Owns: a second, short-lived stream from version 0. Never deletes anything: what a replay does
//! not show is not gone. Lost when it dies: a replay; the next one comes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use krane_domain::desired::State;
use krane_domain::ids::ObjectKey;
use krane_domain::replay;
use krane_ports::ControlPlane;
use krane_supervision::actor::Behaviour;
use krane_supervision::address::Address;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
use tokio::task::JoinSet;

use crate::contact::Contact;
use crate::lease::{Duty, OneTimer, Turn};
use crate::reconciler::{self, ReconcilerMessage};
use crate::status::{Context, StatusBoard};
use crate::store::Store;
use crate::stream::StreamMessage;

mod pump;

/// A replay that shows versions older than known is repeated after this long.
const SECOND_LOOK: Duration = Duration::from_secs(30);
/// Part of the interval that jitter may take off.
const JITTER: f64 = 0.1;

/// What a replay actor understands.
#[derive(Debug)]
pub enum ReplayMessage {
    /// Time for a replay.
    Begin,
    /// This process may write from now on, or may not any more.
    Turn,
    /// It showed a state.
    Shown(Box<State>),
    /// It is over. Only a complete one says what is true.
    Ended {
        /// Whether everything was shown, as far as can be told.
        is_complete: bool,
    },
}

impl Message for ReplayMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Turn => "turn",
            Self::Shown(_) => "shown",
            Self::Ended { .. } => "ended",
        }
    }
}

/// A replay actor's state.
pub struct Replay {
    /// Its controller's memory.
    pub store: Arc<Store>,
    /// Whom it asks.
    pub control_plane: Arc<dyn ControlPlane>,
    /// Told when there is work.
    pub reconciler: Address<ReconcilerMessage>,
    /// Opens its stream again when versions began anew.
    pub stream: Address<StreamMessage>,
    /// Told of every sign of life.
    pub contact: Contact,
    /// Time between replays, before jitter (`replay.interval`); absent for none.
    pub interval: Option<Duration>,
    /// The reading task, while a replay is under way.
    pub reading: JoinSet<()>,
    /// What the replay under way showed.
    pub under_way: replay::Replay,
    /// Objects that the last replay showed in versions older than known.
    pub suspects: BTreeSet<ObjectKey>,
    pub(crate) duty: Duty,
    pub(crate) timer: OneTimer,
    /// Whether a replay is under way.
    pub(crate) is_reading: bool,
}

impl Behaviour for Replay {
    type Message = ReplayMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<ReplayMessage>) -> Result<(), ActorError> {
        self.duty.follow(context, || ReplayMessage::Turn);
        self.take_turn(context);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: ReplayMessage,
        context: &Context<ReplayMessage>,
    ) -> Result<(), ActorError> {
        self.take_turn(context);
        match message {
            ReplayMessage::Begin if self.duty.is_on() => self.begin(context),
            ReplayMessage::Shown(state) if self.is_reading => self.shown(*state, context),
            ReplayMessage::Ended { is_complete } if self.is_reading => {
                self.ended(is_complete, context);
            }
            ReplayMessage::Turn
            | ReplayMessage::Begin
            | ReplayMessage::Shown(_)
            | ReplayMessage::Ended { .. } => {}
        }
        Ok(())
    }
}

impl Replay {
    /// What was read before a turn is no replay: nobody knows what was left out.
    fn take_turn(&mut self, context: &Context<ReplayMessage>) {
        let now = context.board.now();
        let Some(turn) = self.duty.turn(now) else {
            return;
        };
        self.timer.cancel();
        self.reading.abort_all();
        self.is_reading = false;
        self.suspects.clear();
        if let Turn::On(term) = turn {
            self.store.enter_term(term, now);
            self.arm(context);
        }
    }

    fn arm(&mut self, context: &Context<ReplayMessage>) {
        if let Some(interval) = self.interval {
            let jitter = 1.0 - JITTER * self.store.chance().unit();
            let delay = interval.mul_f64(jitter);
            self.timer.set(delay, context, ReplayMessage::Begin);
        }
    }

    fn begin(&mut self, context: &Context<ReplayMessage>) {
        while self.reading.try_join_next().is_some() {}
        let now = context.board.now();
        // To where the stream has come. The cursor may be far behind, held by one bad state.
        let Some(newest) = self.store.replay_target(now) else {
            // The stream is still at its own first replay.
            self.arm(context);
            return;
        };
        self.under_way = replay::Replay::default();
        self.is_reading = true;
        self.reading.spawn(pump::read(
            Arc::clone(&self.control_plane),
            Arc::clone(&self.store),
            context.own.clone(),
            newest,
        ));
    }

    fn shown(&mut self, state: State, context: &Context<ReplayMessage>) {
        let now = context.board.now();
        self.contact.heard(now);
        let replay = &mut self.under_way;
        if self.store.receive_replayed(replay, state, now) {
            reconciler::nudge(&self.reconciler);
        }
    }

    fn ended(&mut self, is_complete: bool, context: &Context<ReplayMessage>) {
        let replay = std::mem::take(&mut self.under_way);
        self.is_reading = false;
        if !is_complete {
            self.arm(context);
            return;
        }
        let suspects = std::mem::take(&mut self.suspects);
        let older = replay.older();
        if suspects.is_empty() && !older.is_empty() {
            tracing::warn!(
                controller = self.store.controller().name(),
                objects = older.len(),
                "a replay shows older states than are known; it is repeated"
            );
            self.suspects = older.into_keys().collect();
            self.timer.set(SECOND_LOOK, context, ReplayMessage::Begin);
            return;
        }
        let states = replay::confirmed(&suspects, older);
        if !states.is_empty() {
            self.adopt(states, context);
        }
        self.arm(context);
    }

    fn adopt(&self, states: Vec<State>, context: &Context<ReplayMessage>) {
        tracing::error!(
            controller = self.store.controller().name(),
            objects = states.len(),
            "the control plane was restored from an older copy: two replays show older states \
             than are known. They are applied, and the stream begins again at version 0"
        );
        self.store.adopt_restored(states, context.board.now());
        // A full mailbox makes the stream look as well.
        let _ = self.stream.try_send(StreamMessage::Connect);
        reconciler::nudge(&self.reconciler);
    }
}
