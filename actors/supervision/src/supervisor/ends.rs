//! What a start or an end of a child means: charges failures, and sets when it comes back.

use std::sync::Arc;

use ractor::{ActorCell, ActorId};

use crate::cause::Cause;
use crate::news::Fate;
use crate::restart::Charge;
use crate::status::Activity;
use crate::supervisor::OnExhausted;
use crate::supervisor::child::{Ending, Phase};
use crate::supervisor::tasks::Report;
use crate::supervisor::work::Work;

impl Work {
    pub(super) fn started(&mut self, index: usize, outcome: Result<ActorCell, Cause>) {
        let now = self.now();
        let Some(child) = self.children.get_mut(index) else {
            return;
        };
        match outcome {
            Ok(actor) => {
                let id = actor.get_id();
                child.phase = Phase::Up { actor, since: now };
                if std::mem::take(&mut child.is_return) {
                    let news = child.news(now, Fate::Restarted);
                    self.surroundings.board.tell(news);
                }
                if let Some(ending) = self.early_ends.remove(&id) {
                    self.child_ended(index, ending);
                }
            }
            Err(cause) => self.child_ended(index, Ending::Failed(cause)),
        }
        if !self
            .children
            .iter()
            .any(|child| matches!(child.phase, Phase::Starting))
        {
            self.early_ends.clear();
        }
    }

    pub(super) fn stopped(&mut self, index: usize, outcome: Result<(), Cause>) {
        let now = self.now();
        match (outcome, self.children.get_mut(index)) {
            (Ok(()), Some(child)) => child.rest_until(now, now),
            (Err(cause), _) => self.give_up(cause),
            (Ok(()), None) => {}
        }
    }

    pub(super) fn ended(&mut self, id: ActorId, ending: Ending) {
        for (index, child) in self.children.iter().enumerate() {
            match &child.phase {
                Phase::Up { actor, .. } if actor.get_id() == id => {
                    return self.child_ended(index, ending);
                }
                // Asked for; the task that stops it reports when it is over.
                Phase::Ending { id: ending } if *ending == id => return,
                Phase::Up { .. }
                | Phase::Ending { .. }
                | Phase::Down { .. }
                | Phase::Starting
                | Phase::Done => {}
            }
        }
        if self
            .children
            .iter()
            .any(|child| matches!(child.phase, Phase::Starting))
        {
            self.early_ends.insert(id, ending);
        }
    }

    /// A child ended on its own, or its start failed: charges the failure, sets what is next.
    fn child_ended(&mut self, index: usize, ending: Ending) {
        let now = self.now();
        let chance = self.chance.f64();
        let Some(child) = self.children.get_mut(index) else {
            return;
        };
        let up_for = child.up_for(now);
        let Some(cause) = child.cause_of_restart(ending) else {
            child.phase = Phase::Done;
            child.publish(Activity::Stopped, now);
            return;
        };
        let cause = match (child.status.take_sentence(), cause) {
            (Some(sentence), Cause::Killed) => Cause::Hung(sentence),
            (_, cause) => cause,
        };
        let is_news = child.publish_failure(&cause, now);
        if let Cause::Undead(_) = cause {
            return self.give_up(cause);
        }
        let is_spent = match (&cause, self.spec.on_exhausted) {
            (Cause::Unprepared(_), _) => false,
            (Cause::Exhausted { .. }, OnExhausted::Park(_)) => true,
            (_, OnExhausted::Park(_)) => child.budget.charge(now) == Charge::Spent,
            (_, OnExhausted::Escalate) => self.budget.charge(now) == Charge::Spent,
        };
        let (pause, is_parked) = match (is_spent, self.spec.on_exhausted) {
            (false, _) => {
                let pause = child.streak.failed(&child.spec.backoff, up_for, chance);
                let (actor, kind) = (&*child.spec.path, cause.kind());
                // What it needs may be away for hours, and is tried every few seconds.
                if is_news || !matches!(cause, Cause::Unprepared(_)) {
                    tracing::warn!(actor, %cause, kind, ?pause, "restarting");
                } else {
                    tracing::debug!(actor, %cause, kind, ?pause, "restarting");
                }
                (pause, false)
            }
            (true, OnExhausted::Park(backoff)) => {
                let pause = child.park(&backoff, now, chance);
                tracing::error!(actor = %child.spec.path, %cause, kind = cause.kind(), ?pause, "parked");
                (pause, true)
            }
            (true, OnExhausted::Escalate) => {
                let path = Arc::clone(&child.spec.path);
                child.phase = Phase::Down { due: now };
                return self.give_up(Cause::Exhausted {
                    path,
                    last: cause.to_string().into(),
                });
            }
        };
        if is_news {
            let failed = Fate::Failed {
                kind: cause.kind(),
                text: cause.to_string().into(),
                pause,
                is_parked,
            };
            self.surroundings.board.tell(child.news(now, failed));
        }
        child.rest_until(now + pause, now);
        self.tasks.wake(pause, Report::Due);
    }
}
