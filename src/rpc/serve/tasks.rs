//! The tasks of one HTTP/2 connection: they end when it does.

use std::sync::Arc;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::task::JoinSet;

/// Runs the requests of a connection and aborts those that are left when it is dropped.
#[derive(Clone, Default)]
pub(super) struct OwnedTasks {
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl<F> Executor<F> for OwnedTasks
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async {
            future.await;
        });
    }
}
