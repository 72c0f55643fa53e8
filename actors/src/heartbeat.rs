//! Tells the control plane every 30 s that this region is alive.
//!
//! On a standby it is silent (D22). Owns: the call under way. Never waits for anything else; its success is a sign of life for
//! every controller (D26a). Lost when it dies: a beat under way; its successor beats at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krane_ports::{ControlPlane, RpcFailure};
use krane_supervision::actor::Behaviour;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
use tokio::task::JoinSet;

use crate::contact::Contact;
use crate::lease::{Duty, Leadership, OneTimer, Turn};
use crate::status::{Context, StatusBoard};

/// Time between beats.
const INTERVAL: Duration = Duration::from_secs(30);

/// What a heartbeat understands.
#[derive(Debug)]
pub enum HeartbeatMessage {
    /// Time for a beat.
    Beat,
    /// This process may write from now on, or may not any more.
    Turn,
    /// A beat was taken, or not.
    Beaten(Result<(), RpcFailure>),
}

impl Message for HeartbeatMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Beat => "beat",
            Self::Turn => "turn",
            Self::Beaten(_) => "beaten",
        }
    }
}

/// A heartbeat's state.
pub struct Heartbeat {
    control_plane: Arc<dyn ControlPlane>,
    /// Set once the control plane took a beat of this process: only then does it know the region,
    /// and only then may its `not_found` be believed.
    is_known: Arc<AtomicBool>,
    contacts: Vec<Contact>,
    duty: Duty,
    timer: OneTimer,
    is_failing: bool,
    call: JoinSet<()>,
}

impl Heartbeat {
    /// A heartbeat that sets `is_known` at its first success and tells `contacts` of each.
    pub fn new(
        control_plane: Arc<dyn ControlPlane>,
        is_known: Arc<AtomicBool>,
        contacts: Vec<Contact>,
        leadership: Leadership,
    ) -> Self {
        Self {
            control_plane,
            is_known,
            contacts,
            duty: Duty::new(leadership),
            timer: OneTimer::default(),
            is_failing: false,
            call: JoinSet::new(),
        }
    }
}

impl Behaviour for Heartbeat {
    type Message = HeartbeatMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<HeartbeatMessage>) -> Result<(), ActorError> {
        self.duty.follow(context, || HeartbeatMessage::Turn);
        self.take_turn(context);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: HeartbeatMessage,
        context: &Context<HeartbeatMessage>,
    ) -> Result<(), ActorError> {
        self.take_turn(context);
        match message {
            HeartbeatMessage::Beat if self.duty.is_on() => self.beat(context),
            HeartbeatMessage::Beat | HeartbeatMessage::Turn => {}
            HeartbeatMessage::Beaten(result) => self.beaten(result, context),
        }
        Ok(())
    }
}

impl Heartbeat {
    fn take_turn(&mut self, context: &Context<HeartbeatMessage>) {
        match self.duty.turn(context.board.now()) {
            Some(Turn::On(_)) => self.beat(context),
            Some(Turn::Off) => {
                self.timer.cancel();
                // One that hangs must not hold up the first of the next term.
                self.call.abort_all();
            }
            None => {}
        }
    }

    fn beat(&mut self, context: &Context<HeartbeatMessage>) {
        self.timer.set(INTERVAL, context, HeartbeatMessage::Beat);
        while self.call.try_join_next().is_some() {}
        if !self.call.is_empty() {
            return;
        }
        let control_plane = Arc::clone(&self.control_plane);
        let own = context.own.clone();
        self.call.spawn(async move {
            let result = control_plane.heartbeat().await;
            own.tell(HeartbeatMessage::Beaten(result));
        });
    }

    fn beaten(&mut self, result: Result<(), RpcFailure>, context: &Context<HeartbeatMessage>) {
        match result {
            Ok(()) => {
                for contact in &self.contacts {
                    contact.heard(context.board.now());
                }
                self.is_known.store(true, Ordering::Relaxed);
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("heartbeat gets through again");
                }
            }
            Err(failure) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    let (code, reason) = (failure.code, failure.message);
                    tracing::warn!(code, reason, "heartbeat failed; the next one is in 30 s");
                }
            }
        }
    }
}
