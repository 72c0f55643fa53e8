//! What the actors need from the world. Each trait has a real adapter in `krane`'s `edge`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::desired::{Change, StreamItem};
use krane_domain::ids::ObjectKey;
use krane_domain::invalid::Invalid;
use krane_domain::kinds::{Password, WatchSpec};
use krane_domain::lease::{Claim, Failure, Record};
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered};
use krane_domain::pod::PodDigest;
use krane_domain::refusal::Refusal;
use krane_domain::report::Report;
use krane_domain::secret::Secret;
use krane_domain::secrets::{PodIdentity, Review};

use crate::notices::Notice;

/// No request to the cluster takes longer, its wait for a turn left out (D49): more than the API
/// server itself gives to a write with webhooks that do not answer.
pub const LONGEST_CALL: Duration = Duration::from_secs(65);

/// How the webhooks are found that make writes slow.
pub const WEBHOOKS: &str =
    "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations lists them";

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

/// How far a delete got that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// No object with that uid is there any more.
    Gone,
    /// It goes once its finalizers or its grace period let it; a watch shows when.
    Begun,
}

/// The Kubernetes cluster.
#[async_trait]
pub trait Cluster: Send + Sync + 'static {
    /// Server-side apply as manager `krane`, forced. With `uid` the object must be that one; of an
    /// existing object it must be the version that the rendering was made for, if it was for one.
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal>;

    /// Moves what others own in the exclusive parts of the object with this uid to krane's own
    /// entry ([`krane_domain::drift::adopted`]). Changes no value. Returns the object as it then
    /// is.
    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal>;

    /// Puts the object with this uid on hold until then, or ends that: a person's word, in a field
    /// that krane itself never writes (D22c). `until` is RFC 3339. Returns the object as it then
    /// is.
    async fn hold(
        &self,
        object: &ObjectRef,
        uid: &str,
        until: Option<&str>,
    ) -> Result<LiveObject, Refusal>;

    /// Deletes the object with this uid, in the background. Absent is a success.
    async fn delete(&self, object: &ObjectRef, uid: &str) -> Result<Deletion, Refusal>;

    /// Labels and uid of an object, whoever owns it.
    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal>;

    /// The object as it is now.
    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal>;

    /// All objects of a watch, consistent at one resource version.
    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal>;

    /// The same over a new connection: another server may answer.
    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal>;

    /// Events after `resource_version`. Ends after an [`WatchEvent::Ended`].
    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal>;
}

/// Everything a list found.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The objects, in no particular order.
    pub items: Vec<Item>,
    /// Items that could not be understood, for the log and a counter.
    pub undecodable: Vec<String>,
    /// Where a watch goes on.
    pub resource_version: String,
}

/// An object a watch tells about.
#[derive(Clone, Debug)]
pub enum Item {
    /// An object krane writes.
    Object(LiveObject),
    /// A pod, cut down.
    Pod(PodDigest),
}

/// One event of a cluster watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object is there, new or changed.
    Applied(Item),
    /// The object left the watch: it is gone, or our label is.
    Deleted(Item),
    /// Nothing changed up to this resource version.
    Bookmark(String),
    /// An event could not be understood; the watch goes on.
    Undecodable(String),
    /// The watch is over; nothing follows.
    Ended(WatchEnd),
}

/// Why a cluster watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// The server closed it, as it does every few minutes.
    Closed,
    /// The resource version is no longer known (410): list again.
    Expired,
    /// It failed; the text says how.
    Failed(String),
}

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

/// Events of the cluster, for people who look there.
#[async_trait]
pub trait EventSink: Send + Sync + 'static {
    /// Makes an Event. Returns its name.
    async fn create(&self, notice: &Notice) -> Result<Arc<str>, Refusal>;

    /// What the Event of this name says has happened again, so often by now. `false`: there is no
    /// such Event any more.
    async fn recur(&self, notice: &Notice, event: &str, count: u32) -> Result<bool, Refusal>;
}

/// Gives the password of the registry in force: its file may have changed. It never blocks.
pub type PasswordSource = Arc<dyn Fn() -> Password + Send + Sync>;

/// The clock on the wall.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Seconds since the Unix epoch, for what people read and for holds.
    fn unix_seconds(&self) -> u64;
}

/// Work of a server that the tree owns: it runs until told to stop or until it fails.
#[async_trait]
pub trait Server: Send + Sync + 'static {
    /// Serves until `stop` is cancelled. Called again after a failure.
    async fn serve(&self, stop: tokio_util::sync::CancellationToken) -> Result<(), String>;
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
