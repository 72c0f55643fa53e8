//! The Kubernetes API as the port [`Cluster`].
//!
//! Requests go out over kube's client, but answers are read here, byte by byte: kube logs the
//! whole body of an answer it cannot decode, and bodies hold what must not be logged. Retries,
//! backoff and silence on a watch belong to the actors; here every call ends, well or not.

mod access;
mod adopt;
mod apply;
mod calls;
mod connection;
mod dry;
mod events;
mod identities;
mod lease;
mod limits;
mod lines;
mod list;
mod metadata;
mod reply;
mod request;
mod transport;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use krane_domain::kinds::WatchSpec;
use krane_domain::labels::{HOLD_ANNOTATION, MANAGER, OPERATOR};
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Cluster, Deletion, Listed, WatchEvent, WriteAccess};
use serde::Deserialize;

pub use access::{ACCOUNT_FOLDER, AccessError, KubeAccess};
pub use calls::KubeCalls;
pub use connection::{ApiObserver, KubeConnection, RequestDone};
pub use events::KubeEvents;
pub use identities::KubeIdentities;
pub use lease::KubeLeases;
pub use limits::{CallLimits, CallTimeouts};
pub use metadata::{MetadataLister, ObjectMetadata};
pub use reply::Reply;
pub use request::{Call, Verb};
pub use transport::Liveness;

use reply::{json_problem, unreadable};
use request::{lease_path, object_path, push_query};

const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// The cluster behind a [`KubeConnection`], within the limits of one controller.
#[derive(Debug)]
pub struct KubeCluster {
    calls: KubeCalls,
    is_dry: bool,
}

impl KubeCluster {
    /// A cluster over this connection with limits of its own.
    pub fn new(
        connection: Arc<KubeConnection>,
        limits: CallLimits,
        timeouts: CallTimeouts,
    ) -> Self {
        Self {
            calls: KubeCalls::new(connection, limits, timeouts),
            is_dry: false,
        }
    }

    /// The same cluster, on which every write is a dry run: admitted, answered and forgotten.
    #[must_use]
    pub fn dry(self) -> Self {
        Self {
            is_dry: true,
            ..self
        }
    }

    /// The same cluster, on which no write starts unless this process may write (D22).
    #[must_use]
    pub fn led_by(self, access: Arc<dyn WriteAccess>) -> Self {
        Self {
            calls: self.calls.led_by(access),
            ..self
        }
    }

    /// The value of `dryRun` for a write.
    const fn dry_run(&self) -> &'static str {
        if self.is_dry { "All" } else { "" }
    }

    async fn run(&self, verb: Verb, object: &ObjectRef) -> Result<Reply, Refusal> {
        let call = Call::new(verb, object.resource.plural(), object_path(object)?);
        self.calls.run(&call).await
    }
}

