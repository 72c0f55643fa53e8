//! What others read of the backlog.

use std::sync::Arc;

use super::{Backlog, InTrouble, Settled};
use crate::desired::State;
use crate::ids::{ObjectKey, WorkKey};

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
        self.in_flight
    }

    /// Keys waiting for a lane.
    pub fn ready(&self) -> usize {
        self.ready.len()
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

    /// The newest version known of an object that a replay shows in version `shown`, if there is
    /// one to compare with. What the control plane had forgotten is news when it is named again in
    /// the version it had (D7), and older than known in a lower one.
    pub fn known_version(&self, key: &ObjectKey, shown: u64) -> Option<u64> {
        let entry = self.entries.get(&WorkKey::Workload(key.clone()))?;
        (entry.has_stream_state || shown < entry.highest).then_some(entry.highest)
    }
}
