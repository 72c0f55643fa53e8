//! The tasks of one HTTP/2 connection: they end when it does.

use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Runs the requests of a connection and aborts those that are left when it is dropped.
#[derive(Clone)]
pub(super) struct OwnedTasks {
    tasks: Arc<Mutex<JoinSet<()>>>,
    running: watch::Sender<usize>,
}

/// One that runs, until this is dropped.
struct Running(watch::Sender<usize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0
            .send_modify(|running| *running = running.saturating_sub(1));
    }
}

impl Default for OwnedTasks {
    fn default() -> Self {
        Self {
            tasks: Arc::default(),
            running: watch::Sender::new(0),
        }
    }
}

impl OwnedTasks {
    /// Ends when there was nothing to run for this long.
    pub(super) async fn idle_for(&self, time: Duration) {
        let mut running = self.running.subscribe();
        loop {
            // The sender is in `self`.
            let _ = running.wait_for(|running| *running == 0).await;
            if timeout(time, running.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl<F> Executor<F> for OwnedTasks
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        self.running.send_modify(|running| *running += 1);
        let running = Running(self.running.clone());
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            future.await;
            drop(running);
        });
    }
}
