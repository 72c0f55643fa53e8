//! What is wrong with a desired state.

use std::fmt;

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
