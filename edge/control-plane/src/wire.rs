//! The control plane's protocol: messages to domain values and back.
//!
//! The only place that knows the messages. Everything that arrives is parsed here or refused
//! here; what passes has a type of the domain. One era of the protocol is one file.

mod glimpse;
mod region_key;

use bytes::Bytes;

pub use region_key::Wire;

/// An encoded request: what to call, and with which message.
#[derive(Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// The method's name, for metrics and messages.
    pub method: &'static str,
    /// The path of the method below the base URL, with a leading slash.
    pub path: &'static str,
    /// The message.
    pub body: Bytes,
}

impl std::fmt::Debug for WireRequest {
    /// Leaves out the message.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireRequest")
            .field("method", &self.method)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
