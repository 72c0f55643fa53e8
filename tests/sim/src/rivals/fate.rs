//! What one process can and cannot do at present.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::plan::{Blow, Reach};

/// Shared by everything that one process has in its hands.
#[derive(Clone)]
pub(super) struct Fate {
    pub(super) identity: Arc<str>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    is_dead: bool,
    /// Until when each of these lasts.
    troubles: Vec<(Blow, Instant)>,
}

impl State {
    fn has(&self, is_it: impl Fn(Blow) -> bool) -> bool {
        let now = Instant::now();
        let mut troubles = self.troubles.iter();
        troubles.any(|(blow, until)| *until > now && is_it(*blow))
    }
}

impl Fate {
    pub(super) fn new(identity: Arc<str>) -> Self {
        Self {
            identity,
            shared: Arc::default(),
        }
    }

    pub(super) fn strike(&self, blow: Blow) {
        let time = match blow {
            Blow::Kill => {
                self.shared.state.lock().is_dead = true;
                return;
            }
            Blow::Stop => return,
            Blow::Pause(time)
            | Blow::Cut(_, time)
            | Blow::LoseAnswers(_, time)
            | Blow::Late(time)
            | Blow::Slow(time) => time,
        };
        let mut state = self.shared.state.lock();
        state.troubles.push((blow, Instant::now() + time));
    }

    /// From now on it goes well.
    pub(super) fn spare(&self) {
        self.shared.state.lock().troubles.clear();
        self.shared.changed.notify_waiters();
    }

    /// Goes on while the process runs: not while it is paused, and never when it is dead.
    pub(super) async fn runs(&self) {
        loop {
            let changed = self.shared.changed.notified();
            let until = {
                let state = self.shared.state.lock();
                if state.is_dead {
                    None
                } else {
                    let now = Instant::now();
                    let paused = state.troubles.iter().filter_map(|(blow, until)| {
                        matches!(blow, Blow::Pause(_)).then_some(*until)
                    });
                    match paused.max().filter(|until| *until > now) {
                        Some(until) => Some(until),
                        None => return,
                    }
                }
            };
            match until {
                None => std::future::pending().await,
                Some(until) => {
                    let _ = tokio::time::timeout_at(until, changed).await;
                }
            }
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.shared.state.lock().is_dead
    }

    pub(super) fn is_cut(&self, what: Reach) -> bool {
        let state = self.shared.state.lock();
        state.has(|blow| matches!(blow, Blow::Cut(reach, _) if covers(reach, what)))
    }

    pub(super) fn loses_answers(&self, of: Reach) -> bool {
        let state = self.shared.state.lock();
        state.has(|blow| matches!(blow, Blow::LoseAnswers(reach, _) if covers(reach, of)))
    }

    pub(super) fn is_late(&self) -> bool {
        let state = self.shared.state.lock();
        state.has(|blow| matches!(blow, Blow::Late(_)))
    }

    /// How long a request takes on its way there.
    pub(super) fn latency(&self, what: Reach, chance: &Mutex<fastrand::Rng>) -> Duration {
        let is_slow = what == Reach::Lease
            && self
                .shared
                .state
                .lock()
                .has(|blow| matches!(blow, Blow::Slow(_)));
        let range = if is_slow { 1_000..4_500 } else { 2..40 };
        Duration::from_millis(chance.lock().u64(range))
    }
}

/// The Lease is in the cluster.
fn covers(reach: Reach, what: Reach) -> bool {
    reach == what || (reach == Reach::Cluster && what == Reach::Lease)
}
