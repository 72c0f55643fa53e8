//! What a full replay of the desired states shows that is older than what is known (D8).
//!
//! A control plane that was restored from a backup shows versions lower than those remembered, or
//! gives the same ones to other states. So does, for a moment, one whose answer was overtaken by the stream. Only what two replays in a
//! row show is believed. What a replay does not show is not gone: absence says nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::desired::State;
use crate::ids::ObjectKey;

/// One replay, under way.
#[derive(Debug, Default)]
pub struct Replay {
    /// Objects of which it has shown the newest version that is known.
    current: BTreeSet<ObjectKey>,
    /// The newest version of the others, older than the known one.
    older: BTreeMap<ObjectKey, State>,
}

/// How a replayed state stands to what is known of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It is newer, or nothing is known.
    Newer,
    /// It is what is known.
    Known,
    /// It is older, or another one under the same version.
    Older,
}

/// What to do with a replayed state.
#[derive(Debug, PartialEq)]
pub enum Shown {
    /// Take it in like a state of the stream: it is news.
    News(State),
    /// Nothing: it is known.
    Known,
    /// Nothing yet: it is older than what is known.
    Older,
}

impl Replay {
    /// Takes in a state that stands like this to what is known.
    pub fn show(&mut self, state: State, age: Age) -> Shown {
        let key = state.key.clone();
        match age {
            Age::Older => {
                // A control plane that keeps history shows older rows before the newest.
                let is_newest = self
                    .older
                    .get(&key)
                    .is_none_or(|shown| shown.version <= state.version);
                if is_newest && !self.current.contains(&key) {
                    self.older.insert(key, state);
                }
                Shown::Older
            }
            Age::Known => {
                if state.version > 0 {
                    self.older.remove(&key);
                    self.current.insert(key);
                }
                Shown::Known
            }
            Age::Newer => {
                self.older.remove(&key);
                self.current.insert(key);
                Shown::News(state)
            }
        }
    }

    /// Ends the replay: the objects it showed only older than known.
    pub fn older(self) -> BTreeMap<ObjectKey, State> {
        self.older
    }
}

/// What this replay and the one before it both showed older than known: it is true.
pub fn confirmed(before: &BTreeSet<ObjectKey>, older: BTreeMap<ObjectKey, State>) -> Vec<State> {
    older
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
    fn what_is_newer_is_news_and_what_is_known_is_not() {
        let mut replay = Replay::default();
        let shown = replay.show(state("a", 5), Age::Newer);
        assert_eq!(shown, Shown::News(state("a", 5)));
        assert_eq!(replay.show(state("a", 5), Age::Known), Shown::Known);
        assert!(replay.older().is_empty());
    }

    #[test]
    fn older_rows_beside_the_newest_mean_nothing_in_either_order() {
        for ages in [[Age::Older, Age::Known], [Age::Known, Age::Older]] {
            let mut replay = Replay::default();
            for age in ages {
                replay.show(state("a", 3), age);
            }
            assert!(replay.older().is_empty());
        }
    }

    #[test]
    fn only_what_two_replays_show_is_confirmed_in_its_latest_version() {
        let mut first = Replay::default();
        for name in ["a", "b"] {
            first.show(state(name, 3), Age::Older);
        }
        let first: BTreeSet<_> = first.older().into_keys().collect();
        let mut second = Replay::default();
        second.show(state("a", 3), Age::Older);
        second.show(state("a", 4), Age::Older);
        second.show(state("c", 1), Age::Older);
        assert_eq!(confirmed(&first, second.older()), [state("a", 4)]);
    }
}
