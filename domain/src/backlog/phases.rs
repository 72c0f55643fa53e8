//! How keys get from one phase to another, and the indexes that follow.

use std::collections::BTreeSet;

use super::entry::Entry;
use super::queue::Urgency;
use super::{Backlog, Phase};
use crate::ids::{Moment, SharedKey, WorkKey};

impl Backlog {
    pub(super) fn make_ready(&mut self, key: &WorkKey, now: Moment) {
        let before = self.entries.get(key).map(|entry| &entry.phase);
        let was_ready = matches!(before, Some(Phase::Ready { .. }));
        self.leave_phase(key);
        let Some(urgency) = self.urgency(key) else {
            return;
        };
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.phase == Phase::InFlight {
            entry.look_again = true;
            return;
        }
        entry.phase = Phase::Ready {
            urgency,
            since: now,
        };
        let is_slow = entry.is_slow;
        self.queue.insert(key, urgency, now, is_slow);
        self.adds += u64::from(!was_ready);
    }

    /// The place of a key in the order. A shared object has that of the most urgent key that waits
    /// for it, whatever it lacks.
    fn urgency(&self, key: &WorkKey) -> Option<Urgency> {
        let entry = self.entries.get(key)?;
        let WorkKey::Shared(shared) = key else {
            return Some(entry.urgency());
        };
        let waiting = self.blocked.get(shared).into_iter().flatten();
        let needs = waiting.filter_map(|key| Some(self.entries.get(key)?.urgency_of_need(key)));
        Some(needs.min().unwrap_or_else(|| entry.urgency_unneeded()))
    }

    /// Of what only looked older something else may be different by now. Whether it only did.
    pub(super) fn end_deferral(&mut self, key: &WorkKey) -> bool {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.is_deferred) else {
            return false;
        };
        self.bytes -= entry.waiting_bytes();
        entry.is_deferred = false;
        self.bytes += entry.waiting_bytes();
        true
    }

    /// Notes what a key is blocked on, each of it at least this urgent from now on.
    pub(super) fn wait_for(&mut self, key: &WorkKey, on: BTreeSet<SharedKey>, need: Urgency) {
        for shared in on {
            self.hasten(&shared, need);
            self.blocked.entry(shared).or_default().insert(key.clone());
        }
    }

    pub(super) fn hasten(&mut self, shared: &SharedKey, urgency: Urgency) {
        let key = WorkKey::Shared(shared.clone());
        if let Some(entry) = self.entries.get(&key)
            && let Phase::Ready {
                urgency: before, ..
            } = entry.phase
            && urgency < before
        {
            self.put_at(&key, urgency);
        }
    }

    /// A key that is ready gets another place in the order.
    pub(super) fn put_at(&mut self, key: &WorkKey, urgency: Urgency) {
        if let Some(entry) = self.entries.get_mut(key)
            && let Phase::Ready {
                urgency: place,
                since,
            } = &mut entry.phase
        {
            self.queue.remove(key, *place, *since, entry.is_slow);
            *place = urgency;
            self.queue.insert(key, urgency, *since, entry.is_slow);
        }
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
        let Some(entry) = self.entries.get(key) else {
            return;
        };
        match &entry.phase {
            Phase::Ready { urgency, since } => {
                self.queue.remove(key, *urgency, *since, entry.is_slow);
            }
            Phase::Waiting { until } => {
                self.timers.remove(&(*until, key.clone()));
            }
            Phase::Blocked(on) => {
                for shared in on {
                    if let Some(blocked) = self.blocked.get_mut(shared) {
                        blocked.remove(key);
                        if blocked.is_empty() {
                            self.blocked.remove(shared);
                        }
                    }
                }
            }
            Phase::Idle | Phase::InFlight => {}
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
                self.queue.end(entry.line, entry.is_slow_lane);
            }
            if let WorkKey::Workload(object) = &key {
                self.cursor.failed(object);
            }
            self.make_ready(&key, now);
        }
    }
}
