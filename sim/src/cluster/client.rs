//! krane's way into the simulated cluster: the port, with faults on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::drift;
use krane_domain::kinds::WatchSpec;
use krane_domain::labels::{HOLD_ANNOTATION, MANAGER, OPERATOR};
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered};
use krane_domain::refusal::{Refusal, RefusalClass, classify};
use krane_ports::{self, Cluster, Item, Listed, WatchEvent};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::deliveries::{Deliveries, deliver};
use super::patches;
use super::refusals::{self, Status};
use super::requests::Deletion;
use super::selectors::Selector;
use super::store::{Key, Version};
use super::view::{Lag, View};
use super::watch;
use super::world::World;
use crate::hooks::{Hooks, Op};

/// Largest request body the API server reads, in bytes.
const LARGEST_BODY: usize = 3 << 20;

/// One client of the cluster. Clones share hooks, view and count of calls.
///
/// A process that is killed is a client whose hook hangs every call: nothing of it reaches the
/// cluster any more, and the next process gets a client of its own.
#[derive(Clone)]
pub struct SimClient {
    world: Arc<Mutex<World>>,
    hooks: Hooks<Refusal>,
    deliveries: Deliveries,
    view: View,
    watch_limit: Duration,
    calls: Arc<AtomicU64>,
}

impl SimClient {
    pub(super) fn new(world: Arc<Mutex<World>>) -> Self {
        Self {
            world,
            hooks: Hooks::default(),
            deliveries: Deliveries::default(),
            view: View::new(),
            watch_limit: Duration::from_secs(80),
            calls: Arc::default(),
        }
    }

    /// The same client whose watches the server closes after this time.
    #[must_use]
    pub fn with_watch_limit(mut self, limit: Duration) -> Self {
        self.watch_limit = limit;
        self
    }

    /// What is asked about every call, before it reaches the cluster and before it is answered.
    ///
    /// Calls are `apply`, `adopt`, `delete`, `metadata`, `get`, `list` and `watch`, and an adopt
    /// begins with a `metadata`; their subject is the
    /// object, or the plural of the kind that is listed or watched.
    pub fn hooks(&self) -> &Hooks<Refusal> {
        &self.hooks
    }

    /// What is asked about every event of a watch.
    pub fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// Lets reads and watches be answered by a server that is behind; writes go where they must.
    pub fn set_lag(&self, lag: Lag) {
        self.view.set(lag);
    }

    fn op(&self, call: &'static str, subject: String) -> Op {
        Op {
            call,
            subject,
            number: self.calls.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(super) async fn call<T: Send>(
        &self,
        call: &'static str,
        subject: String,
        effect: impl FnOnce(&mut World) -> Result<T, Status> + Send,
    ) -> Result<T, Refusal> {
        let op = self.op(call, subject);
        let effect = async {
            let mut world = self.world.lock();
            effect(&mut world).map_err(|status| classify(&status))
        };
        self.hooks.around(&op, lost, effect).await
    }

    /// The object as this client's server knows it.
    fn read(&self, world: &World, key: &Key) -> Result<Option<Arc<Version>>, Status> {
        let live = world.live(key)?;
        let newest = world.store.version();
        let horizon = self.view.horizon(newest);
        if horizon >= newest || horizon < world.store.oldest() {
            return Ok(live);
        }
        Ok(world.store.get_as_of(key, horizon))
    }

    fn list_now(&self, world: &World, spec: &WatchSpec) -> Result<Listed, Status> {
        let horizon = self.view.horizon(world.store.version());
        Self::list_as_of(world, spec, horizon)
    }

    fn list_as_of(world: &World, spec: &WatchSpec, horizon: u64) -> Result<Listed, Status> {
        let selector = Selector::parse(spec)?;
        let kind = spec.resource.kind();
        world.live(&Key::new(kind, "", ""))?;
        let newest = world.store.version();
        let horizon = horizon.max(world.store.oldest());
        let objects = if horizon >= newest {
            let objects = world.store.of_kind(kind, spec.namespace);
            objects.map(|(_, version)| Arc::clone(version)).collect()
        } else {
            let objects = world.store.of_kind_as_of(kind, spec.namespace, horizon);
            objects
                .into_iter()
                .map(|(_, version)| version)
                .collect::<Vec<_>>()
        };
        let mut listed = Listed {
            resource_version: horizon.to_string(),
            ..Listed::default()
        };
        for version in objects.iter().filter(|version| selector.matches(version)) {
            match version.item(spec.resource) {
                Ok(item) => listed.items.push(item),
                Err(problem) => listed.undecodable.push(problem.to_string()),
            }
        }
        Ok(listed)
    }
}

#[async_trait]
impl Cluster for SimClient {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        let reference = &object.reference;
        let body = body(object, uid)?;
        let key = Key::of(reference);
        let live = |version: &Version| live(version, reference);
        self.call("apply", reference.to_string(), |world| {
            let applied = world.apply(&key, &body, MANAGER, true)?;
            Ok(live(&applied))
        })
        .await?
    }

    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal> {
        let key = Key::of(object);
        let read = |world: &mut World| {
            let found = self.read(world, &key)?;
            found.ok_or_else(|| refusals::not_found(key.kind(), &key.name))
        };
        let found = self.call("metadata", object.to_string(), read).await?;
        let entries = found.object.managers.to_json();
        let entries = entries.as_array().map_or(&[][..], Vec::as_slice);
        let adopted = drift::adopted(object.resource, entries);
        let Some(adopted) = adopted.filter(|_| found.uid() == uid) else {
            return Err(Refusal {
                class: RefusalClass::Reevaluate,
                code: 0,
                message: format!("{object} has changed since it was looked at"),
                retry_after: None,
            });
        };
        let version = found.resource_version.to_string();
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/metadata/managedFields", "value": adopted},
        ]);
        let changed = self
            .call("adopt", object.to_string(), |world| {
                world.modify(&key, MANAGER, "", |mut live| {
                    patches::json(&mut live, &patch)?;
                    Ok(live)
                })
            })
            .await?;
        live(&changed, object)
    }

    async fn hold(
        &self,
        object: &ObjectRef,
        uid: &str,
        until: Option<&str>,
    ) -> Result<LiveObject, Refusal> {
        let key = Key::of(object);
        let patch = json!({"metadata": {"uid": uid, "annotations": {HOLD_ANNOTATION: until}}});
        let held = self.call("hold", object.to_string(), |world| {
            world.modify(&key, OPERATOR, "", |mut live| {
                patches::merge(&mut live, &patch);
                Ok(live)
            })
        });
        let held = held.await?;
        live(&held, object)
    }

    async fn delete(
        &self,
        object: &ObjectRef,
        uid: &str,
    ) -> Result<krane_ports::Deletion, Refusal> {
        let deletion = Deletion {
            uid: Some(uid.into()),
            ..Deletion::default()
        };
        let key = Key::of(object);
        self.call("delete", object.to_string(), |world| {
            match world.delete(&key, &deletion) {
                Err(status) if is_gone(&status) => return Ok(krane_ports::Deletion::Gone),
                answer => answer?,
            }
            let left = world.store.get(&key).filter(|left| *left.uid() == *uid);
            Ok(match left {
                Some(_) => krane_ports::Deletion::Begun,
                None => krane_ports::Deletion::Gone,
            })
        })
        .await
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        let key = Key::of(object);
        self.call("metadata", object.to_string(), |world| {
            Ok(self.read(world, &key)?.map(|version| metadata(&version)))
        })
        .await
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        let key = Key::of(object);
        let version = self
            .call("get", object.to_string(), |world| self.read(world, &key))
            .await?;
        version.map(|version| live(&version, object)).transpose()
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.call("list", spec.resource.plural().to_owned(), |world| {
            self.list_now(world, spec)
        })
        .await
    }

    /// Only the server at the other end of the old connections lags behind.
    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.call("list", spec.resource.plural().to_owned(), |world| {
            Self::list_as_of(world, spec, world.store.version())
        })
        .await
    }

    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        let op = self.op("watch", spec.resource.plural().to_owned());
        let open = async {
            let limit = self.watch_limit;
            watch::open(&self.world, &self.view, spec, resource_version, limit)
                .map_err(|status| classify(&status))
        };
        let stream = self.hooks.around(&op, lost, open).await?;
        Ok(deliver(stream, self.deliveries.clone(), op))
    }
}

