//! The Kubernetes cluster.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered};
use krane_domain::pod::PodDigest;
use krane_domain::refusal::Refusal;

/// No request to the cluster takes longer, its wait for a turn left out (D49): more than the API
/// server itself gives to a write with webhooks that do not answer.
pub const LONGEST_CALL: Duration = Duration::from_secs(65);

/// How the webhooks are found that make writes slow.
pub const WEBHOOKS: &str =
    "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations lists them";

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
