//! Why a test cannot go on.

use std::{error::Error, fmt};

/// What tests and their helpers return.
pub type Outcome<T = ()> = Result<T, Failure>;

/// A sentence with all its causes. Its `Debug` is its `Display`: that is what the test harness prints.
pub struct Failure(String);

impl Failure {
    /// A failure with these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut words = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            words.push_str(": ");
            words.push_str(&cause.to_string());
            next = cause.source();
        }
        Self(words)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
