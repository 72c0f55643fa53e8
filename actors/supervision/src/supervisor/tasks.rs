//! What a supervisor has done for it while it goes on answering. All of it ends with it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use ractor::{ActorCell, ActorRef};
use tokio::task::JoinSet;

use crate::cause::Cause;
use crate::status::{Board, Occupancy};
use crate::supervisor::{ChildSpec, Preparation, Shutdown, Surroundings};

/// What a supervisor's own tasks tell it.
#[derive(Debug)]
pub(super) enum Report {
    /// What the children need is there, or is not.
    Prepared(Result<(), Cause>),
    /// A child runs; or nothing of it does.
    Started {
        child: usize,
        outcome: Result<ActorCell, Cause>,
    },
    /// A child was stopped in order.
    Stopped {
        child: usize,
        outcome: Result<(), Cause>,
    },
    /// A pause is over.
    Due,
    /// Time for the work the root does on its own loop.
    Pulse,
}

/// The tasks of one supervisor.
#[derive(Debug)]
pub(super) struct Tasks {
    running: JoinSet<()>,
    supervisor: ActorRef<Report>,
    /// Each task has a share: a supervisor that was killed is not gone before the last of them,
    /// which another thread may just be working on, and which may start a child in its name.
    occupancy: Arc<Occupancy>,
}

impl Tasks {
    pub(super) fn new(supervisor: ActorRef<Report>, occupancy: Arc<Occupancy>) -> Self {
        Self {
            running: JoinSet::new(),
            supervisor,
            occupancy,
        }
    }

    /// Forgets tasks that are over.
    pub(super) fn reap(&mut self) {
        while self.running.try_join_next().is_some() {}
    }

    /// Ends all tasks and waits until they are gone.
    pub(super) async fn end(&mut self) {
        self.running.shutdown().await;
    }

    fn spawn(&mut self, work: impl Future<Output = Report> + Send + 'static) {
        let supervisor = self.supervisor.clone();
        let occupancy = Arc::clone(&self.occupancy);
        self.running.spawn(async move {
            // A supervisor that is gone needs no report.
            let _ = supervisor.cast(work.await);
            drop(occupancy);
        });
    }

    pub(super) fn wake(&mut self, delay: Duration, report: Report) {
        self.spawn(async move {
            #[allow(clippy::disallowed_methods, reason = "the timer behind timer messages")]
            tokio::time::sleep(delay).await;
            report
        });
    }

    pub(super) fn prepare(&mut self, Preparation { run, timeout }: Preparation) {
        self.spawn(async move {
            let work = AssertUnwindSafe(async move { run().await }).catch_unwind();
            Report::Prepared(match tokio::time::timeout(timeout, work).await {
                Ok(Ok(Ok(()))) => Ok(()),
                Ok(Ok(Err(missing))) => Err(Cause::Unprepared(missing.into())),
                // Our own mistake, unlike the two others.
                Ok(Err(_text)) => Err(Cause::caught_panic()),
                Err(_late) => Err(Cause::Unprepared(format!("not within {timeout:?}").into())),
            })
        });
    }

    pub(super) fn start(
        &mut self,
        child: usize,
        spec: &ChildSpec,
        is_reset: bool,
        supervisor: ActorCell,
        surroundings: &Surroundings,
    ) {
        let (spec, Surroundings { board, grace, .. }) = (spec.clone(), surroundings.clone());
        self.spawn(async move {
            let outcome = match AssertUnwindSafe(start(&spec, is_reset, supervisor, &board, grace))
                .catch_unwind()
                .await
            {
                Ok(outcome) => outcome,
                Err(_text) => Err(Cause::caught_panic()),
            };
            let outcome = match outcome {
                Ok(actor) => Ok(actor),
                // A start that was cut off may have left something behind.
                Err(cause) => board.evict(&spec.path, grace).await.and(Err(cause)),
            };
            Report::Started { child, outcome }
        });
    }

    pub(super) fn stop(
        &mut self,
        child: usize,
        actor: ActorCell,
        spec: &ChildSpec,
        surroundings: &Surroundings,
    ) {
        let (path, shutdown) = (Arc::clone(&spec.path), spec.shutdown);
        let Surroundings { board, grace, .. } = surroundings.clone();
        self.spawn(async move {
            let mut outcome = stop(&actor, shutdown, &path, grace).await;
            if outcome.is_ok() {
                outcome = board.evict(&path, grace).await;
            }
            Report::Stopped { child, outcome }
        });
    }
}

async fn start(
    spec: &ChildSpec,
    is_reset: bool,
    supervisor: ActorCell,
    board: &Board,
    grace: Duration,
) -> Result<ActorCell, Cause> {
    // An earlier incarnation, or what it supervised, may still be dying.
    board.evict(&spec.path, grace).await?;
    if let (true, Some(reset)) = (is_reset, &spec.reset) {
        reset();
    }
    let starting = (spec.start)(supervisor);
    match spec.start_timeout {
        None => starting.await,
        Some(limit) => tokio::time::timeout(limit, starting)
            .await
            .unwrap_or(Err(Cause::StartTimeout(limit))),
    }
}

/// Stops an actor as its specification says, and kills it when it is late.
pub(super) async fn stop(
    actor: &ActorCell,
    shutdown: Shutdown,
    path: &Arc<str>,
    grace: Duration,
) -> Result<(), Cause> {
    let patience = match shutdown {
        Shutdown::Stop(patience) => {
            actor.stop(None);
            patience
        }
        Shutdown::Drain(patience) => {
            // Fails only when it is already gone.
            let _ = actor.drain();
            patience
        }
        Shutdown::Brutal => Duration::ZERO,
    };
    if !patience.is_zero() && actor.wait(Some(patience)).await.is_ok() {
        return Ok(());
    }
    actor.kill();
    actor
        .wait(Some(grace))
        .await
        .map_err(|_late| Cause::Undead(Arc::clone(path)))
}
