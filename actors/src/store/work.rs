//! What the reconciler takes out of the backlog, begins, ends and lets wait.

use std::time::Duration;

use krane_domain::backlog::{Outcome, Task};
use krane_domain::ids::{Moment, WorkKey};

use super::Store;

/// Tasks.
impl Store {
    /// Begins the next task, unless `max_lanes` are at work, krane is stopping or it cannot see the
    /// cluster at all.
    pub(crate) fn begin_next_task(&self, max_lanes: usize, now: Moment) -> Option<Task> {
        self.with(|memory| {
            memory.backlog.wake_due(now);
            // Of what krane cannot see at all nothing is decided (D38b).
            (!self.is_halted() && !memory.view.is_blind())
                .then(|| memory.backlog.next_for(max_lanes, now))
                .flatten()
        })
    }

    /// A task ended: wakes what waited for it and answers the calls of the scheduler. Returns how
    /// long its state took to be applied, if it was news. `jitter` in 0..1 spreads its retry.
    pub(crate) fn end_task(
        &self,
        key: &WorkKey,
        outcome: Outcome,
        now: Moment,
        jitter: f64,
    ) -> Option<Duration> {
        self.with(|memory| {
            if let WorkKey::Workload(key) = key {
                memory.rolls.lane_ended(key, &outcome);
            }
            let backlog = &mut memory.backlog;
            let applied_after = match outcome {
                Outcome::Done { .. } => {
                    let applied_after = backlog.finish(key, outcome, now, jitter);
                    if let WorkKey::Shared(shared) = key {
                        backlog.unblock(shared, now);
                    }
                    applied_after
                }
                Outcome::Blocked(ref on) => {
                    let on = on.clone();
                    backlog.finish(key, outcome, now, jitter);
                    for shared in on {
                        backlog.look(&WorkKey::Shared(shared), now);
                    }
                    None
                }
                Outcome::Deferred { .. } | Outcome::Trouble(_) => {
                    backlog.finish(key, outcome, now, jitter)
                }
            };
            match key {
                WorkKey::Workload(key) => memory.tell_caller(key),
                WorkKey::Shared(_) => memory.tell_callers(),
            }
            applied_after
        })
    }

    /// The lanes of all tasks that were begun are lost: each of these keys is checked again.
    pub(crate) fn abandon_tasks(&self, now: Moment) {
        self.with(|memory| memory.backlog.abandon_lanes(now));
    }

    /// When the first waiting time of a key is over.
    pub(crate) fn next_timer(&self) -> Option<Moment> {
        self.with(|memory| memory.backlog.next_timer())
    }
}

/// What is due from time to time.
impl Store {
    /// Whether workloads wait for their turn to roll (D44).
    pub(crate) fn has_workloads_to_roll(&self) -> bool {
        self.with(|memory| memory.rolls.waiting() > 0)
    }

    /// Gives the next workload its turn to roll, once the pods of the one before are available
    /// (D44).
    pub(crate) fn let_one_roll(&self, now: Moment) {
        self.with(|memory| memory.let_one_roll(now));
    }

    /// Every workload with outdated pods is checked again (D16).
    pub(crate) fn check_outdated(&self, now: Moment) {
        self.with(|memory| {
            for key in memory.outdated.keys() {
                memory.backlog.look(&WorkKey::Workload(key.clone()), now);
            }
        });
    }

    /// The password of the registry has changed: every pull secret is checked again (D42).
    pub(crate) fn renew_pull_secrets(&self, now: Moment) {
        self.with(|memory| memory.renew_pull_secrets(now));
    }

    /// Forgets the calls whose caller left or timed out: what they want is no longer applied first.
    pub(crate) fn forget_lost_callers(&self) {
        self.with(super::Memory::forget_lost_callers);
    }

    /// Forgets objects that were gone before `gone_before`, and what no object needs any more.
    pub(crate) fn forget_gone(&self, gone_before: Moment, now: Moment) {
        self.with(|memory| {
            memory.backlog.forget_gone(gone_before);
            memory.outbox.forget_gone(now);
            memory.forget_unneeded();
        });
    }
}
