//! One child as its supervisor sees it.

use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorCell, ActorId};

use crate::Moment;
use crate::cause::Cause;
use crate::news::{Fate, News};
use crate::restart::{Backoff, Budget, Streak};
use crate::status::{Activity, Failure, StatusCell};
use crate::supervisor::{ChildSpec, Restart};

/// What a child is doing.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing of it is wanted to run before this moment.
    Down { due: Moment },
    /// A task is starting it.
    Starting,
    /// It runs.
    Up { actor: ActorCell, since: Moment },
    /// A task is stopping it in order, because an earlier sibling failed.
    Ending { id: ActorId },
    /// It ended and is not started again.
    Done,
}

/// How a child ended.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    InOrder,
    Failed(Cause),
}

#[derive(Debug)]
pub(super) struct Child {
    pub(super) spec: ChildSpec,
    pub(super) phase: Phase,
    pub(super) streak: Streak,
    parkings: Streak,
    returned_at: Moment,
    /// Used when budgets are per child.
    pub(super) budget: Budget,
    /// Whether the next start comes after being parked.
    is_parked: bool,
    pub(super) status: Arc<StatusCell>,
    is_restart: bool,
    /// Whether the start under way is one after the first.
    pub(super) is_return: bool,
}

impl Child {
    pub(super) fn new(
        spec: ChildSpec,
        budget: Budget,
        status: Arc<StatusCell>,
        now: Moment,
    ) -> Self {
        Self {
            spec,
            phase: Phase::Down { due: now },
            streak: Streak::default(),
            parkings: Streak::default(),
            returned_at: now,
            budget,
            is_parked: false,
            status,
            is_restart: true,
            is_return: false,
        }
    }

    /// What became of it.
    pub(super) fn news(&self, at: Moment, fate: Fate) -> News {
        News {
            at,
            group: self.status.facts().and_then(|facts| facts.group),
            path: Arc::clone(&self.spec.path),
            fate,
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        match self.phase {
            Phase::Up { .. } | Phase::Done => true,
            Phase::Down { .. } | Phase::Starting | Phase::Ending { .. } => false,
        }
    }

    /// How long it has been running.
    pub(super) fn up_for(&self, now: Moment) -> Duration {
        match self.phase {
            Phase::Up { since, .. } => now.saturating_sub(since),
            Phase::Down { .. } | Phase::Starting | Phase::Ending { .. } | Phase::Done => {
                Duration::ZERO
            }
        }
    }

    /// Whether it is started again after this end, and the cause that its restart is put down to.
    pub(super) fn cause_of_restart(&self, ending: Ending) -> Option<Cause> {
        match (self.spec.restart, ending) {
            (Restart::Permanent, Ending::InOrder) => Some(Cause::Ended),
            (Restart::Permanent | Restart::Transient, Ending::Failed(cause)) => Some(cause),
            (Restart::Transient, Ending::InOrder) | (Restart::Temporary, _) => None,
        }
    }

    /// Notes its start; whether it has to be reset for it.
    pub(super) fn begin_start(&mut self, now: Moment) -> bool {
        self.phase = Phase::Starting;
        self.publish(Activity::Starting, now);
        // One whose supervisor was gone at its end was never asked for.
        self.status.take_sentence();
        // The cell outlives this supervisor, so restarts of the whole branch count as well.
        self.is_return = self.status.note_start() && self.is_restart;
        if self.is_return {
            self.status.update(|status| status.restarts += 1);
        }
        self.is_restart = true;
        std::mem::take(&mut self.is_parked)
    }

    /// Puts it aside; says for how long. Pauses start over when it was there long enough since.
    pub(super) fn park(&mut self, backoff: &Backoff, now: Moment, chance: f64) -> Duration {
        self.is_parked = true;
        self.streak = Streak::default();
        let pause = self
            .parkings
            .failed(backoff, now.saturating_sub(self.returned_at), chance);
        self.returned_at = now + pause;
        pause
    }

    pub(super) fn rest_until(&mut self, due: Moment, now: Moment) {
        self.phase = Phase::Down { due };
        let activity = if self.is_parked {
            Activity::Parked { until: due }
        } else {
            Activity::Restarting { until: due }
        };
        self.publish(activity, now);
    }

    /// Publishes why it went down; whether that is news.
    pub(super) fn publish_failure(&mut self, cause: &Cause, now: Moment) -> bool {
        // Waiting for the outside world is no restart.
        self.is_restart = !matches!(cause, Cause::Unprepared(_));
        let failure = Failure {
            at: now,
            kind: cause.kind(),
            text: cause.to_string().into(),
        };
        let mut is_repeated = false;
        self.status.update(|status| {
            let last = status.last_failure.replace(failure.clone());
            is_repeated = last.is_some_and(|last| last.text == failure.text);
        });
        self.is_restart || !is_repeated
    }

    pub(super) fn publish(&self, activity: Activity, now: Moment) {
        self.status.update(|status| {
            status.activity = activity;
            status.since = now;
        });
    }
}
