//! Something that answers are made from, and whether it is worth asking now.

use std::time::Duration;

use parking_lot::Mutex;

use crate::breaker::{Breaker, BreakerState};
use crate::chance::Chance;
use crate::status::StatusBoard;

/// A silence that people want to know the end of.
const WORTH_A_WORD: Duration = Duration::from_secs(5);

/// The breaker towards one dependency.
pub(super) struct Dependency {
    name: &'static str,
    breaker: Mutex<Breaker>,
    chance: Chance,
}

impl Dependency {
    pub(super) fn new(name: &'static str, chance: Chance) -> Self {
        Self {
            name,
            breaker: Mutex::default(),
            chance,
        }
    }

    /// Makes a call, unless the breaker is open; nothing when it was not made. `is_well` says of
    /// an answer whether the other side is alive.
    pub(super) async fn call<T>(
        &self,
        board: &StatusBoard,
        call: impl Future<Output = T>,
        is_well: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        if !self.breaker.lock().allow(board.now()) {
            return None;
        }
        let mut probe = Probe(Some((self, board)));
        let answer = call.await;
        probe.0 = None;
        let (now, is_well) = (board.now(), is_well(&answer));
        let mut breaker = self.breaker.lock();
        if !is_well {
            if breaker.transport_failure(now, self.chance.unit()) {
                tracing::warn!(
                    dependency = self.name,
                    "secrets: unreachable, breaker opens; pods are told to try again"
                );
            }
        } else if let Some(silence) = breaker.success(now)
            && silence > WORTH_A_WORD
        {
            tracing::info!(dependency = self.name, ?silence, "secrets: reachable again");
        }
        Some(answer)
    }

    /// The breaker's state as a gauge says it: 0 closed, 1 probing, 2 open.
    pub(super) fn gauge(&self) -> i64 {
        match self.breaker.lock().state() {
            BreakerState::Closed => 0,
            BreakerState::Probing => 1,
            BreakerState::Open { .. } => 2,
        }
    }
}

/// A call that is cut off leaves no probe behind for ever.
struct Probe<'a>(Option<(&'a Dependency, &'a StatusBoard)>);

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if let Some((dependency, board)) = self.0 {
            dependency.breaker.lock().abandon_probe(board.now());
        }
    }
}