/// What an answer that never came looks like.
fn lost() -> Refusal {
    Refusal {
        class: RefusalClass::Transient,
        code: 0,
        message: "the connection was reset".to_owned(),
        retry_after: None,
    }
}

/// As the real adapter sends it, or refuses to.
fn body(object: &Rendered, uid: Option<&str>) -> Result<Value, Refusal> {
    let reference = &object.reference;
    let refused = |message: String| Refusal {
        class: RefusalClass::Permanent,
        code: 0,
        message,
        retry_after: None,
    };
    let mut segments = vec![&*reference.name];
    if reference.resource.is_namespaced() {
        segments.push(&*reference.namespace);
    }
    if segments
        .iter()
        .any(|segment| matches!(*segment, "" | "." | ".."))
    {
        let message = format!("{reference} is no Kubernetes object; not sent");
        return Err(refused(message));
    }
    let mut body = object.body.clone();
    if let Some(uid) = uid {
        body["metadata"]["uid"] = json!(uid);
    }
    if let Some(version) = object.made_for {
        body["metadata"]["resourceVersion"] = json!(version.to_string());
    }
    let size = refusals::text_length(&body);
    if size > LARGEST_BODY {
        let text = format!(
            "{reference} was not sent: its manifest of {size} bytes is over the API server's limit \
             of {LARGEST_BODY}"
        );
        return Err(refused(text));
    }
    Ok(body)
}

fn live(version: &Version, object: &ObjectRef) -> Result<LiveObject, Refusal> {
    let problem = match version.item(object.resource) {
        Ok(Item::Object(live)) => return Ok(live),
        Ok(Item::Pod(_)) => "a pod is only told as a digest".to_owned(),
        Err(problem) => problem.to_string(),
    };
    Err(unreadable(problem))
}

/// An answer that came and makes no sense.
pub(super) fn unreadable(problem: String) -> Refusal {
    Refusal {
        class: RefusalClass::Transient,
        code: 200,
        message: problem,
        retry_after: None,
    }
}

fn metadata(version: &Version) -> Metadata {
    let labels = version.metadata("labels").as_object().into_iter().flatten();
    Metadata {
        uid: version.uid().into(),
        labels: labels
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        is_terminating: version.is_terminating(),
    }
}

/// Whether a delete found nothing to do.
fn is_gone(status: &Status) -> bool {
    let is_absent = status.code == 404 && status.reason == "NotFound";
    is_absent || (status.code == 409 && status.message.contains("UID in the precondition"))
}
