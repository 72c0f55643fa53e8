//! What others read of the backlog.

use std::cmp::Ordering;
use std::sync::Arc;

use super::entry::Source;
use super::{Backlog, InTrouble, Phase, Settled};
use crate::desired::State;
use crate::ids::{ObjectKey, WorkKey};
use crate::replay::Age;
use crate::secrets::DesiredWorkloads;

impl Backlog {
    /// Where the stream goes on after a reconnect.
    pub fn cursor(&self) -> u64 {
        self.cursor.value()
    }

    /// The highest version received.
    pub fn highest(&self) -> u64 {
        self.cursor.highest()
    }

    /// Bytes of states that wait to be applied, those left out that no waiting helps.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lanes at work.
    pub fn in_flight(&self) -> usize {
        self.queue.at_work()
    }

    /// Keys waiting for a lane.
    pub fn ready(&self) -> usize {
        self.queue.len()
    }

    /// Whether a key waits for objects that it shares with others.
    pub fn is_blocked(&self, key: &WorkKey) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| matches!(entry.phase, Phase::Blocked(_)))
    }

    /// Of these, keys that only look older (D44).
    pub fn deferred(&self) -> usize {
        self.queue.upgrades()
    }

    /// How often a key became ready, since the controller started.
    pub fn adds(&self) -> u64 {
        self.adds
    }

    /// Objects with a state that was not brought about yet.
    pub fn unapplied(&self) -> usize {
        self.cursor.unapplied()
    }

    /// What is wanted of an object.
    pub fn state(&self, key: &ObjectKey) -> Option<&Arc<State>> {
        self.entries
            .get(&WorkKey::Workload(key.clone()))?
            .state
            .as_ref()
    }

    /// Whose each deployment is, as its states say (D50).
    pub fn workloads(&self) -> &DesiredWorkloads {
        &self.workloads
    }

    /// Whether the newest state of this object was brought about, and against what.
    pub fn settled(&self, key: &WorkKey) -> Option<&Settled> {
        self.entries.get(key)?.settled.as_ref()
    }

    /// All objects something is wanted of, with their states, in key order.
    pub fn states(&self) -> impl Iterator<Item = &Arc<State>> {
        self.entries
            .values()
            .filter_map(|entry| entry.state.as_ref())
    }

    /// Every key in trouble, with what an operator needs to know.
    pub fn in_trouble(&self) -> impl Iterator<Item = InTrouble> + '_ {
        self.entries
            .iter()
            .filter_map(|(key, entry)| entry.in_trouble(key))
    }

    /// The trouble a key is in, if it is.
    pub fn trouble_of(&self, key: &WorkKey) -> Option<InTrouble> {
        self.entries.get(key)?.in_trouble(key)
    }

    /// How a state that a full replay shows stands to what is known of its object. What the control
    /// plane had forgotten is news when it is named again in the version it had (D7). Another
    /// content under a known version is as doubtful as a lower version: one that was restored gives
    /// its numbers a second time. Only what an answer said may differ from the stream's.
    pub fn age(&self, shown: &State) -> Age {
        let Some(entry) = self.entries.get(&WorkKey::Workload(shown.key.clone())) else {
            return Age::Newer;
        };
        let differs = entry.state.as_ref().is_some_and(|known| {
            entry.source == Source::Stream
                && known.version == shown.version
                && known.change != shown.change
        });
        match shown.version.cmp(&entry.highest) {
            // The version of a broken message says nothing.
            Ordering::Less if shown.version == 0 => Age::Known,
            Ordering::Less => Age::Older,
            // Nor does that of one about an object that only the scheduler spoke of.
            Ordering::Equal if shown.version == 0 && entry.source == Source::Scheduler => {
                Age::Known
            }
            Ordering::Equal if !entry.source.is_the_stream() => Age::Newer,
            Ordering::Equal if differs => Age::Older,
            Ordering::Equal => Age::Known,
            Ordering::Greater => Age::Newer,
        }
    }
}
