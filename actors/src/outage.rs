//! Whether the Kubernetes API answers, as the watches of all controllers together show it.
//!
//! An outage is told once, however many controllers and kinds it meets: when it has lasted a
//! while, and when it is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::{Controller, Moment};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::events::Happening;
use crate::store::Silence;

/// A watch that breaks and is back sooner is nothing to talk about.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of the API server's answers. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApiServer {
    known: Arc<Mutex<Known>>,
    restored: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Known {
    silent: BTreeMap<Controller, Silence>,
    away_since: Option<Moment>,
    /// When the last outage was over.
    back_at: Option<Moment>,
    /// How often the cluster was restored from a backup.
    restores: u64,
}

impl ApiServer {
    /// When the last outage was over, if there was one.
    pub(crate) fn back_at(&self) -> Option<Moment> {
        self.known.lock().back_at
    }

    /// How often the cluster was restored from a backup since the start (D43).
    pub(crate) fn restores(&self) -> u64 {
        self.known.lock().restores
    }

    /// Lists show that the cluster was restored. Returns whether that is news to all who knew of
    /// `known` restores when they asked.
    pub(crate) fn note_restored(&self, known: u64) -> bool {
        let mut state = self.known.lock();
        if state.restores != known {
            return false;
        }
        state.restores += 1;
        drop(state);
        self.restored.notify_waiters();
        true
    }

    /// Waits for a restore after the first `known` ones.
    pub(crate) async fn restored_since(&self, known: u64) {
        loop {
            // Before the look: nothing that comes after it is missed.
            let news = self.restored.notified();
            if self.restores() != known {
                return;
            }
            news.await;
        }
    }

    /// Notes how this controller finds the API server. Returns what there is to tell.
    pub(crate) fn note(
        &self,
        controller: Controller,
        silence: Option<Silence>,
        now: Moment,
    ) -> Option<Happening> {
        let mut known = self.known.lock();
        // Who is answered proves that the others only have not noticed yet.
        let is_long = silence
            .as_ref()
            .is_some_and(|silence| now.saturating_sub(silence.last) >= PATIENCE);
        match silence {
            Some(silence) => known.silent.insert(controller, silence),
            None => known.silent.remove(&controller),
        };
        let Some(since) = known.away_since else {
            if !is_long {
                return None;
            }
            let first = known.silent.values().min_by_key(|it| it.first)?;
            let (since, error) = (first.first, first.error.clone());
            known.away_since = Some(since);
            let silent = now.saturating_sub(since);
            return Some(Happening::ApiServerLost { error, silent });
        };
        if !known.silent.is_empty() {
            return None;
        }
        known.away_since = None;
        known.back_at = Some(now);
        let took = now.saturating_sub(since);
        Some(Happening::ApiServerRecovered { took })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Duration::from_secs(seconds)
    }

    fn silent(first: u64, last: u64) -> Silence {
        Silence {
            first: at(first),
            last: at(last),
            error: "no answer".to_owned(),
        }
    }

    #[test]
    fn an_outage_that_all_controllers_notice_is_told_once_with_its_length() {
        let server = ApiServer::default();
        let [first, second, third] = Controller::ALL;
        assert_eq!(server.note(first, Some(silent(10, 11)), at(11)), None);
        assert_eq!(server.note(second, Some(silent(9, 11)), at(12)), None);
        let lost = Happening::ApiServerLost {
            error: "no answer".to_owned(),
            silent: at(7),
        };
        assert_eq!(server.note(first, Some(silent(10, 11)), at(16)), Some(lost));
        assert_eq!(server.note(second, Some(silent(9, 11)), at(17)), None);
        assert_eq!(server.note(third, Some(silent(12, 12)), at(18)), None);
        assert_eq!(server.note(second, None, at(40)), None);
        assert_eq!(server.note(third, None, at(41)), None);
        let over = Happening::ApiServerRecovered { took: at(33) };
        assert_eq!(server.note(first, None, at(42)), Some(over));
        assert_eq!(server.note(first, None, at(43)), None);
        assert_eq!(server.back_at(), Some(at(42)));
    }

    #[test]
    fn nothing_is_lost_because_somebody_is_answered_again() {
        let server = ApiServer::default();
        let [first, second, _] = Controller::ALL;
        assert_eq!(server.note(first, Some(silent(0, 0)), at(0)), None);
        assert_eq!(server.note(second, Some(silent(0, 0)), at(0)), None);
        assert_eq!(server.note(first, None, at(6)), None);
        assert_eq!(server.note(second, None, at(7)), None);
    }

    #[test]
    fn a_short_interruption_is_not_told() {
        let server = ApiServer::default();
        let [first, second, _] = Controller::ALL;
        assert_eq!(server.note(first, Some(silent(1, 1)), at(1)), None);
        assert_eq!(server.note(second, Some(silent(1, 2)), at(2)), None);
        assert_eq!(server.note(first, None, at(4)), None);
        assert_eq!(server.note(second, None, at(5)), None);
        assert_eq!(server.note(first, Some(silent(6, 6)), at(6)), None);
    }
}
