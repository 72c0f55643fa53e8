//! What becomes of a backlog when its process may write again.

use std::collections::BTreeSet;

use super::entry::Entry;
use super::{Backlog, Phase};
use crate::backlog::TroubleKind;
use crate::ids::{Moment, WorkKey};

impl Backlog {
    /// Another process wrote meanwhile: what was wanted may be old. Everything is read anew from
    /// version 0, as by a new process; shared objects are looked at as after the first lists.
    pub fn begin_anew(&mut self, now: Moment) {
        let shared: Vec<WorkKey> = self
            .entries
            .keys()
            .filter(|key| matches!(key, WorkKey::Shared(_)))
            .cloned()
            .collect();
        *self = Self {
            // A counter goes on.
            adds: self.adds,
            ..Self::default()
        };
        for key in shared {
            self.look(&key, now);
        }
    }

    /// A person wants what waits to be tried at once: this key and what it is blocked on, or
    /// everything. Returns how many keys.
    pub fn retry_now(&mut self, key: Option<&WorkKey>, now: Moment) -> usize {
        let mut meant: BTreeSet<WorkKey> = key.cloned().into_iter().collect();
        if let Some(Phase::Blocked(on)) = key.and_then(|key| Some(&self.entries.get(key)?.phase)) {
            meant.extend(on.iter().cloned().map(WorkKey::Shared));
        }
        let keys: Vec<WorkKey> = self
            .timers
            .iter()
            .map(|(_, waiting)| waiting)
            .filter(|waiting| key.is_none() || meant.contains(waiting))
            .cloned()
            .collect();
        let mut tried = 0;
        for (other, entry) in &mut self.entries {
            let is_meant = key.is_none() || meant.contains(other);
            entry.is_retried |= is_meant && entry.phase == Phase::InFlight;
        }
        for key in keys {
            let entry = self.entries.get_mut(&key);
            match entry.and_then(|entry| entry.hurry(now)) {
                None => {
                    self.make_ready(&key, now);
                    tried += 1;
                }
                // The server asked for that wait, and a person does not know better (D22a).
                Some(retry_at) => self.wait_until(&key, retry_at),
            }
        }
        tried
    }

    /// What waited for something to come is tried again at once.
    pub fn retry_waiting(&mut self, now: Moment) {
        let is_waiting = |entry: &Entry| entry.trouble_kind() == Some(TroubleKind::Waiting);
        let keys: Vec<WorkKey> = self
            .timers
            .iter()
            .map(|(_, key)| key)
            .filter(|key| self.entries.get(key).is_some_and(is_waiting))
            .cloned()
            .collect();
        for key in keys {
            self.make_ready(&key, now);
        }
    }
}
