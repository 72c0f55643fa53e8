//! The rows of one kind, and the answers a test has set.

use std::collections::BTreeMap;

use bytes::Bytes;
use tonic::Code;

use super::row::Row;

/// What `GetDesired…` says about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This message, bytes as they are.
    Message(Bytes),
    /// A state with no case set.
    Empty,
    /// This status.
    Code(Code),
    /// Nothing, for as long as the client waits.
    Silence,
}

/// The rows of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    newest: u64,
    rows: BTreeMap<u64, Row>,
    /// Version of the newest row of each object.
    by_key: BTreeMap<String, u64>,
    /// The object with this id, whatever became of it.
    by_id: BTreeMap<String, String>,
    answers: BTreeMap<String, Answer>,
    pub(crate) keeps_history: bool,
}

impl Store {
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    pub(crate) fn next_version(&self) -> u64 {
        self.newest + 1
    }

    pub(crate) fn insert(&mut self, row: Row, key: Option<String>, id: Option<&str>) {
        self.newest = self.newest.max(row.version);
        if let Some(key) = key {
            if let Some(id) = id {
                self.by_id.insert(id.to_owned(), key.clone());
            }
            let former = self.by_key.insert(key, row.version);
            if let Some(former) = former.filter(|_| !self.keeps_history) {
                self.rows.remove(&former);
            }
        }
        self.rows.insert(row.version, row);
    }

    /// The rows that follow `cursor`, in order.
    pub(crate) fn page(&self, cursor: u64, size: usize) -> Vec<Row> {
        let following = cursor.saturating_add(1)..;
        self.rows
            .range(following)
            .take(size)
            .map(|(_, row)| row.clone())
            .collect()
    }

    /// Forgets an object as if it had never been: neither a row nor an answer is left.
    pub(crate) fn forget(&mut self, id: &str) {
        self.answers.remove(id);
        if let Some(version) = self
            .by_id
            .remove(id)
            .and_then(|key| self.by_key.remove(&key))
        {
            self.rows.remove(&version);
        }
    }

    pub(crate) fn set_answer(&mut self, id: &str, answer: Option<Answer>) {
        match answer {
            Some(answer) => self.answers.insert(id.to_owned(), answer),
            None => self.answers.remove(id),
        };
    }

    pub(crate) fn answer(&self, id: &str) -> Answer {
        if let Some(answer) = self.answers.get(id) {
            return answer.clone();
        }
        let version = self.by_id.get(id).and_then(|key| self.by_key.get(key));
        match version.and_then(|version| self.rows.get(version)) {
            Some(row) => Answer::Message(row.answer.clone()),
            None => Answer::Code(Code::NotFound),
        }
    }
}
