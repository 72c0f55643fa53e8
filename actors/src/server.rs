//! A server as an actor of the tree.
//!
//! Owns: the task that serves. Never answers a call itself. Lost when it dies: calls in flight;
//! callers try again at the next incarnation.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use krane_ports::Server;
use krane_supervision::actor::Behaviour;
use krane_supervision::cause::{ActorError, Cause};
use krane_supervision::message::Message;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::status::{Context, StatusBoard};

#[cfg(test)]
mod tests;

/// What a server's task reports.
#[derive(Debug)]
pub enum ServerMessage {
    /// Serving is over, though nobody asked for it.
    Ended(Result<(), String>),
}

impl Message for ServerMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Ended(_) => "ended",
        }
    }
}

/// Runs one server and fails when it does.
pub struct ServerActor {
    server: Arc<dyn Server>,
    stop: DropGuard,
    serving: JoinSet<()>,
}

impl ServerActor {
    /// An actor for this server; each incarnation serves anew.
    pub fn new(server: Arc<dyn Server>) -> Self {
        Self {
            server,
            stop: CancellationToken::new().drop_guard(),
            serving: JoinSet::new(),
        }
    }
}

impl Behaviour for ServerActor {
    type Message = ServerMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<ServerMessage>) -> Result<(), ActorError> {
        let (server, stop) = (Arc::clone(&self.server), self.stop.token().clone());
        let own = context.own.clone();
        self.serving.spawn(async move {
            let outcome = AssertUnwindSafe(server.serve(stop)).catch_unwind().await;
            let outcome =
                outcome.unwrap_or_else(|_text| Err(format!("it {}", Cause::caught_panic())));
            // An actor that is gone, or stopping, needs no word of it.
            own.tell(ServerMessage::Ended(outcome));
        });
        Ok(())
    }

    async fn handle(
        &mut self,
        message: ServerMessage,
        _context: &Context<ServerMessage>,
    ) -> Result<(), ActorError> {
        match message {
            ServerMessage::Ended(Err(words)) => Err(ActorError(words)),
            ServerMessage::Ended(Ok(())) => Err(ActorError("it ended by itself".to_owned())),
        }
    }

    async fn stopping(&mut self, _context: &Context<ServerMessage>) {
        self.stop.token().cancel();
        while self.serving.join_next().await.is_some() {}
    }
}
