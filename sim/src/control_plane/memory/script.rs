//! What a test makes the control plane want and do.

use std::time::Duration;

use krane_domain::desired::{Change, State};
use krane_domain::ids::ObjectKey;
use krane_domain::invalid::Invalid;
use krane_domain::kinds::Desired;
use krane_ports::{Answer, RpcFailure};

use super::rows::{Order, Rows};
use super::shared::{Call, Faults, Way};
use super::told::Told;
use super::{SimControlPlane, answered, unreachable};

/// What a message is said to weigh, in bytes: about what a workload without variables does.
const MESSAGE_SIZE: usize = 256;

/// What a question about one object meets with, instead of its newest row.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// This answer.
    Answer(Answer),
    /// This failure.
    Failure(RpcFailure),
    /// Nothing, for as long as the client waits.
    Silence,
}

/// Everything a control plane wanted at one moment.
#[derive(Clone, Debug)]
pub struct Backup(Rows);

impl SimControlPlane {
    /// Wants this object like this from now on. The version of the state.
    pub fn apply(&self, desired: Desired) -> u64 {
        let key = desired.key().clone();
        self.want(key, Ok(Change::Apply(desired)))
    }

    /// Wants this object gone from now on. The version of the state.
    pub fn delete(&self, key: &ObjectKey) -> u64 {
        self.want(key.clone(), Ok(Change::Delete))
    }

    /// Wants of this object what cannot be, or what does not decode beyond its name.
    pub fn poison(&self, key: &ObjectKey, invalid: Invalid) -> u64 {
        self.want(key.clone(), Err(invalid))
    }

    /// Sends what names no object at all.
    pub fn garbage(&self, reason: &str) -> u64 {
        self.shared
            .change(|inner| inner.rows.insert_unnamed(reason))
    }

    /// Any state. Version 0 becomes the next one; a version that streams have passed is found only
    /// by those that begin below it.
    pub fn push(&self, state: State) -> u64 {
        self.shared.change(|inner| inner.rows.insert(state))
    }

    fn want(&self, key: ObjectKey, change: Result<Change, Invalid>) -> u64 {
        self.push(State {
            key,
            version: 0,
            change,
            size: MESSAGE_SIZE,
        })
    }

    /// Forgets an object as if it had never been: questions about it are answered "not found".
    pub fn forget(&self, key: &ObjectKey) {
        self.shared.change(|inner| {
            inner.answers.remove(key);
            inner.rows.forget(key);
        });
    }

    /// Forgets everything, as one restored from nothing: versions begin at 1 again.
    pub fn lose_memory(&self) {
        self.restore(&Backup(Rows::default()));
    }

    /// A copy of everything it wants.
    pub fn backup(&self) -> Backup {
        Backup(self.shared.look().rows.clone())
    }

    /// Wants again what it wanted when the copy was made: versions continue behind the copy's
    /// newest, so they repeat. Streams that are open go on behind what they have sent.
    pub fn restore(&self, backup: &Backup) {
        self.shared.change(|inner| inner.rows = backup.0.clone());
    }

    /// Whether replaced rows are kept and streamed, too.
    pub fn keep_history(&self, keep: bool) {
        self.shared.change(|inner| inner.rows.keeps_history = keep);
    }

    /// The newest version.
    pub fn newest(&self) -> u64 {
        self.shared.look().rows.newest()
    }

    /// What a question about an object meets with; `None` goes back to its newest row.
    pub fn set_answer(&self, key: &ObjectKey, reply: impl Into<Option<Reply>>) {
        self.shared.change(|inner| match reply.into() {
            Some(reply) => inner.answers.insert(key.clone(), reply),
            None => inner.answers.remove(key),
        });
    }

    /// Ends all open streams with this code. `ok` is a clean end.
    pub fn cut_streams(&self, code: &'static str) {
        self.cut(answered(code));
    }

    fn cut(&self, failure: RpcFailure) {
        self.shared.change(|inner| {
            let so_far = inner.told.watches.len();
            inner.cut = Some((so_far, failure));
        });
    }

    /// Lets nothing through: calls wait, streams are silent, and nobody is told why.
    pub fn freeze(&self) {
        self.shared.change(|inner| inner.way = Way::Frozen);
    }

    /// Cannot be reached: calls fail at once, and streams end.
    pub fn take_away(&self) {
        self.shared.change(|inner| inner.way = Way::Gone);
        self.cut(unreachable());
    }

    /// Ends [`freeze`](Self::freeze) and [`take_away`](Self::take_away).
    pub fn give_back(&self) {
        self.shared.change(|inner| inner.way = Way::Open);
    }

    /// The next `times` calls of a method end with this failure; `u32::MAX` stands for ever.
    pub fn fail(&self, call: Call, failure: RpcFailure, times: u32) {
        self.shared.change(|inner| {
            inner.faults.failing.insert(call, (failure, times));
        });
    }

    /// Answers to a method take this long.
    pub fn delay(&self, call: Call, delay: Duration) {
        self.shared.change(|inner| {
            inner.faults.slow.insert(call, delay);
        });
    }

    /// Takes all [`fail`](Self::fail) and [`delay`](Self::delay) back.
    pub fn heal(&self) {
        self.shared.change(|inner| inner.faults = Faults::default());
    }

    /// Whether streams to come show that they are open only with their first message. They do,
    /// unless told otherwise.
    pub fn hold_headers_back(&self, hold: bool) {
        self.shared.change(|inner| inner.holds_headers = hold);
    }

    /// In which order streams get what is there at once.
    pub fn replay_order(&self, order: Order) {
        self.shared.change(|inner| inner.order = order);
    }

    /// Looks at everything that reached it.
    pub fn look<T>(&self, look: impl FnOnce(&Told) -> T) -> T {
        look(&self.shared.look().told)
    }

    /// Waits until `look` finds what it looks for in what reached it.
    pub async fn until<T>(&self, mut look: impl FnMut(&Told) -> Option<T>) -> T {
        let mut changes = self.shared.changes();
        loop {
            changes.catch_up();
            if let Some(found) = self.look(&mut look) {
                return found;
            }
            changes.rung().await;
        }
    }
}
