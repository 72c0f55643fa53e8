//! The way to the cluster.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use krane_domain::ids::Controller;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Cluster, Deletion, Item, Listed, WatchEnd, WatchEvent};
use krane_sim::cluster::SimClient;
use krane_sim::hooks::{Hooks, Op};

use super::{pause, verdict};
use crate::judge::stamp;
use crate::plan::{CallFault, EventFault, ms};
use crate::shared::{Epoch, Shared};

/// As the real adapter's.
const READ_LIMIT: Duration = Duration::from_secs(10);
const WRITE_LIMIT: Duration = Duration::from_secs(15);

/// One incarnation's way to the cluster.
#[derive(Clone)]
pub(crate) struct ClusterPort {
    epoch: Epoch,
    controller: Controller,
    client: SimClient,
}

/// A call that changes an object is under way.
struct Writing {
    shared: Arc<Shared>,
    object: String,
}

impl Writing {
    fn begin(shared: &Arc<Shared>, controller: Controller, object: &ObjectRef) -> Self {
        // Controllers do not wait for each other at a namespace that both need.
        let object = format!("{object} by {}", controller.name());
        shared.with(|ledger| ledger.begin_write(&object));
        Self {
            shared: Arc::clone(shared),
            object,
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.shared.with(|ledger| ledger.end_write(&self.object));
    }
}

impl ClusterPort {
    pub(crate) fn new(epoch: &Epoch, controller: Controller, client: SimClient) -> Self {
        Self {
            epoch: epoch.clone(),
            controller,
            client,
        }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.epoch.shared
    }

    fn note(&self, line: &str) {
        self.shared().with(|ledger| ledger.note(line));
    }

    async fn call<T>(
        &self,
        name: &'static str,
        subject: String,
        limit: Duration,
        effect: impl Future<Output = Result<T, Refusal>>,
        late: impl FnOnce() -> Option<futures::future::BoxFuture<'static, ()>>,
    ) -> Result<T, Refusal> {
        self.epoch.alive().await;
        self.note(&format!("cluster: {name} {subject}"));
        let fault = self.shared().next_cluster_call(self.controller);
        if let Some(CallFault::Late(after)) = fault
            && let Some(work) = late()
        {
            self.shared().late.lock().spawn(async move {
                pause(ms(after)).await;
                work.await;
            });
        }
        let op = Op {
            call: name,
            subject,
            number: 0,
        };
        let hooks = Hooks::default();
        if let Some(fault) = fault {
            let epoch = self.epoch.clone();
            hooks.set(move |side, op| verdict(fault, side, &epoch, |how| refusal(op, how)));
        }
        let effect = async {
            self.epoch.alive().await;
            if self.shared().is_cluster_away.load(Ordering::Relaxed) {
                return Err(reset());
            }
            effect.await
        };
        let answer = tokio::time::timeout(limit, hooks.around(&op, reset, effect)).await;
        self.epoch.alive().await;
        let answer = answer.unwrap_or_else(|_| {
            Err(Refusal {
                message: "no answer in time".to_owned(),
                ..reset()
            })
        });
        if let Err(refusal) = &answer {
            self.note(&format!("refused: {name} {} {refusal}", op.subject));
        }
        answer
    }

