//! Secrets for the pods that krane runs: what the RPC port asks for, and what it is answered.

use std::collections::BTreeMap;
use std::net::IpAddr;

use async_trait::async_trait;
use krane_domain::secret::Secret;

/// A pod's request for its secrets, as it came in.
#[derive(Debug)]
pub struct DecryptRequest {
    /// JSON of a `ctrl.v1.SecretsConfig`; may be empty.
    pub blob: Vec<u8>,
    /// The environment that the caller says it is of.
    pub environment_id: String,
    /// The deployment that the caller says it is of.
    pub deployment_id: String,
    /// The caller's ServiceAccount token.
    pub token: Secret,
    /// Where the request came from, for the limit on each sender.
    pub peer: Option<IpAddr>,
}

/// Why there are no secrets in the answer: all that a caller may know (D29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// The token proves nothing, or something else than the request says.
    Unauthenticated,
    /// Too many requests, of this caller or of all.
    ResourceExhausted,
    /// Something that krane needs for the answer is not well; another try may succeed.
    Unavailable,
    /// The request can not be answered, however often it is sent.
    Internal,
}

/// Who answers such requests.
#[async_trait]
pub trait SecretsDesk: Send + Sync + 'static {
    /// All secrets of the blob, by name, or none at all.
    async fn decrypt(&self, request: DecryptRequest) -> Result<BTreeMap<String, Secret>, Refused>;
}
