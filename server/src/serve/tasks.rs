//! The tasks of one connection: they end when it does.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answers::{Progress, in_time};

tokio::task_local! {
    /// The progress of the stream whose task this is, once its request has begun.
    static STREAM: Arc<OnceLock<Arc<Progress>>>;
}

/// The requests of a connection; those that are left when it is dropped are aborted.
#[derive(Default)]
pub(super) struct OwnedTasks {
    tasks: Arc<Mutex<JoinSet<()>>>,
    state: ConnectionState,
}

/// Runs tasks for as long as their owner is there. What runs may have it: it keeps no task alive.
#[derive(Clone)]
pub(super) struct Tasks {
    tasks: Weak<Mutex<JoinSet<()>>>,
    state: ConnectionState,
}

#[derive(Clone)]
struct ConnectionState {
    running: watch::Sender<usize>,
    /// What a peer did not take in time cannot be taken back from h2, or there is only one stream.
    cut: CancellationToken,
}

/// One that runs, until this is dropped.
struct Running(watch::Sender<usize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0
            .send_modify(|running| *running = running.saturating_sub(1));
    }
}

impl Default for ConnectionState {
    fn default() -> Self {
        Self {
            running: watch::Sender::new(0),
            cut: CancellationToken::new(),
        }
    }
}

impl OwnedTasks {
    /// Lets others run tasks.
    pub(super) fn runner(&self) -> Tasks {
        Tasks {
            tasks: Arc::downgrade(&self.tasks),
            state: self.state.clone(),
        }
    }

    /// Ends when there was nothing to run for this long.
    pub(super) async fn idle_for(&self, time: Duration) {
        let mut running = self.state.running.subscribe();
        loop {
            // The sender is in `self`.
            let _ = running.wait_for(|running| *running == 0).await;
            if timeout(time, running.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Ends when the connection is of no more use: its peer did not take an answer in time.
    pub(super) async fn is_stuck(&self) {
        self.state.cut.cancelled().await;
    }
}

impl Tasks {
    /// Watches over a request: in the task of its stream, or beside a connection without streams.
    pub(super) fn watch(&self, progress: Arc<Progress>) {
        let of_a_stream = STREAM.try_with(|stream| stream.set(Arc::clone(&progress)).is_ok());
        if of_a_stream.is_err() {
            let cut = self.state.cut.clone();
            self.spawn(async move {
                if !progress.is_taken().await {
                    cut.cancel();
                }
            });
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(tasks) = self.tasks.upgrade() else {
            return;
        };
        self.state.running.send_modify(|running| *running += 1);
        let running = Running(self.state.running.clone());
        let mut tasks = tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            task.await;
            drop(running);
        });
    }
}

impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        let (stream, cut) = (Arc::<OnceLock<_>>::default(), self.state.cut.clone());
        let own = Arc::clone(&stream);
        let task = async move {
            let future = async {
                future.await;
            };
            in_time(future, || stream.get().cloned()).await;
            // hyper is done with it; h2 may still have what it was handed.
            if let Some(progress) = stream.get()
                && !progress.is_let_go().await
            {
                cut.cancel();
            }
        };
        self.spawn(STREAM.scope(own, task));
    }
}
