//! Pods that ask for their secrets: who asks, who decrypts, who answers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use async_trait::async_trait;
use krane_domain::object::Metadata;
use krane_domain::refusal::Refusal;
use krane_domain::secret::Secret;
use krane_domain::secrets::{PodIdentity, Review};

/// Who a token belongs to, and what that pod is now. Always asked live, never from a cache.
#[async_trait]
pub trait Identities: Send + Sync + 'static {
    /// A TokenReview. With an audience it is sent, and must come back.
    async fn review(&self, token: &Secret, audience: Option<&str>) -> Result<Review, Refusal>;

    /// The pod as it is now; nothing when there is none.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodIdentity>, Refusal>;

    /// Labels and uid of a ReplicaSet; nothing when there is none.
    async fn replica_set(&self, namespace: &str, name: &str) -> Result<Option<Metadata>, Refusal>;
}

/// The vault.
#[async_trait]
pub trait Vault: Send + Sync + 'static {
    /// Decrypts all of these values or none. Names to ciphertexts (base64 of an envelope) go in,
    /// the same names to plaintexts come out. One try: who calls bounds the time and decides about
    /// another one.
    async fn decrypt(
        &self,
        key_ring: &str,
        items: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>, VaultFailure>;
}

/// Why the vault decrypted nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct VaultFailure {
    /// Whether the vault answered or the way to it failed.
    pub kind: VaultFailureKind,
    /// Connect code name in snake case (`unavailable`, `invalid_argument`, …): a closed set.
    pub code: &'static str,
    /// The words with their causes. Never a token, a ciphertext or a plaintext.
    pub message: String,
}

/// Where decrypting failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultFailureKind {
    /// The vault, its store or the way to it is not well: the same call may succeed later. Counts
    /// for the breaker.
    Unavailable,
    /// The vault answered that it will not: its credentials were refused, or a value cannot be
    /// decrypted.
    Refused,
}

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

/// Who answers such requests.
#[async_trait]
pub trait SecretsDesk: Send + Sync + 'static {
    /// All secrets of the blob, by name, or none at all.
    async fn decrypt(&self, request: DecryptRequest) -> Result<BTreeMap<String, Secret>, Refused>;
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
