//! Hands the pods that krane runs the secrets they were started with.
//!
//! Owns: the requests under way, each a task; the breakers towards the API server and the vault;
//! the limits. Never keeps an answer: each request is proved anew. Lost when it dies: requests
//! under way; their callers are told to try again.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use krane_domain::secret::Secret;
use krane_ports::{DecryptRequest, Identities, Refused, SecretsDesk, Vault};
use krane_supervision::actor::Behaviour;
use krane_supervision::address::{Address, SendError};
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::status::{Context, StatusBoard};

mod answer;
mod dependency;
mod limits;
mod metrics;
mod outcome;
mod ownership;
#[cfg(test)]
mod tests;

use answer::Desk;
use limits::Limits;
pub use metrics::SecretsMetrics;
pub use outcome::Outcome;
pub use ownership::{PodOwnership, SecretsStatus};

/// Requests under way at once.
const MOST_AT_ONCE: usize = 512;

/// What answering takes. There is none without a vault.
#[derive(Clone)]
pub struct SecretsParts {
    /// Whose a token is, and what that pod is now.
    pub identities: Arc<dyn Identities>,
    /// Decrypts.
    pub vault: Arc<dyn Vault>,
    /// The audience that tokens must have been made for (`secrets.audience`).
    pub audience: Option<Arc<str>>,
    /// Spreads the probes of the breakers.
    pub chance: Chance,
}

type Reply = oneshot::Sender<Result<BTreeMap<String, Secret>, Refused>>;

/// What the secrets actor understands.
#[derive(Debug)]
pub enum SecretsMessage {
    /// A pod asks.
    Ask(Box<DecryptRequest>, Reply),
}

impl Message for SecretsMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Ask(..) => "ask",
        }
    }
}

/// The secrets actor's state.
pub struct Secrets {
    desk: Option<Arc<Desk>>,
    limits: Limits,
    metrics: SecretsMetrics,
    under_way: JoinSet<()>,
}

impl Secrets {
    /// An actor that answers with these parts, and compares pods with the desired states.
    pub fn new(
        parts: Option<SecretsParts>,
        ownership: PodOwnership,
        metrics: SecretsMetrics,
    ) -> Self {
        Self {
            desk: parts.map(|parts| Arc::new(Desk::new(parts, ownership, metrics.clone()))),
            limits: Limits::default(),
            metrics,
            under_way: JoinSet::new(),
        }
    }

    fn ask(
        &mut self,
        request: DecryptRequest,
        mut reply: Reply,
        context: &Context<SecretsMessage>,
    ) {
        self.clear_away();
        let Some(desk) = &self.desk else {
            let _ = reply.send(Err(Refused::Unavailable));
            return;
        };
        let now = context.board.now();
        let is_allowed = request.peer.is_none_or(|peer| self.limits.peer(peer, now));
        if !is_allowed || self.under_way.len() >= MOST_AT_ONCE {
            self.metrics.count(Outcome::Limited);
            let _ = reply.send(Err(Refused::ResourceExhausted));
            return;
        }
        let (desk, limits) = (Arc::clone(desk), self.limits.clone());
        let board = context.board.clone();
        self.under_way.spawn(async move {
            // Nobody works for a caller that has gone.
            tokio::select! {
                biased;
                () = reply.closed() => desk.metrics.count(Outcome::Abandoned),
                answer = desk.answer(request, &limits, &board) => {
                    let _ = reply.send(answer);
                }
            }
        });
    }

    fn clear_away(&mut self) {
        while let Some(ended) = self.under_way.try_join_next() {
            if ended.is_err_and(|error| error.is_panic()) {
                self.metrics.count(Outcome::Panicked);
                tracing::error!("a request for secrets met a defect of krane; it got no answer");
            }
        }
    }
}

impl Behaviour for Secrets {
    type Message = SecretsMessage;
    type Board = StatusBoard;

    async fn started(&mut self, _context: &Context<SecretsMessage>) -> Result<(), ActorError> {
        Ok(())
    }

    async fn handle(
        &mut self,
        message: SecretsMessage,
        context: &Context<SecretsMessage>,
    ) -> Result<(), ActorError> {
        match message {
            SecretsMessage::Ask(request, reply) => self.ask(*request, reply, context),
        }
        Ok(())
    }
}

/// The way to the secrets actor, whichever incarnation lives there.
#[derive(Clone, Debug)]
pub struct SecretsClient {
    address: Address<SecretsMessage>,
    metrics: SecretsMetrics,
}

impl SecretsClient {
    /// Asks the actor at this address.
    pub fn new(address: Address<SecretsMessage>, metrics: SecretsMetrics) -> Self {
        Self { address, metrics }
    }
}

#[async_trait]
impl SecretsDesk for SecretsClient {
    async fn decrypt(&self, request: DecryptRequest) -> Result<BTreeMap<String, Secret>, Refused> {
        let (reply, answer) = oneshot::channel();
        let ask = SecretsMessage::Ask(Box::new(request), reply);
        match self.address.try_send(ask) {
            Ok(()) => answer.await.unwrap_or(Err(Refused::Unavailable)),
            Err(SendError::Down) => Err(Refused::Unavailable),
            Err(SendError::Full) => {
                self.metrics.count(Outcome::Limited);
                Err(Refused::ResourceExhausted)
            }
        }
    }
}
