//! The ordered end of a supervisor: children go in reverse start order, each with its deadline.

use std::time::Duration;

use tokio::time::Instant;

use crate::cause::Cause;
use crate::status::Activity;
use crate::supervisor::child::Phase;
use crate::supervisor::tasks::stop;
use crate::supervisor::work::Work;

impl Work {
    /// Ends everything, in order. Runs when the supervisor was stopped, or gives up itself.
    pub(super) async fn wind_down(&mut self) -> Result<(), Cause> {
        // No start, no pending restart survives this.
        self.tasks.end().await;
        let mut undead = None;
        for index in (0..self.children.len()).rev() {
            if let Err(cause) = self.end_child(index).await {
                tracing::error!(%cause, "left behind");
                undead.get_or_insert(cause);
            }
        }
        self.publish(Activity::Stopped);
        let result = undead.or_else(|| self.giving_up.take()).map_or(Ok(()), Err);
        if let Some(ready) = self.ready.take() {
            // A parent that no longer waits learns of it by the supervision event.
            let _ = ready.send(Err(result.clone().err().unwrap_or(Cause::Killed)));
        }
        if let Some(end) = &self.end {
            end.send_replace(Some(result.clone()));
        }
        result
    }

    async fn end_child(&mut self, index: usize) -> Result<(), Cause> {
        let board = self.surroundings.board.clone();
        let grace = self.surroundings.grace;
        let now = board.now();
        let child = &mut self.children[index];
        // A start that was cut off is known to the board only.
        let actor = child.status.occupant().or(match &child.phase {
            Phase::Up { actor, .. } => Some(actor.clone()),
            Phase::Down { .. } | Phase::Starting | Phase::Ending { .. } | Phase::Done => None,
        });
        child.phase = Phase::Done;
        let path = child.spec.path.clone();
        if let Some(actor) = actor {
            stop(&actor, child.spec.shutdown, &path, grace).await?;
        }
        child.publish(Activity::Stopped, now);
        // Killed with their supervisor. Their last states may wait in this one's own mailbox, so
        // this cannot wait until those are dropped.
        let deadline = Instant::now() + grace;
        for (path, cell) in board.kill_under(&path) {
            if let Some(actor) = cell.occupant() {
                let left = deadline.saturating_duration_since(Instant::now());
                let dead = actor.wait(Some(left.max(Duration::from_millis(1)))).await;
                dead.map_err(|_late| Cause::Undead(path))?;
            }
        }
        Ok(())
    }
}
