//! A version of the store.

use bytes::Bytes;

/// What one version says.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) version: u64,
    /// The message as it goes out.
    pub(crate) message: Bytes,
    /// The message as `GetDesired…` answers it: without a version.
    pub(crate) answer: Bytes,
}
