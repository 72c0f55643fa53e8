//! What the control plane wants, taken in.

use std::collections::BTreeSet;

use krane_domain::backlog::{AnswerReceipt, Claim, Receipt};
use krane_domain::desired::{Change, State, StreamItem};
use krane_domain::ids::{Controller, Moment, ObjectKey, WorkKey};
use krane_domain::invalid::Invalid;
use krane_domain::kinds::Member;
use krane_domain::origin::Origin;
use krane_domain::replay::{Replay, Shown};

use super::Memory;
use super::facts::StreamReading;

impl Memory {
    /// Takes in a message of the stream.
    pub fn receive(&mut self, item: StreamItem, now: Moment) {
        self.take_in(item, now);
        if !self.has_room() {
            self.stream.reading = StreamReading::Paused;
        }
    }

    fn take_in(&mut self, item: StreamItem, now: Moment) {
        let is_replayed = self.is_replayed(now);
        self.stream.last_item_at = Some(now);
        match item {
            StreamItem::Unnamed { version, .. } => {
                self.stream.unknown += 1;
                self.backlog.pass(version);
            }
            StreamItem::State(state) => {
                let state = of_kind(self.view.controller(), state);
                self.brake.named(&state.key);
                let key = state.key.clone();
                let member = member_of(&state.change);
                let warnings = warnings_of(&state.change);
                let broken = unversioned(&state);
                let was_called_for = self.backlog.claim(&key) == Claim::Scheduler;
                match self.backlog.receive(state, now) {
                    Receipt::Accepted => {
                        self.stream.received += 1;
                        if is_replayed {
                            self.backlog.mark_change(&key);
                        }
                        for warning in warnings {
                            tracing::warn!(%key, %warning, "applied all the same");
                        }
                        if was_called_for {
                            tracing::warn!(
                                %key,
                                "the control plane takes over what the scheduler had called for"
                            );
                        }
                        self.want(&key, member, now);
                    }
                    Receipt::Repeated => self.stream.replayed += 1,
                    Receipt::Stale => {
                        self.stream.stale += 1;
                        if let Some(reason) = broken {
                            tracing::error!(
                                %key,
                                %reason,
                                "a state whose version cannot be read was passed over; what was \
                                 wanted before is kept"
                            );
                        }
                    }
                }
            }
        }
    }

    /// Takes in a state that a full replay shows (D8). Returns whether there is work.
    pub fn receive_replayed(&mut self, replay: &mut Replay, state: State, now: Moment) -> bool {
        let state = of_kind(self.view.controller(), state);
        let age = self.backlog.age(&state);
        match replay.show(state, age) {
            Shown::News(state) => {
                self.receive(StreamItem::State(state), now);
                true
            }
            Shown::Known | Shown::Older => {
                self.stream.replayed += 1;
                false
            }
        }
    }

    /// Takes over what a restored control plane wants, and begins its stream again at 0 (D8).
    pub fn adopt(&mut self, states: Vec<State>, now: Moment) {
        self.stream.adopted += states.len() as u64;
        self.stream.must_reconnect = true;
        let named: Vec<_> = states
            .iter()
            .map(|state| (state.key.clone(), member_of(&state.change)))
            .collect();
        self.backlog.adopt(states, now);
        for (key, member) in named {
            self.brake.named(&key);
            self.want(&key, member, now);
        }
    }

    /// The control plane does not know this object, as it said when asked at `asked_at`: it is
    /// deleted, unless the stream spoke of it since. Returns whether it is.
    pub fn disown(&mut self, key: &ObjectKey, asked_at: Moment, now: Moment) -> bool {
        let receipt = self.backlog.answer(key, Ok(Change::Delete), asked_at, now);
        let is_adopted = receipt == AnswerReceipt::Adopted;
        if is_adopted {
            self.want(key, None, now);
        }
        is_adopted
    }

    /// A person allows the deletions that the brake holds (D7). Returns what is deleted now.
    pub fn allow_deletes(&mut self, now: Moment) -> BTreeSet<ObjectKey> {
        let held = self.brake.release(now);
        held.into_iter()
            .filter(|key| self.disown(key, now, now))
            .collect()
    }

    /// A wanted workload changed: so may the shared objects it was and is part of. Whoever called
    /// for something else hears of it.
    pub fn want(&mut self, key: &ObjectKey, member: Option<Member>, now: Moment) {
        let origin = match self.backlog.claim(key) {
            Claim::Scheduler => Origin::Scheduler,
            Claim::ControlPlane | Claim::Nobody => Origin::ControlPlane,
        };
        for changed in self.wanted.set(key, member) {
            self.backlog
                .look_for(&WorkKey::Shared(changed), origin, now);
        }
        self.tell_caller(key);
    }
}

/// A state of another kind is none for this controller, whatever its name.
fn of_kind(controller: Controller, mut state: State) -> State {
    state.change = state.change.and_then(|change| {
        if change.is_for(controller) {
            return Ok(change);
        }
        Err(Invalid::new(
            "message",
            "is the state of an object of another kind",
            "look for a control plane that mixes up its streams",
        ))
    });
    state
}

/// What is wrong with a state so broken that even its version is missing: it counts as older than
/// whatever is known of its object.
fn unversioned(state: &State) -> Option<Invalid> {
    let invalid = state.change.as_ref().err();
    invalid.filter(|_| state.version == 0).cloned()
}

fn warnings_of(change: &Result<Change, Invalid>) -> Vec<Invalid> {
    match change {
        Ok(Change::Apply(desired)) => desired.warnings().to_vec(),
        Ok(Change::Delete) | Err(_) => Vec::new(),
    }
}

/// What a change contributes to shared objects.
pub(super) fn member_of(change: &Result<Change, Invalid>) -> Option<Member> {
    match change {
        Ok(Change::Apply(desired)) => Some(desired.member()),
        Ok(Change::Delete) | Err(_) => None,
    }
}
