//! Who lives at a path: the running actor itself, for the watchdog and for supervisors that have
//! to be sure that nothing of an earlier incarnation is left.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ractor::{ActorCell, ActorId};
use tokio::sync::Notify;

use crate::cause::Cause;
use crate::status::{Activity, Board, StatusCell};

/// The present occupant of a path.
#[derive(Debug, Default)]
pub(super) struct Tenancy {
    occupant: Mutex<Option<ActorCell>>,
    vacated: Notify,
    /// Why the watchdog killed the occupant.
    sentence: Mutex<Option<Arc<str>>>,
}

/// Held by a running actor's state as its last field: it is over when the state is dropped,
/// whichever way the actor ended, so that whoever waits for it waits for the state too.
#[derive(Debug)]
pub(crate) struct Occupancy {
    board: Board,
    cell: Arc<StatusCell>,
    id: ActorId,
}

impl Occupancy {
    pub(crate) fn begin(board: &Board, cell: &Arc<StatusCell>, actor: ActorCell) -> Self {
        let id = actor.get_id();
        *cell.tenancy.occupant.lock() = Some(actor);
        Self {
            board: board.clone(),
            cell: Arc::clone(cell),
            id,
        }
    }
}

impl Drop for Occupancy {
    fn drop(&mut self) {
        {
            let mut occupant = self.cell.tenancy.occupant.lock();
            if occupant
                .as_ref()
                .is_none_or(|occupant| occupant.get_id() != self.id)
            {
                return;
            }
            *occupant = None;
        }
        let now = self.board.now();
        self.cell.update(|status| match status.activity {
            Activity::Preparing | Activity::Idle | Activity::Handling { .. } => {
                status.activity = Activity::Stopped;
                status.since = now;
            }
            // Its supervisor was faster and knows better.
            Activity::Starting
            | Activity::Restarting { .. }
            | Activity::Parked { .. }
            | Activity::Stopped => {}
        });
        self.cell.tenancy.vacated.notify_waiters();
    }
}

impl StatusCell {
    /// The actor that runs here now.
    pub fn occupant(&self) -> Option<ActorCell> {
        self.tenancy.occupant.lock().clone()
    }

    /// Kills the actor that runs here, if it is still this one, for a reason its supervisor
    /// publishes.
    pub(crate) fn condemn(&self, actor: &ActorCell, reason: Arc<str>) {
        let occupant = self.tenancy.occupant.lock();
        if occupant.as_ref() == Some(actor) {
            *self.tenancy.sentence.lock() = Some(reason);
            actor.kill();
        }
    }

    /// The watchdog's reason for the end of the last occupant.
    pub(crate) fn take_sentence(&self) -> Option<Arc<str>> {
        self.tenancy.sentence.lock().take()
    }

    async fn vacant(&self) {
        loop {
            let vacated = self.tenancy.vacated.notified();
            if self.tenancy.occupant.lock().is_none() {
                return;
            }
            vacated.await;
        }
    }
}

impl Board {
    /// Kills the actor at `path`, as its supervisor would. Whether one lives there.
    #[cfg(any(test, debug_assertions, feature = "kill"))]
    pub fn kill(&self, path: &str) -> bool {
        let occupant = self.find(path).and_then(|cell| cell.occupant());
        if let Some(actor) = &occupant {
            actor.kill();
        }
        occupant.is_some()
    }

    /// Kills whatever runs at `path` and below.
    ///
    /// Returns when all of it is gone with its state, or says what does not die within `grace`.
    pub(crate) async fn evict(&self, path: &str, grace: Duration) -> Result<(), Cause> {
        let cells = self.kill_under(path);
        let deadline = tokio::time::Instant::now() + grace;
        for (path, cell) in cells {
            if tokio::time::timeout_at(deadline, cell.vacant())
                .await
                .is_err()
            {
                return Err(Cause::Undead(path));
            }
        }
        Ok(())
    }

    /// Kills whatever runs at `path` and below, and returns the cells where something did.
    pub(crate) fn kill_under(&self, path: &str) -> Vec<(Arc<str>, Arc<StatusCell>)> {
        let mut living = self.all();
        living.retain(|(at, cell)| is_under(at, path) && cell.occupant().is_some());
        for (_, cell) in &living {
            if let Some(actor) = cell.occupant() {
                actor.kill();
            }
        }
        living
    }
}

fn is_under(path: &str, root: &str) -> bool {
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::is_under;

    #[test]
    fn a_path_is_under_itself_and_its_parents_only() {
        assert!(is_under("root/a/b", "root/a/b"));
        assert!(is_under("root/a/b", "root/a"));
        assert!(!is_under("root/ab", "root/a"));
        assert!(!is_under("root", "root/a"));
    }
}
