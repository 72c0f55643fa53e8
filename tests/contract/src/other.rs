//! Somebody other than krane, whose every answer is looked at.

use std::fmt;

use async_trait::async_trait;
use krane_domain::object::ObjectRef;
use serde_json::Value;

use crate::edits::Change;

/// A refusal as the API server gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// HTTP status.
    pub code: u16,
    /// The server's words.
    pub message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// Somebody with all rights in one cluster.
#[async_trait]
pub trait Other: Send + Sync {
    /// The whole object, as a read answers it.
    async fn read(&self, object: &ObjectRef) -> Option<Value>;
    /// Creates an object by POST.
    async fn post(&self, object: &ObjectRef, body: Value) -> Result<(), Refused>;
    /// Changes an object.
    async fn change(&self, object: &ObjectRef, change: Change) -> Result<(), Refused>;
    /// Deletes an object in the background.
    async fn remove(&self, object: &ObjectRef) -> Result<(), Refused>;
}
