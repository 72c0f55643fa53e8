//! One pass of questions, in a task of its own.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use krane_domain::ids::{Moment, ObjectKey};
use krane_ports::{Answer, ControlPlane, Question, RpcFailureKind};
use krane_supervision::address::Own;

use super::ResyncMessage;
use crate::contact::Contact;
use crate::status::StatusBoard;
use crate::store::Store;

/// Questions in flight at once.
const MAX_IN_FLIGHT: usize = 16;
/// What the control plane does not know is asked about again after this long.
const SECOND_QUESTION: Duration = Duration::from_secs(5);
/// At least this much time per question when they are spread.
const SPREAD_PER_QUESTION: Duration = Duration::from_millis(20);

/// An answer and when its question was asked.
#[derive(Debug)]
pub struct Finding {
    /// The question.
    pub question: Question,
    /// When it was asked.
    pub asked_at: Moment,
    /// The answer.
    pub answer: Answer,
}

/// What a pass found.
#[derive(Debug)]
pub struct PassResult {
    /// When it began.
    pub started_at: Moment,
    /// Questions asked, second ones not counted.
    pub asked: usize,
    /// Questions without a usable answer.
    pub failed: usize,
    /// Objects twice unknown to the control plane, with the moment of the first question.
    pub unknown: BTreeMap<ObjectKey, Moment>,
}

pub(super) struct Pass {
    pub(super) questions: Vec<Question>,
    pub(super) spread: Duration,
    pub(super) store: Arc<Store>,
    pub(super) control_plane: Arc<dyn ControlPlane>,
    pub(super) own: Own<ResyncMessage>,
    pub(super) board: StatusBoard,
    pub(super) contact: Contact,
}

enum Asked {
    Answered,
    NotFound(Question, Moment),
    Failed,
}

pub(super) async fn run(pass: Pass) {
    let started_at = pass.board.now();
    let asked = pass.questions.len();
    let count = u32::try_from(asked).unwrap_or(u32::MAX);
    let spread = pass.spread.min(SPREAD_PER_QUESTION.saturating_mul(count));
    let first = pass.ask_all(pass.questions.clone(), spread).await;
    let mut failed = 0;
    let mut suspects = BTreeMap::new();
    for outcome in first {
        match outcome {
            Asked::Answered => {}
            Asked::Failed => failed += 1,
            Asked::NotFound(question, asked_at) => {
                suspects.insert(question, asked_at);
            }
        }
    }
    let mut unknown = BTreeMap::new();
    if !suspects.is_empty() {
        pause(SECOND_QUESTION).await;
        let questions = suspects.keys().cloned().collect();
        for outcome in pass.ask_all(questions, Duration::ZERO).await {
            match outcome {
                Asked::Answered => {}
                Asked::Failed => failed += 1,
                Asked::NotFound(question, asked_again_at) => {
                    let asked_at = suspects.get(&question).copied().unwrap_or(asked_again_at);
                    unknown.insert(question.key, asked_at);
                }
            }
        }
    }
    let result = PassResult {
        started_at,
        asked,
        failed,
        unknown,
    };
    pass.own.hand_in(ResyncMessage::PassEnded(result)).await;
}

impl Pass {
    async fn ask_all(&self, questions: Vec<Question>, spread: Duration) -> Vec<Asked> {
        let count = u32::try_from(questions.len().max(1)).unwrap_or(u32::MAX);
        let step = spread / count;
        let began = self.board.now();
        futures::stream::iter(questions.into_iter().zip(0u32..))
            .map(|(question, number)| async move {
                let due = began + step.saturating_mul(number);
                pause(due.saturating_sub(self.board.now())).await;
                self.ask(question).await
            })
            .buffer_unordered(MAX_IN_FLIGHT)
            .collect()
            .await
    }

    async fn ask(&self, question: Question) -> Asked {
        let asked_at = self.board.now();
        if !self.store.allow_request(asked_at) {
            return Asked::Failed;
        }
        let call = AssertUnwindSafe(self.control_plane.desired(&question)).catch_unwind();
        let Ok(answer) = call.await else {
            let now = self.board.now();
            self.contact.lost(now);
            tracing::error!(key = %question.key, "an answer made krane panic; it is ignored");
            return Asked::Failed;
        };
        let now = self.board.now();
        let is_sign_of_life =
            !matches!(&answer, Err(failure) if failure.kind == RpcFailureKind::Transport);
        if is_sign_of_life {
            self.contact.heard(now);
        } else {
            self.contact.missed(now);
        }
        match answer {
            Ok(Answer::NotFound) => Asked::NotFound(question, asked_at),
            Ok(answer @ Answer::State { .. }) => {
                let finding = Finding {
                    question,
                    asked_at,
                    answer,
                };
                self.own.hand_in(ResyncMessage::Found(finding)).await;
                Asked::Answered
            }
            Ok(Answer::Empty) => Asked::Answered,
            Err(_) => Asked::Failed,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a pass is a task of the resync actor, no handler"
)]
async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
