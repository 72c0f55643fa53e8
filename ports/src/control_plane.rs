//! The control plane.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::desired::{Change, StreamItem};
use krane_domain::ids::ObjectKey;
use krane_domain::invalid::Invalid;
use krane_domain::report::Report;

/// The control plane, as one controller sees it over a connection of its own.
#[async_trait]
pub trait ControlPlane: Send + Sync + 'static {
    /// Opens the desired-state stream after `cursor`. Never waits for response headers: a healthy
    /// idle stream may send none for hours. Everything, failure to open included, comes as items
    /// of the stream; it ends after its first [`StreamEvent::Ended`].
    async fn watch(&self, cursor: u64) -> BoxStream<'static, StreamEvent>;

    /// Asks what is wanted of one object now.
    async fn desired(&self, question: &Question) -> Result<Answer, RpcFailure>;

    /// Delivers a report.
    async fn report(&self, report: &Report) -> Result<(), RpcFailure>;

    /// Says that this region is alive.
    async fn heartbeat(&self) -> Result<(), RpcFailure>;
}

/// What happens on a desired-state stream.
#[derive(Debug)]
pub enum StreamEvent {
    /// The call has been pending for a second on a connected channel, or an item arrived.
    Opened,
    /// One message.
    Item(StreamItem),
    /// The stream is over; nothing follows.
    Ended(StreamEnd),
}

/// Why a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEnd {
    /// gRPC code name in snake case (`unavailable`, …); `ok` for a clean end.
    pub code: &'static str,
    /// The message with its causes. Never a token.
    pub message: String,
    /// Whether a message was over the size limit and so can never be received.
    pub is_oversize: bool,
}

/// Which object a question is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The object.
    pub key: ObjectKey,
    /// Its control-plane id, never empty.
    pub id: Arc<str>,
}

/// The control plane's answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It wants this.
    State {
        /// The object the answer names; must be the one asked about.
        key: ObjectKey,
        /// What is wanted, or why it is invalid.
        change: Result<Change, Invalid>,
    },
    /// It knows no such object: a real gRPC status `NOT_FOUND`.
    NotFound,
    /// The answer says nothing (no case set, unknown case).
    Empty,
}

/// A call to the control plane that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct RpcFailure {
    /// Whether the server answered or the way to it failed.
    pub kind: RpcFailureKind,
    /// gRPC code name in snake case.
    pub code: &'static str,
    /// The message with its causes. Never a token.
    pub message: String,
}

/// Where a failed call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcFailureKind {
    /// The way to the server: refused, reset, timed out, no HTTP/2. Counts for the breaker.
    Transport,
    /// The server itself answered with an error.
    Answered,
}
