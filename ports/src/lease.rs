//! The Lease, and the right to write that comes with it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::lease::{Claim, Failure, Record};

/// The Lease in krane's own namespace (D22).
#[async_trait]
pub trait Leases: Send + Sync + 'static {
    /// The Lease as it is; nothing when there is none.
    async fn read(&self) -> Result<Option<Record>, LeaseFailure>;

    /// Makes it; a conflict when there is one already.
    async fn create(&self, claim: &Claim) -> Result<Record, LeaseFailure>;

    /// Changes it; a conflict unless it has this version.
    async fn update(&self, version: &str, claim: &Claim) -> Result<Record, LeaseFailure>;
}

/// A request about the Lease that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LeaseFailure {
    /// Whether it was not done, or nobody knows.
    pub kind: Failure,
    /// The words. Never a token.
    pub text: String,
}

impl LeaseFailure {
    /// There was no answer within this time.
    pub fn no_answer(limit: Duration) -> Self {
        Self {
            kind: Failure::Unknown,
            text: format!("no answer within {limit:?}"),
        }
    }
}

/// The right of this process to write, asked for at the moment of each write.
pub trait WriteAccess: Send + Sync + fmt::Debug + 'static {
    /// Lets a write start now, if it may.
    fn permit(&self) -> Option<Box<dyn WritePermit>>;
}

/// A write that was let go. Dropped without an answer, it may still take effect some time.
#[async_trait]
pub trait WritePermit: Send + Sync {
    /// Waits until the term is over in which it was let go.
    async fn ended(&self);

    /// The API server has answered.
    fn answered(self: Box<Self>);
}
