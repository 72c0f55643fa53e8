//! What a full replay of the desired states shows that is older than what is known (D8).
//!
//! A control plane that was restored from a backup shows versions lower than those remembered. So
//! does, for a moment, one whose answer was overtaken by the stream. Only what two replays in a
//! row show is believed. What a replay does not show is not gone: absence says nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::desired::State;
use crate::ids::ObjectKey;

/// One replay, under way.
#[derive(Debug, Default)]
pub struct Replay {
    /// Objects of which it has shown the newest version that is known.
    current: BTreeSet<ObjectKey>,
    /// The newest version of the others, lower than the known one.
    lower: BTreeMap<ObjectKey, State>,
}

/// What to do with a replayed state.
#[derive(Debug, PartialEq)]
pub enum Shown {
    /// Take it in like a state of the stream: it is news.
    News(State),
    /// Nothing: it is known.
    Known,
    /// Nothing yet: it is older than what is known.
    Lower,
}

impl Replay {
    /// Takes in a state, of an object whose newest known version is `known`.
    pub fn show(&mut self, state: State, known: Option<u64>) -> Shown {
        let key = state.key.clone();
        match known {
            // The version of a broken message says nothing.
            Some(known) if state.version == 0 && known > 0 => Shown::Known,
            Some(known) if state.version < known => {
                // A control plane that keeps history shows older rows before the newest.
                let is_newest = self
                    .lower
                    .get(&key)
                    .is_none_or(|shown| shown.version <= state.version);
                if is_newest && !self.current.contains(&key) {
                    self.lower.insert(key, state);
                }
                Shown::Lower
            }
            Some(known) if state.version == known => {
                self.lower.remove(&key);
                self.current.insert(key);
                Shown::Known
            }
            Some(_) | None => {
                self.lower.remove(&key);
                self.current.insert(key);
                Shown::News(state)
            }
        }
    }

    /// Ends the replay: the objects it showed only in versions lower than known.
    pub fn lower(self) -> BTreeMap<ObjectKey, State> {
        self.lower
    }
}

/// What this replay and the one before it both showed in a lower version: it is true.
pub fn confirmed(before: &BTreeSet<ObjectKey>, lower: BTreeMap<ObjectKey, State>) -> Vec<State> {
    lower
        .into_iter()
        .filter(|(key, _)| before.contains(key))
        .map(|(_, state)| state)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::Change;

    fn state(name: &str, version: u64) -> State {
        State {
            key: ObjectKey::new("ns", name),
            version,
            change: Ok(Change::Delete),
            size: 1,
        }
    }

    #[test]
    fn what_is_newer_or_unknown_is_news() {
        let mut replay = Replay::default();
        for known in [None, Some(4)] {
            let shown = replay.show(state("a", 5), known);
            assert_eq!(shown, Shown::News(state("a", 5)));
        }
        assert_eq!(replay.show(state("a", 5), Some(5)), Shown::Known);
        assert!(replay.lower().is_empty());
    }

    #[test]
    fn older_rows_beside_the_newest_mean_nothing_in_either_order() {
        for versions in [[3, 9], [9, 3]] {
            let mut replay = Replay::default();
            for version in versions {
                replay.show(state("a", version), Some(9));
            }
            assert!(replay.lower().is_empty());
        }
    }

    #[test]
    fn only_what_two_replays_show_is_confirmed_in_its_latest_version() {
        let mut first = Replay::default();
        for name in ["a", "b"] {
            first.show(state(name, 3), Some(9));
        }
        let first: BTreeSet<_> = first.lower().into_keys().collect();
        let mut second = Replay::default();
        second.show(state("a", 3), Some(9));
        second.show(state("a", 4), Some(9));
        second.show(state("c", 1), Some(9));
        assert_eq!(confirmed(&first, second.lower()), [state("a", 4)]);
    }
}