#[async_trait]
impl Cluster for KubeCluster {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        let reference = &object.reference;
        let body = apply::body(object, uid)?;
        let mut target = object_path(reference)?;
        push_query(
            &mut target,
            &[
                ("fieldManager", MANAGER),
                ("force", "true"),
                ("fieldValidation", "Strict"),
                ("dryRun", self.dry_run()),
            ],
        );
        let call = Call::new(Verb::Apply, reference.resource.plural(), target)
            .with_body(APPLY_PATCH, body);
        let reply = self.calls.run(&call).await?;
        if !reply.is_success() {
            return Err(refusal(&reply, reference));
        }
        if self.is_dry {
            dry::decoded(reply, reference)
        } else {
            decoded(&reply, reference)
        }
    }

    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal> {
        adopt::adopt(&self.calls, object, uid, self.dry_run()).await
    }

    async fn hold(
        &self,
        object: &ObjectRef,
        uid: &str,
        until: Option<&str>,
    ) -> Result<LiveObject, Refusal> {
        let mut target = object_path(object)?;
        push_query(&mut target, &[("fieldManager", OPERATOR)]);
        let patch = serde_json::json!({
            "metadata": {"uid": uid, "annotations": {HOLD_ANNOTATION: until}},
        });
        let call = Call::new(Verb::Patch, object.resource.plural(), target)
            .with_body(MERGE_PATCH, Bytes::from(patch.to_string()));
        let reply = self.calls.run(&call).await?;
        if reply.is_success() {
            decoded(&reply, object)
        } else {
            Err(refusal(&reply, object))
        }
    }

    async fn delete(&self, object: &ObjectRef, uid: &str) -> Result<Deletion, Refusal> {
        let mut options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        });
        let mut target = object_path(object)?;
        if self.is_dry {
            // The body counts; the query is for whoever reads a log.
            options["dryRun"] = serde_json::json!([self.dry_run()]);
            push_query(&mut target, &[("dryRun", self.dry_run())]);
        }
        let call = Call::new(Verb::Delete, object.resource.plural(), target)
            .with_body(JSON, Bytes::from(options.to_string()));
        let reply = self.calls.run(&call).await?;
        if reply.is_absent(&object.name) || reply.is_uid_conflict() {
            Ok(Deletion::Gone)
        } else if reply.is_success() {
            Ok(deletion(&reply))
        } else {
            Err(refusal(&reply, object))
        }
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        let reply = self.run(Verb::Metadata, object).await?;
        if reply.is_absent(&object.name) {
            return Ok(None);
        }
        if !reply.is_success() {
            return Err(refusal(&reply, object));
        }
        let read: PartialObject = serde_json::from_slice(&reply.body).map_err(|error| {
            unreadable(reply.code, format!("{object}: {}", json_problem(&error)))
        })?;
        if read.metadata.name != *object.name {
            return Err(other_object(&reply, object));
        }
        Ok(Some(Metadata {
            uid: read.metadata.uid.into(),
            labels: read.metadata.labels.unwrap_or_default(),
            is_terminating: read.metadata.deletion_timestamp.is_some(),
        }))
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        let reply = self.run(Verb::Get, object).await?;
        if reply.is_absent(&object.name) {
            return Ok(None);
        }
        if !reply.is_success() {
            return Err(refusal(&reply, object));
        }
        decoded(&reply, object).map(Some)
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        list::list(&self.calls, spec).await
    }

    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.calls.reconnect().await?;
        list::list(&self.calls, spec).await
    }

    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        watch::watch(&self.calls, spec, resource_version).await
    }
}

#[derive(Deserialize)]
struct PartialObject {
    metadata: PartialMetadata,
}

#[derive(Deserialize)]
struct PartialMetadata {
    name: String,
    uid: String,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default, rename = "deletionTimestamp")]
    deletion_timestamp: Option<String>,
}

/// What a delete came to. An object that stays for a while is answered with its deletion time, one
/// that is gone with a status, or as it last was.
fn deletion(reply: &Reply) -> Deletion {
    match serde_json::from_slice::<PartialObject>(&reply.body) {
        Ok(object) if object.metadata.deletion_timestamp.is_some() => Deletion::Begun,
        Ok(_) | Err(_) => Deletion::Gone,
    }
}

fn decoded(reply: &Reply, object: &ObjectRef) -> Result<LiveObject, Refusal> {
    let live = LiveObject::from_slice(object.resource, &reply.body)
        .map_err(|problem| unreadable(reply.code, problem.to_string()))?;
    if live.reference == *object {
        Ok(live)
    } else {
        Err(other_object(reply, object))
    }
}

fn other_object(reply: &Reply, object: &ObjectRef) -> Refusal {
    unreadable(
        reply.code,
        format!("the answer is about another object than {object}"),
    )
}

/// A refusal about this object. What the server says about the content of a Secret may quote it.
fn refusal(reply: &Reply, object: &ObjectRef) -> Refusal {
    let mut refusal = reply.refusal();
    let is_about_content = refusal.class == RefusalClass::Permanent;
    if object.resource == Resource::Secret && is_about_content {
        refusal.message = format!("{object} was refused; the reason is withheld, it may quote it");
    }
    refusal
}