    /// Carries an apply out, here and now.
    async fn carry_out(
        shared: &Shared,
        controller: Controller,
        client: &SimClient,
        object: &Rendered,
        uid: Option<&str>,
    ) -> Result<LiveObject, Refusal> {
        let answer = client.apply(object, uid).await;
        shared.with(|ledger| {
            ledger.writes += 1;
            if let Ok(live) = &answer {
                ledger.applied(&shared.admin, controller, object, &live.uid);
                ledger.show(controller, &Item::Object(live.clone()));
                let version = live.resource_version;
                ledger.note(&format!("applied: {} as {version}", object.reference));
            }
        });
        answer
    }
}

#[async_trait]
impl Cluster for ClusterPort {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        let shared = self.shared();
        let _writing = Writing::begin(shared, self.controller, &object.reference);
        let stamp = stamp(&object.body).unwrap_or_default();
        let subject = format!("{} from {stamp} uid {uid:?}", object.reference);
        let effect = async {
            shared.with(|ledger| ledger.judge_apply(&shared.admin, self.controller, object, uid));
            Self::carry_out(shared, self.controller, &self.client, object, uid).await
        };
        let late = || -> Option<futures::future::BoxFuture<'static, ()>> {
            let (shared, client) = (Arc::clone(shared), self.client.clone());
            let (object, uid) = (object.clone(), uid.map(str::to_owned));
            Some(Box::pin(async move {
                shared.with(|ledger| {
                    ledger.had_late = true;
                    ledger.note("a late apply arrives");
                });
                let applied = client.apply(&object, uid.as_deref()).await;
                if let Ok(live) = applied {
                    shared.with(|ledger| {
                        ledger.made.insert(live.uid);
                        ledger.reach(&object);
                    });
                }
            }))
        };
        self.call("apply", subject, WRITE_LIMIT, effect, late).await
    }

    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal> {
        let shared = self.shared();
        let _writing = Writing::begin(shared, self.controller, object);
        let effect = async {
            shared.with(|ledger| ledger.writes += 1);
            let adopted = self.client.adopt(object, uid).await;
            if let Ok(live) = &adopted {
                let item = Item::Object(live.clone());
                shared.with(|ledger| ledger.show(self.controller, &item));
            }
            adopted
        };
        let subject = object.to_string();
        self.call("adopt", subject, WRITE_LIMIT, effect, || None)
            .await
    }

    async fn hold(
        &self,
        object: &ObjectRef,
        uid: &str,
        until: Option<&str>,
    ) -> Result<LiveObject, Refusal> {
        self.client.hold(object, uid, until).await
    }

    async fn delete(&self, object: &ObjectRef, uid: &str) -> Result<Deletion, Refusal> {
        let shared = self.shared();
        let _writing = Writing::begin(shared, self.controller, object);
        let effect = async {
            shared.with(|ledger| {
                ledger.judge_delete(&shared.admin, object, uid);
                // Policies that nobody needs go after a while, also when all is quiet.
                if object.resource == krane_domain::object::Resource::ReplicaSet {
                    ledger.writes += 1;
                }
            });
            let deletion = self.client.delete(object, uid).await?;
            shared.with(|ledger| ledger.carried_out_delete(object));
            Ok(deletion)
        };
        let late = || -> Option<futures::future::BoxFuture<'static, ()>> {
            let (shared, client) = (Arc::clone(shared), self.client.clone());
            let (object, uid) = (object.clone(), uid.to_owned());
            Some(Box::pin(async move {
                shared.with(|ledger| ledger.note("a late delete arrives"));
                let _ = client.delete(&object, &uid).await;
            }))
        };
        let subject = format!("{object} uid {uid}");
        self.call("delete", subject, WRITE_LIMIT, effect, late)
            .await
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        let effect = self.client.metadata(object);
        let subject = object.to_string();
        self.call("metadata", subject, READ_LIMIT, effect, || None)
            .await
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        let effect = self.client.get(object);
        let subject = object.to_string();
        let live = self
            .call("get", subject, READ_LIMIT, effect, || None)
            .await?;
        if let Some(live) = &live {
            let item = Item::Object(live.clone());
            self.shared()
                .with(|ledger| ledger.show(self.controller, &item));
        }
        Ok(live)
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        let effect = self.client.list(spec);
        let subject = spec.resource.plural().to_owned();
        let listed = self
            .call("list", subject, READ_LIMIT, effect, || None)
            .await?;
        self.shared()
            .with(|ledger| ledger.show_all(self.controller, &listed));
        Ok(listed)
    }

    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        let effect = self.client.list_anew(spec);
        let subject = spec.resource.plural().to_owned();
        let listed = self
            .call("list", subject, READ_LIMIT, effect, || None)
            .await?;
        self.shared()
            .with(|ledger| ledger.show_all(self.controller, &listed));
        Ok(listed)
    }

    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        let effect = self.client.watch(spec, resource_version);
        let subject = format!("{} from {resource_version}", spec.resource.plural());
        let events = self
            .call("watch", subject, READ_LIMIT, effect, || None)
            .await?;
        let way = Way {
            epoch: self.epoch.clone(),
            controller: self.controller,
            events: events.fuse().boxed(),
            queue: VecDeque::new(),
            is_over: false,
        };
        Ok(stream::unfold(way, Way::step).boxed())
    }
}

/// The events of one watch, on their way.
struct Way {
    epoch: Epoch,
    controller: Controller,
    events: BoxStream<'static, WatchEvent>,
    queue: VecDeque<WatchEvent>,
    is_over: bool,
}

