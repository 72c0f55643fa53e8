//! The root of the tree: starts everything, stops everything in order, and says how it ended.
//!
//! Owns: the topmost supervisor and the watchdog on its loop. Never gives up on a child; it fails
//! only by its own mistake, or when something that was killed does not die. Then the process has
//! to end: restarted as a whole it is sound again.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorCell;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cause::Cause;
use crate::status::Board;
use crate::supervisor::{End, Pulse, Surroundings, start_topmost};
use crate::tree::{Crew, GRACE, Node, TreeError, assemble};
use crate::watchdog::{ROUND, Watchdog};

/// An ordered stop takes no longer than this; what is left then is killed.
pub const STOP_TIMEOUT: Duration = Duration::from_millis(9_500);

/// How the tree ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to.
    Stopped,
    /// It cannot go on; the process has to end.
    Failed(Cause),
}

/// Why the tree did not start. Nothing of it runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// Tree and workers do not fit together.
    #[error("tree and workers do not fit")]
    Tree(#[from] TreeError),
    /// The topmost supervisor did not start.
    #[error("root did not start")]
    Start(#[source] Cause),
}

/// What a tree is started with.
#[derive(Clone)]
pub struct RootArguments {
    /// The tree.
    pub tree: &'static Node,
    /// Its workers.
    pub crew: Crew,
    /// Where they publish.
    pub board: Board,
    /// Seed of the jitter in pauses.
    pub seed: u64,
}

/// The root.
#[derive(Debug)]
pub struct Root;

impl Root {
    /// Starts the tree. Returns as soon as the root runs: its children start on their own, and
    /// one that cannot is tried again.
    pub async fn start(arguments: RootArguments) -> Result<RootHandle, RootError> {
        let RootArguments {
            tree,
            crew,
            board,
            seed,
        } = arguments;
        tree.declare(&board);
        let surroundings = Surroundings {
            board: board.clone(),
            seed,
            grace: GRACE,
        };
        let spec = assemble(tree, &crew, &surroundings)?;
        let watchdog = Arc::new(Watchdog::new(board, GRACE));
        let on_the_loop = Arc::clone(&watchdog);
        let pulse = Pulse {
            every: ROUND,
            beat: Arc::new(move || on_the_loop.round()),
        };
        let (actor, ended) = start_topmost(spec, surroundings, Some(pulse))
            .await
            .map_err(RootError::Start)?;
        Ok(RootHandle {
            actor,
            ended,
            watchdog,
        })
    }
}

/// A running tree.
#[derive(Clone, Debug)]
pub struct RootHandle {
    actor: ActorCell,
    ended: watch::Receiver<End>,
    watchdog: Arc<Watchdog>,
}

impl RootHandle {
    /// Stops everything in reverse start order, and returns when nothing runs any more, after
    /// [`STOP_TIMEOUT`] at the latest. Stopping again waits for the same end.
    pub async fn stop(&self) -> Exit {
        let deadline = Instant::now() + STOP_TIMEOUT;
        self.actor.stop(None);
        if let Ok(exit) = tokio::time::timeout_at(deadline, self.finished()).await {
            return exit;
        }
        tracing::error!("the ordered stop took too long; killing what is left");
        self.actor.kill();
        Exit::Failed(Cause::Undead(Arc::from("root")))
    }

    /// Waits until the tree has ended and says how.
    pub async fn finished(&self) -> Exit {
        let mut ended = self.ended.clone();
        let end = match ended.wait_for(Option::is_some).await {
            Ok(end) => end.clone(),
            // It went without a word: it crashed.
            Err(_closed) => None,
        };
        self.actor.wait(None).await.ok();
        match end {
            Some(Ok(())) => Exit::Stopped,
            Some(Err(cause)) => Exit::Failed(cause),
            None => Exit::Failed(Cause::Killed),
        }
    }

    /// What tells whether the tree is alive, for as long as anyone asks.
    pub fn watchdog(&self) -> &Arc<Watchdog> {
        &self.watchdog
    }
}
