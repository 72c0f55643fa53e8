//! Kills actors whose handler runs too long, and tells whether the tree's own loop still turns.
//!
//! Owns: what it has killed and waits to see die. Reads the published statuses; never pings an
//! actor. It runs on the root's loop, so that a root that is stuck shows as not live.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ractor::ActorCell;

use crate::Moment;
use crate::cause::Cause;
use crate::status::{Activity, Board, StatusCell};

#[cfg(test)]
mod tests;

/// How often the root lets the watchdog look.
pub const ROUND: Duration = Duration::from_secs(1);

/// Without a round for this long the root is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(15);

/// Watches over one tree.
#[derive(Debug)]
pub struct Watchdog {
    board: Board,
    grace: Duration,
    last_round: AtomicU64,
    condemned: Mutex<BTreeMap<Arc<str>, (ActorCell, Moment)>>,
}

impl Watchdog {
    /// A watchdog that gives a killed actor `grace` to die.
    pub fn new(board: Board, grace: Duration) -> Self {
        let now = millis(board.now());
        Self {
            board,
            grace,
            last_round: AtomicU64::new(now),
            condemned: Mutex::default(),
        }
    }

    /// Whether the root's loop turns. Never a question about the world outside: no actor that is
    /// down, no control plane that is away makes this false.
    pub fn live(&self) -> bool {
        let last = Duration::from_millis(self.last_round.load(Ordering::Relaxed));
        self.board.now().saturating_sub(last) < STUCK_AFTER
    }

    /// Looks once at every actor. Fails when one it killed does not die: a thread is lost to it.
    pub(crate) fn round(&self) -> Result<(), Cause> {
        let now = self.board.now();
        self.last_round.store(millis(now), Ordering::Relaxed);
        let mut condemned = self.condemned.lock();
        // Almost always there is nothing to do: only those with something are taken out of the board.
        let suspects: Vec<_> = self.board.look(|all| {
            all.filter(|(path, cell)| condemned.contains_key(*path) || overdue(cell, now).is_some())
                .map(|(path, cell)| (Arc::clone(path), Arc::clone(cell)))
                .collect()
        });
        for (path, cell) in suspects {
            let Some(actor) = cell.occupant() else {
                condemned.remove(&path);
                continue;
            };
            match condemned.get(&path) {
                Some((killed, at)) if *killed == actor => {
                    if now.saturating_sub(*at) >= self.grace {
                        return Err(Cause::Undead(path));
                    }
                }
                Some(_) | None => {
                    condemned.remove(&path);
                    if let Some(reason) = overdue(&cell, now) {
                        tracing::error!(actor = %path, %reason, "killed by the watchdog");
                        cell.update(|status| status.hangs += 1);
                        cell.condemn(&actor, reason);
                        condemned.insert(path, (actor, now));
                    }
                }
            }
        }
        Ok(())
    }
}

fn overdue(cell: &StatusCell, now: Moment) -> Option<Arc<str>> {
    let limit = cell.facts()?.handler_limit?;
    cell.look(|status| match &status.activity {
        Activity::Handling { message, since } if now.saturating_sub(*since) > limit => {
            Some(format!("{message} ran longer than {limit:?}").into())
        }
        Activity::Handling { .. }
        | Activity::Starting
        | Activity::Preparing
        | Activity::Idle
        | Activity::Restarting { .. }
        | Activity::Parked { .. }
        | Activity::Stopped => None,
    })
}

fn millis(moment: Moment) -> u64 {
    u64::try_from(moment.as_millis()).unwrap_or(u64::MAX)
}
