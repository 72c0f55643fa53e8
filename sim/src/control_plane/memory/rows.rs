//! What the control plane wants: one row per object, the newest.

use std::collections::BTreeMap;

use krane_domain::desired::{State, StreamItem};
use krane_domain::ids::ObjectKey;
use krane_ports::Answer;

/// In which order a stream gets the rows that are there at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By version, each once.
    #[default]
    ByVersion,
    /// By version, each twice in a row.
    Twice,
    /// The newest first.
    Reversed,
    /// As the seed says.
    Shuffled,
}

impl Order {
    pub(super) fn put<T: Clone>(self, rows: &mut Vec<T>, chance: &mut fastrand::Rng) {
        match self {
            Self::ByVersion => {}
            Self::Twice => {
                let twice = rows.drain(..).flat_map(|row| [row.clone(), row]).collect();
                *rows = twice;
            }
            Self::Reversed => rows.reverse(),
            Self::Shuffled => chance.shuffle(rows),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    newest: u64,
    by_version: BTreeMap<u64, StreamItem>,
    /// Version of the newest row of each object.
    by_key: BTreeMap<ObjectKey, u64>,
    pub(super) keeps_history: bool,
}

impl Rows {
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// A state of version 0 gets the next one. Its version.
    pub(super) fn insert(&mut self, mut state: State) -> u64 {
        if state.version == 0 {
            state.version = self.newest + 1;
        }
        let version = state.version;
        self.newest = self.newest.max(version);
        let former = self.by_key.insert(state.key.clone(), version);
        if let Some(former) = former.filter(|_| !self.keeps_history) {
            self.by_version.remove(&former);
        }
        self.by_version.insert(version, StreamItem::State(state));
        version
    }

    pub(super) fn insert_unnamed(&mut self, reason: &str) -> u64 {
        self.newest += 1;
        let row = StreamItem::Unnamed {
            version: self.newest,
            reason: reason.to_owned(),
        };
        self.by_version.insert(self.newest, row);
        self.newest
    }

    /// As if it had never been.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        if let Some(version) = self.by_key.remove(key) {
            self.by_version.remove(&version);
        }
    }

    pub(super) fn after(&self, cursor: u64) -> Vec<(u64, StreamItem)> {
        let following = cursor.saturating_add(1)..;
        self.by_version
            .range(following)
            .map(|(version, row)| (*version, row.clone()))
            .collect()
    }

    /// What the newest row says of an object.
    pub(super) fn answer(&self, key: &ObjectKey) -> Answer {
        let row = self
            .by_key
            .get(key)
            .and_then(|version| self.by_version.get(version));
        match row {
            Some(StreamItem::State(state)) => Answer::State {
                key: state.key.clone(),
                change: state.change.clone(),
            },
            Some(StreamItem::Unnamed { .. }) | None => Answer::NotFound,
        }
    }
}
