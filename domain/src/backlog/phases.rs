//! How keys get from one phase to another, and the indexes that follow.

use super::entry::Entry;
use super::{Backlog, Phase};
use crate::ids::{Moment, SharedKey, WorkKey};
use crate::planted::{Bug, is_planted};

impl Backlog {
    pub(super) fn make_ready(&mut self, key: &WorkKey, now: Moment) {
        self.leave_phase(key);
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.phase == Phase::InFlight && !is_planted(Bug::DuplicateLanes) {
            entry.look_again = true;
            return;
        }
        let urgency = entry.urgency(key);
        entry.phase = Phase::Ready {
            urgency,
            since: now,
        };
        self.ready.insert((urgency, key.clone()));
        self.waiting.insert((now, key.clone()));
    }

    pub(super) fn wait_until(&mut self, key: &WorkKey, until: Moment) {
        self.leave_phase(key);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.phase = Phase::Waiting { until };
            self.timers.insert((until, key.clone()));
        }
    }

    /// Takes the entry out of the index of its phase.
    pub(super) fn leave_phase(&mut self, key: &WorkKey) {
        match self.entries.get(key).map(|entry| &entry.phase) {
            Some(Phase::Ready { urgency, since }) => {
                self.ready.remove(&(*urgency, key.clone()));
                self.waiting.remove(&(*since, key.clone()));
            }
            Some(Phase::Waiting { until }) => {
                self.timers.remove(&(*until, key.clone()));
            }
            Some(Phase::Blocked(on)) => {
                for shared in on {
                    if let Some(blocked) = self.blocked.get_mut(shared) {
                        blocked.remove(key);
                        if blocked.is_empty() {
                            self.blocked.remove(shared);
                        }
                    }
                }
            }
            Some(Phase::Idle | Phase::InFlight) | None => {}
        }
    }

    /// A shared object is in place: whoever waited for it and nothing else can go on.
    pub fn unblock(&mut self, shared: &SharedKey, now: Moment) {
        for key in self.blocked.remove(shared).unwrap_or_default() {
            if let Some(entry) = self.entries.get_mut(&key)
                && let Phase::Blocked(on) = &mut entry.phase
                && on.remove(shared)
                && on.is_empty()
            {
                self.make_ready(&key, now);
            }
        }
    }

    /// Moves entries whose waiting time is over to the ready ones.
    pub fn wake_due(&mut self, now: Moment) {
        while let Some((_, key)) = self.timers.first().filter(|(at, _)| *at <= now).cloned() {
            self.make_ready(&key, now);
        }
    }

    /// When [`Self::wake_due`] has something to do next.
    pub fn next_timer(&self) -> Option<Moment> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The cluster answers again: what failed for a passing reason is tried at once, or when the
    /// wait is over that the server asked for (D22a).
    pub fn retry_transient(&mut self, now: Moment) {
        let keys: Vec<WorkKey> = self
            .timers
            .iter()
            .map(|(_, key)| key)
            .filter(|key| self.entries.get(key).is_some_and(Entry::is_transient))
            .cloned()
            .collect();
        for key in keys {
            let retry_at = self
                .entries
                .get_mut(&key)
                .and_then(|entry| entry.hurry(now));
            match retry_at {
                None => self.make_ready(&key, now),
                Some(retry_at) => self.wait_until(&key, retry_at),
            }
        }
    }

    /// Lanes were lost with their reconciler: their keys are looked at again.
    pub fn abandon_lanes(&mut self, now: Moment) {
        let lost: Vec<WorkKey> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.phase == Phase::InFlight)
            .map(|(key, _)| key.clone())
            .collect();
        for key in lost {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.phase = Phase::Idle;
                self.in_flight -= 1;
            }
            if let WorkKey::Workload(object) = &key {
                self.cursor.failed(object);
            }
            if !is_planted(Bug::LanesLostOnRestart) {
                self.make_ready(&key, now);
            }
        }
    }
}
