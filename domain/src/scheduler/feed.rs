//! What one follower of the scheduler's watch is still to be told.
//!
//! Of each object only the newest state is kept, and nothing of one that came and went untold:
//! however slow the follower, it never holds more than there are objects and than it was told of,
//! and it ends with what is true.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Watched;
use crate::ids::{Controller, ObjectKey};

/// Which object is told about: names repeat between kinds.
pub type Subject = (Controller, ObjectKey);

/// The states one follower was told, and those it is to be told, in the order in which they became
/// news.
#[derive(Debug, Default)]
pub struct Feed {
    known: BTreeMap<Subject, Known>,
    due: BTreeMap<u64, Subject>,
    turns: u64,
}

#[derive(Debug)]
struct Known {
    newest: Arc<Watched>,
    /// Its place among those that are to be told.
    due: Option<u64>,
    was_told: bool,
    is_gone: bool,
}

impl Feed {
    /// This is true of the object now. Told unless it is what was told last.
    pub fn show(&mut self, controller: Controller, state: Arc<Watched>) {
        let subject = (controller, state.key().clone());
        let known = self.known.entry(subject.clone()).or_insert_with(|| Known {
            newest: Arc::clone(&state),
            due: None,
            was_told: false,
            is_gone: false,
        });
        let is_told = known.was_told && !known.is_gone && known.newest == state;
        known.newest = state;
        known.is_gone = false;
        if !is_told {
            self.tell(subject);
        }
    }

    /// The present state, as it was when the follower came: told unless something newer was shown.
    pub fn show_first(&mut self, controller: Controller, state: Arc<Watched>) {
        let subject = (controller, state.key().clone());
        if !self.known.contains_key(&subject) {
            self.show(controller, state);
        }
    }

    /// The object is gone, which is told once, and only to who was told that it is there.
    pub fn lose(&mut self, controller: Controller, last_words: Arc<Watched>) {
        let subject = (controller, last_words.key().clone());
        let Some(known) = self.known.get_mut(&subject) else {
            return;
        };
        if !known.was_told {
            if let Some(turn) = known.due {
                self.due.remove(&turn);
            }
            self.known.remove(&subject);
        } else if !std::mem::replace(&mut known.is_gone, true) {
            known.newest = last_words;
            self.tell(subject);
        }
    }

    fn tell(&mut self, subject: Subject) {
        if let Some(known) = self.known.get_mut(&subject)
            && known.due.is_none()
        {
            self.turns += 1;
            known.due = Some(self.turns);
            self.due.insert(self.turns, subject);
        }
    }

    /// What is told next, and from then on counts as told.
    pub fn take(&mut self) -> Option<Arc<Watched>> {
        let (_, subject) = self.due.pop_first()?;
        let known = self.known.get_mut(&subject)?;
        known.due = None;
        known.was_told = true;
        let state = Arc::clone(&known.newest);
        if known.is_gone {
            self.known.remove(&subject);
        }
        Some(state)
    }

    /// Objects that were shown, and are not told to be gone yet.
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.known.keys()
    }

    /// States that are to be told.
    pub fn due(&self) -> usize {
        self.due.len()
    }
}
