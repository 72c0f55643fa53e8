//! Desired state as it arrives: versioned, validated, about one object.

use std::fmt;

use crate::ids::{Controller, ObjectKey};
use crate::kinds::Desired;

/// What the control plane wants of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The object exists like this.
    Apply(Desired),
    /// The object is gone.
    Delete,
}

impl Change {
    /// Whether a controller can do anything about it.
    pub fn is_for(&self, controller: Controller) -> bool {
        match self {
            Self::Apply(desired) => desired.controller() == controller,
            Self::Delete => true,
        }
    }
}

/// Why a desired state can never be applied, in the words an operator needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field of the message, by its proto name.
    pub field: String,
    /// What is wrong with it. Never holds secret content.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Invalid {
    /// An invalid field with its problem and remedy.
    pub fn new(
        field: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.field, self.problem, self.remedy)
    }
}

/// One desired state, valid or not, that names its object.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The object it is about.
    pub key: ObjectKey,
    /// The control plane's version; 0 for answers to a question.
    pub version: u64,
    /// The change, or why it cannot be one.
    pub change: Result<Change, Invalid>,
    /// Size of the message in bytes, for the bound on what is kept.
    pub size: usize,
}

/// One message of a desired-state stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// A state that names its object.
    State(State),
    /// A message that names no object: nothing to apply, the cursor passes it.
    Unnamed {
        /// Its version, 0 if unreadable.
        version: u64,
        /// Why it names none.
        reason: String,
    },
}