impl Way {
    async fn step(mut self) -> Option<(WatchEvent, Self)> {
        if self.queue.is_empty() && !self.is_over {
            self.fetch().await?;
        }
        let event = self.queue.pop_front()?;
        self.epoch.alive().await;
        self.is_over = matches!(event, WatchEvent::Ended(_));
        self.epoch.shared.with(|ledger| match &event {
            WatchEvent::Applied(item) => {
                ledger.show(self.controller, item);
                ledger.note(&format!("event: applied {}", name(item)));
            }
            WatchEvent::Deleted(item) => ledger.note(&format!("event: deleted {}", name(item))),
            WatchEvent::Bookmark(_) | WatchEvent::Undecodable(_) => {}
            WatchEvent::Ended(end) => ledger.note(&format!("event: ended {end:?}")),
        });
        Some((event, self))
    }

    /// Puts what arrives next into the queue.
    async fn fetch(&mut self) -> Option<()> {
        let event = self.events.next().await?;
        self.epoch.alive().await;
        let is_object = matches!(event, WatchEvent::Applied(_) | WatchEvent::Deleted(_));
        let fault = is_object
            .then(|| self.epoch.shared.next_event(self.controller))
            .flatten();
        match fault {
            None => self.queue.push_back(event),
            Some(EventFault::Delay(time)) => {
                pause(ms(time)).await;
                self.queue.push_back(event);
            }
            Some(EventFault::Repeat) => self.queue.extend([event.clone(), event]),
            Some(EventFault::Swap) => {
                let next = self.events.next().now_or_never().flatten();
                match next {
                    // The server tells of one object in order, always.
                    Some(next) if is_about_another(&event, &next) => {
                        self.queue.extend([next, event]);
                    }
                    next => self.queue.extend([event].into_iter().chain(next)),
                }
            }
            Some(EventFault::Break) => {
                let text = "the connection was reset".to_owned();
                self.queue
                    .push_back(WatchEvent::Ended(WatchEnd::Failed(text)));
            }
            Some(EventFault::Silence) => std::future::pending().await,
            Some(EventFault::Gap(more)) => {
                for _ in 0..more {
                    self.events.next().now_or_never();
                }
                self.queue.push_back(WatchEvent::Ended(WatchEnd::Expired));
            }
        }
        Some(())
    }
}

fn is_about_another(event: &WatchEvent, next: &WatchEvent) -> bool {
    match (event, next) {
        (
            WatchEvent::Applied(event) | WatchEvent::Deleted(event),
            WatchEvent::Applied(next) | WatchEvent::Deleted(next),
        ) => identity(event) != identity(next),
        _ => false,
    }
}

fn identity(item: &Item) -> (&str, &str) {
    match item {
        Item::Object(live) => (&live.reference.namespace, &live.reference.name),
        Item::Pod(pod) => (&pod.namespace, &pod.name),
    }
}

fn name(item: &Item) -> String {
    match item {
        Item::Object(live) => format!("{} as {}", live.reference, live.resource_version),
        Item::Pod(pod) => format!("pod {} as {}", pod.name, pod.resource_version),
    }
}

fn reset() -> Refusal {
    Refusal {
        class: RefusalClass::Transient,
        code: 0,
        message: "the connection was reset".to_owned(),
        retry_after: None,
    }
}

fn refusal(op: &Op, how: u8) -> Refusal {
    // Only what is written into a namespace can miss it.
    let has_namespace = op.call == "apply" && !op.subject.starts_with("Namespace");
    let how = if how % 8 == 7 && !has_namespace {
        0
    } else {
        how
    };
    let (class, code, wait) = match how % 8 {
        0 => (RefusalClass::Transient, 500, None),
        1 => (RefusalClass::Transient, 503, None),
        2 => (RefusalClass::Transient, 429, Some(Duration::from_secs(1))),
        3 => (RefusalClass::Permanent, 422, None),
        4 => (RefusalClass::Configuration, 403, None),
        5 => (RefusalClass::Reevaluate, 409, None),
        6 => (RefusalClass::Unauthenticated, 401, None),
        _ => (RefusalClass::NamespaceMissing, 404, None),
    };
    Refusal {
        class,
        code,
        message: "as planned".to_owned(),
        retry_after: wait,
    }
}
