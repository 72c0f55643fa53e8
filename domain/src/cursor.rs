//! The version cursor of one desired-state stream.
//!
//! It is the highest version V such that every received state with version ≤ V was applied, or
//! was replaced by a newer state of the same object that was applied. A state that cannot be
//! applied holds the cursor below itself; states behind it are applied all the same.

use std::collections::{BTreeMap, BTreeSet};

/// Tracks which received versions are still unapplied, per object.
#[derive(Clone, Debug)]
pub struct Cursor<K> {
    value: u64,
    highest: u64,
    unapplied: BTreeMap<K, Unapplied>,
    oldest: BTreeSet<(u64, K)>,
}

#[derive(Clone, Copy, Debug)]
struct Unapplied {
    /// The oldest version of this object that is neither applied nor replaced by an applied one.
    oldest: u64,
    /// The version that is being applied, if one is: it covers itself and everything older.
    attempted: Option<u64>,
    /// The oldest version that the present attempt does not cover.
    beyond_attempt: Option<u64>,
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Self {
            value: 0,
            highest: 0,
            unapplied: BTreeMap::new(),
            oldest: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone> Cursor<K> {
    /// A state of this object arrived and waits to be applied, or to be replaced by a newer one
    /// that is.
    pub fn received(&mut self, key: &K, version: u64) {
        self.highest = self.highest.max(version);
        match self.unapplied.get_mut(key) {
            Some(entry) if entry.attempted.is_some_and(|attempted| version > attempted) => {
                let beyond = entry.beyond_attempt.get_or_insert(version);
                *beyond = version.min(*beyond);
            }
            Some(entry) => {
                if version < entry.oldest {
                    self.oldest.remove(&(entry.oldest, key.clone()));
                    entry.oldest = version;
                    self.oldest.insert((version, key.clone()));
                }
            }
            None => {
                let entry = Unapplied {
                    oldest: version,
                    attempted: None,
                    beyond_attempt: None,
                };
                self.unapplied.insert(key.clone(), entry);
                self.oldest.insert((version, key.clone()));
            }
        }
    }

    /// A version that needs nothing to be applied: it names no object, or an older state of an
    /// object whose newer state was applied.
    pub fn passed(&mut self, version: u64) {
        self.highest = self.highest.max(version);
        self.advance();
    }

    /// This version of this object, its newest, is being applied from now on.
    pub fn attempted(&mut self, key: &K, version: u64) {
        if let Some(entry) = self.unapplied.get_mut(key) {
            entry.attempted = Some(version);
        }
    }

    /// The attempt failed: everything received of this object still waits.
    pub fn failed(&mut self, key: &K) {
        if let Some(entry) = self.unapplied.get_mut(key) {
            entry.attempted = None;
            // Newer than what is oldest.
            entry.beyond_attempt = None;
        }
    }

    /// The attempt succeeded: what it covers is applied or replaced.
    pub fn applied(&mut self, key: &K) {
        if let Some(entry) = self.unapplied.get_mut(key)
            && entry.attempted.take().is_some()
        {
            self.oldest.remove(&(entry.oldest, key.clone()));
            if let Some(next) = entry.beyond_attempt.take() {
                entry.oldest = next;
                self.oldest.insert((next, key.clone()));
            } else {
                self.unapplied.remove(key);
            }
        }
        self.advance();
    }

    /// Begins again at 0: the versions of the stream are others from now on (D8). What is
    /// unapplied stays so, in its old version until [`Self::renumber`] gives it a new one.
    pub fn restart(&mut self) {
        self.value = 0;
        self.highest = 0;
    }

    /// The newest state of this object has this version from now on, and is unapplied.
    pub fn renumber(&mut self, key: &K, version: u64) {
        if let Some(entry) = self.unapplied.remove(key) {
            self.oldest.remove(&(entry.oldest, key.clone()));
        }
        self.received(key, version);
    }

    fn advance(&mut self) {
        let safe = match self.oldest.first() {
            // A version from before a restart may be higher than all received since.
            Some((oldest, _)) => oldest.saturating_sub(1).min(self.highest),
            None => self.highest,
        };
        self.value = self.value.max(safe);
    }

    /// Where the stream goes on after a reconnect.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// The highest version received.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Objects with an unapplied state.
    pub fn unapplied(&self) -> usize {
        self.unapplied.len()
    }

    /// Whether the newest received state of this object is still unapplied.
    pub fn is_unapplied(&self, key: &K) -> bool {
        self.unapplied.contains_key(key)
    }
}

#[cfg(test)]
mod tests;
