//! What calls of the scheduler want (D32), beside what the control plane wants.
//!
//! Both are entries of one backlog: one lane per object, whoever spoke. A call has no version, so
//! that the cursor does not see it, and goes by its arrival while somebody waits for the answer.

use super::Backlog;
use super::entry::Source;
use crate::desired::{Change, State};
use crate::ids::{Moment, ObjectKey, WorkKey};

/// Who spoke of an object last, as far as this process was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nobody, or the control plane says that it does not know it.
    Nobody,
    /// The control plane: it wants the object, or wants it gone.
    ControlPlane,
    /// The scheduler.
    Scheduler,
}

impl Backlog {
    /// Who spoke of an object last. What the control plane wants gone is its own for as long as
    /// that is remembered: the state that says so may come again.
    pub fn claim(&self, key: &ObjectKey) -> Claim {
        let Some(entry) = self.entries.get(&WorkKey::Workload(key.clone())) else {
            return Claim::Nobody;
        };
        match entry.source {
            Source::Scheduler => Claim::Scheduler,
            Source::NotTheStream if entry.state.is_none() || entry.wants_absence() => Claim::Nobody,
            Source::Stream | Source::StreamThenAnswer | Source::NotTheStream => Claim::ControlPlane,
        }
    }

    /// Takes in what a call wants of an object; `size` in bytes, as of a message. Returns whether
    /// it did: what the control plane claims is not the scheduler's to change.
    pub fn call(&mut self, key: &ObjectKey, change: Change, size: usize, now: Moment) -> bool {
        if self.claim(key) == Claim::ControlPlane {
            return false;
        }
        let work = WorkKey::Workload(key.clone());
        let entry = self.entries.entry(work.clone()).or_default();
        entry.source = Source::Scheduler;
        entry.called_at = Some(now);
        // Who calls again for the same object keeps the place of the call before.
        if entry.arrival.is_none() {
            self.calls += 1;
            entry.arrival = Some(self.calls);
        }
        let state = State {
            key: key.clone(),
            version: entry.highest,
            change: Ok(change),
            size,
        };
        self.replace(&work, state, now);
        self.mark_change(key);
        true
    }

    /// The state just taken in of this object is a change, not what a start shows again: all of it
    /// is written at once, even where what differs only looks older (D44).
    pub fn mark_change(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.entries.get_mut(&WorkKey::Workload(key.clone())) {
            entry.is_change = true;
        }
    }

    /// Whoever called for this object was answered, or does not wait any more: what is wanted is
    /// wanted as before, and others go before it.
    pub fn nobody_waits(&mut self, key: &ObjectKey) {
        let work = WorkKey::Workload(key.clone());
        if let Some(entry) = self.entries.get_mut(&work)
            && entry.arrival.take().is_some()
        {
            let urgency = entry.urgency();
            self.put_at(&work, urgency);
        }
    }
}
