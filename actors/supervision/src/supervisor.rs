//! The one supervisor: interprets a specification of its children.
//!
//! Owns: the children's starts, restarts and stops. Never waits inside a handler: starts, stops
//! and pauses are tasks it owns, which report back by message. Lost when it dies: its counts; its
//! own supervisor starts another one, after making sure that nothing of the old one is left.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use ractor::ActorCell;
use tokio::sync::{oneshot, watch};

use crate::actor::{Behaviour, Shell, ShellArguments};
use crate::cause::Cause;
use crate::restart::Backoff;
use crate::status::Board;

mod child;
mod ends;
mod tasks;
mod winding_down;
mod work;

#[cfg(test)]
mod tests;

/// Starts one incarnation of a child below the given supervisor.
pub type StartFn =
    Arc<dyn Fn(ActorCell) -> BoxFuture<'static, Result<ActorCell, Cause>> + Send + Sync>;

/// Fetches from outside what children need before they can start; the error says what is missing.
pub type PrepareFn = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Throws away what incarnations share, when it may be the reason that they keep failing.
pub type ResetFn = Arc<dyn Fn() + Send + Sync>;

/// A start function for a worker; `arguments` makes the state of each incarnation.
pub fn worker<B, F>(arguments: F) -> StartFn
where
    B: Behaviour,
    F: Fn() -> ShellArguments<B> + Send + Sync + 'static,
{
    let arguments = Arc::new(arguments);
    Arc::new(move |supervisor| {
        let arguments = Arc::clone(&arguments);
        // Within the future, so that a panic while making the state is caught as any other.
        Box::pin(async move { Shell::start(arguments(), supervisor).await })
    })
}

/// When a child that ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Always.
    Permanent,
    /// When it did not end in order.
    Transient,
    /// Never.
    Temporary,
}

/// How a child is stopped. What is late is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// After the message it is handling; messages still waiting are dropped.
    Stop(Duration),
    /// After the messages it has; it can send itself no further ones.
    Drain(Duration),
    /// Killed at once.
    Brutal,
}

/// Who is restarted together with a failed child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Nobody: the children are independent. They also start independently of each other.
    OneForOne,
    /// All children after it: each depends on those before it.
    RestForOne,
}

/// What happens when the restart budget is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OnExhausted {
    /// The supervisor stops all children and fails: its own supervisor decides. One budget for
    /// all children.
    Escalate,
    /// The child is put aside and comes back reset after a long pause; its siblings never notice.
    /// A budget for each child.
    Park(Backoff),
}

/// One child.
#[derive(Clone)]
pub struct ChildSpec {
    /// Its name among its siblings.
    pub id: &'static str,
    /// Where it publishes.
    pub path: Arc<str>,
    /// When it is started again.
    pub restart: Restart,
    /// Starts it.
    pub start: StartFn,
    /// How long a start may take. `None` for supervisors, whose steps have limits of their own.
    pub start_timeout: Option<Duration>,
    /// How it is stopped.
    pub shutdown: Shutdown,
    /// The pauses before restarts.
    pub backoff: Backoff,
    /// Called before it comes back from being parked.
    pub reset: Option<ResetFn>,
}

/// What has to be there before the children start.
#[derive(Clone)]
pub struct Preparation {
    /// Fetches it.
    pub run: PrepareFn,
    /// How long that may take.
    pub timeout: Duration,
}

/// A supervisor and its children.
#[derive(Clone)]
pub struct SupervisorSpec {
    /// Where it publishes.
    pub path: Arc<str>,
    /// Who is restarted with whom.
    pub strategy: Strategy,
    /// This many failures …
    pub intensity: usize,
    /// … within this time are allowed.
    pub period: Duration,
    /// What happens after that.
    pub on_exhausted: OnExhausted,
    /// What its children need.
    pub prepare: Option<Preparation>,
    /// The children, in start order.
    pub children: Vec<ChildSpec>,
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SupervisorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorSpec")
            .field("path", &self.path)
            .field("children", &self.children)
            .finish_non_exhaustive()
    }
}

/// What all supervisors of one tree share.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Where everything publishes.
    pub board: Board,
    /// Seed of the pauses' jitter.
    pub seed: u64,
    /// How long a killed actor may take to die.
    pub grace: Duration,
}

/// Work the root does on its own loop, for the watchdog.
#[derive(Clone)]
pub struct Pulse {
    /// How often.
    pub every: Duration,
    /// An error is the end of the tree.
    pub beat: Arc<dyn Fn() -> Result<(), Cause> + Send + Sync>,
}

impl fmt::Debug for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulse")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

/// A supervisor's start function within a parent's specification: it counts as started when all
/// its children have been started once.
pub fn supervisor(spec: SupervisorSpec, surroundings: Surroundings) -> StartFn {
    Arc::new(move |parent| {
        let (spec, surroundings) = (spec.clone(), surroundings.clone());
        Box::pin(async move {
            let (ready, started) = oneshot::channel();
            let arguments = work::Arguments {
                spec,
                surroundings,
                ready: Some(ready),
                pulse: None,
                end: None,
            };
            let (actor, _) =
                ractor::Actor::spawn_linked(None, work::Supervisor, arguments, parent).await?;
            match started.await {
                Ok(Ok(())) => Ok(actor.get_cell()),
                Ok(Err(cause)) => Err(cause),
                Err(_gone) => Err(Cause::Killed),
            }
        })
    })
}

/// How the topmost supervisor ended; nothing while it runs.
pub type End = Option<Result<(), Cause>>;

/// Starts a supervisor without a parent. It reports its end through the channel, which closes
/// without a word when it crashes.
pub async fn start_topmost(
    spec: SupervisorSpec,
    surroundings: Surroundings,
    pulse: Option<Pulse>,
) -> Result<(ActorCell, watch::Receiver<End>), Cause> {
    let (end, ended) = watch::channel(None);
    let arguments = work::Arguments {
        spec,
        surroundings,
        ready: None,
        pulse,
        end: Some(end),
    };
    let (actor, _) = ractor::Actor::spawn(None, work::Supervisor, arguments).await?;
    Ok((actor.get_cell(), ended))
}
