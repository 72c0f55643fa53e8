//! Desired state as it arrives: versioned, validated, about one object.

use crate::ids::{Controller, ObjectKey};
use crate::invalid::Invalid;
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
