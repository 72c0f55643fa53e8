//! What a resync asks the control plane, and what comes of its answers.

use std::collections::BTreeSet;

use krane_domain::backlog::AnswerReceipt;
use krane_domain::brake::Verdict;
use krane_domain::desired::Change;
use krane_domain::ids::{Moment, ObjectKey, WorkKey};
use krane_domain::invalid::Invalid;
use krane_ports::Question;

use super::receive::member_of;
use super::{ResyncSummary, Store};

/// What an answer of the control plane changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnswerEffect {
    /// Whether something else is desired now.
    pub(crate) is_adopted: bool,
    /// Whether the reconciler has something to do, be it for drift that no watch showed.
    pub(crate) is_work: bool,
}

/// What becomes of objects that the control plane does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnknownObjects {
    /// These may be deleted.
    Delete(BTreeSet<ObjectKey>),
    /// There are too many: their deletion is held.
    Held {
        /// Whether some of them were not held before.
        is_news: bool,
    },
}

impl Store {
    /// Whether a resync has ended in this term.
    pub(crate) fn has_resynced(&self) -> bool {
        self.with(|memory| memory.last_resync.is_some())
    }

    /// Whether the stream has replayed everything, so that what it did not show is not desired.
    pub(crate) fn is_replayed(&self, now: Moment) -> bool {
        self.with(|memory| memory.is_replayed(now))
    }

    /// Every object that the control plane has to know, as a question about it.
    pub(crate) fn resync_questions(&self) -> Vec<Question> {
        self.with(|memory| {
            let questions = memory.view.questions().into_iter();
            // The control plane knows nothing of what the scheduler wants (D32).
            questions
                .filter(|(key, _)| !memory.is_of_the_scheduler(key))
                .map(|(key, id)| Question { key, id })
                .collect()
        })
    }

    /// Takes in what the control plane says is desired of this object, as it answered to a
    /// question of `asked_at`. An answer that the stream has overtaken changes nothing.
    pub(crate) fn receive_answer(
        &self,
        key: &ObjectKey,
        change: &Result<Change, Invalid>,
        asked_at: Moment,
        now: Moment,
    ) -> AnswerEffect {
        self.with(|memory| {
            memory.brake.named(key);
            let receipt = memory.backlog.answer(key, change.clone(), asked_at, now);
            let is_work = match receipt {
                AnswerReceipt::Adopted => {
                    memory.want(key, member_of(change), now);
                    true
                }
                AnswerReceipt::Unchanged => {
                    // The watch shows drift as it happens; this finds what it may have missed.
                    let work = WorkKey::Workload(key.clone());
                    let live = memory.view.workload(key).map(|live| live.fingerprint);
                    let settled = memory.backlog.settled(&work);
                    settled.is_some_and(|settled| settled.live != live)
                        && memory.backlog.look(&work, now)
                }
                AnswerReceipt::Dropped => false,
            };
            AnswerEffect {
                is_adopted: receipt == AnswerReceipt::Adopted,
                is_work,
            }
        })
    }

    /// Decides about objects that the control plane, asked twice, does not know. At most
    /// `max_percent` of all reported objects may go at once (D7).
    pub(crate) fn judge_unknown(
        &self,
        unknown: BTreeSet<ObjectKey>,
        max_percent: u8,
        now: Moment,
    ) -> UnknownObjects {
        self.with(|memory| {
            let live = memory.view.workloads();
            let objects = live
                .filter(|live| !memory.is_of_the_scheduler(&live.reference.key()))
                .count();
            let view = &memory.view;
            memory.brake.retain(|key| view.has_any_of(key));
            let held = memory.brake.held().len();
            match memory.brake.judge(unknown, objects, max_percent, now) {
                Verdict::Release(keys) => UnknownObjects::Delete(keys),
                Verdict::Hold => UnknownObjects::Held {
                    is_news: memory.brake.held().len() > held,
                },
            }
        })
    }

    /// The control plane does not know this object, as it answered to a question of `asked_at`: it
    /// is desired gone, unless the stream named it since. Returns whether it is.
    pub(crate) fn disown(&self, key: &ObjectKey, asked_at: Moment, now: Moment) -> bool {
        self.with(|memory| memory.disown(key, asked_at, now))
    }

    /// A resync has ended.
    pub(crate) fn note_resync(&self, summary: ResyncSummary) {
        self.with(|memory| memory.last_resync = Some(summary));
    }
}
