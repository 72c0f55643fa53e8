//! A small cluster.

mod backup;
mod faults;
mod finalizers;
mod scale;
mod views;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered, Resource};
use krane_domain::pod::{PodDigest, PodPhase};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Cluster, Deletion, Item, Listed, WatchEnd, WatchEvent};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub(crate) use self::faults::{forbidden, unavailable};
pub(crate) use self::views::Past;
use self::views::Sight;

/// A call the cluster took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Apply(ObjectRef),
    Adopt(ObjectRef),
    Delete(ObjectRef),
    Metadata(ObjectRef),
    Get(ObjectRef),
}

/// What happens to a call: nothing special, a refusal, or no answer ever.
pub(crate) enum Fault {
    Refuse(RefusalClass),
    Hang,
    /// A refusal for a passing reason, after this time.
    Late(Duration),
    /// The call has its effect, the answer is lost.
    LoseAnswer,
    /// Somebody sets the number of pods of this workload just before the call takes effect.
    Scale(ObjectRef, u64),
    /// Somebody deletes this object and makes it again just before the call takes effect.
    Replace(ObjectRef),
}

type Faults = Box<dyn FnMut(&Op) -> Option<Fault> + Send>;

#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
#[derive(Default)]
struct World {
    version: u64,
    uids: u64,
    objects: BTreeMap<ObjectRef, LiveObject>,
    pods: BTreeMap<Arc<str>, PodDigest>,
    watchers: Vec<(Resource, mpsc::UnboundedSender<WatchEvent>)>,
    is_silent: bool,
    silent: Vec<(Resource, mpsc::UnboundedSender<WatchEvent>)>,
    history: Vec<(u64, Resource, WatchEvent)>,
    /// Watches from an earlier version are told to list.
    oldest: u64,
    log: Vec<Op>,
    faults: Option<Faults>,
    lists_fail: bool,
    /// A kind of which no list works, and how long the server asks to wait.
    refused_list: Option<(Resource, Duration)>,
    /// Kinds of which no watch is opened, and what is answered.
    refused_watches: Option<(Vec<Resource>, Refusal)>,
    lists: usize,
    /// When each kind was listed or watched.
    looks: Vec<(Resource, Instant)>,
    sight: Sight,
    missing: Vec<Resource>,
    forbidden: BTreeSet<Resource>,
    finalized: BTreeSet<ObjectRef>,
    call_time: Duration,
    calls: usize,
    most_calls: usize,
    watch_panics: bool,
    apply_panics: bool,
}

/// A cluster in memory with just enough of an API server.
#[derive(Clone, Default)]
pub(crate) struct FakeCluster {
    world: Arc<Mutex<World>>,
}

impl FakeCluster {
    pub(crate) fn fault(&self, faults: impl FnMut(&Op) -> Option<Fault> + Send + 'static) {
        self.world.lock().faults = Some(Box::new(faults));
    }

    pub(crate) fn heal(&self) {
        self.world.lock().faults = None;
    }

    pub(crate) fn set_call_time(&self, time: Duration) {
        self.world.lock().call_time = time;
    }

    pub(crate) fn lists(&self) -> usize {
        self.world.lock().lists
    }

    pub(crate) fn log(&self) -> Vec<Op> {
        self.world.lock().log.clone()
    }

    pub(crate) fn writes(&self) -> usize {
        let world = self.world.lock();
        world
            .log
            .iter()
            .filter(|op| matches!(op, Op::Apply(_) | Op::Adopt(_) | Op::Delete(_)))
            .count()
    }

    pub(crate) fn workload(&self, namespace: &str, name: &str) -> Option<LiveObject> {
        self.object(&ObjectRef::new(Resource::ReplicaSet, namespace, name))
    }

    pub(crate) fn object(&self, reference: &ObjectRef) -> Option<LiveObject> {
        self.world.lock().objects.get(reference).cloned()
    }

    /// Every object and its uid.
    pub(crate) fn uids(&self) -> BTreeMap<ObjectRef, Arc<str>> {
        let world = self.world.lock();
        let objects = world.objects.iter();
        objects
            .map(|(reference, live)| (reference.clone(), Arc::clone(&live.uid)))
            .collect()
    }

    pub(crate) fn pods(&self) -> Vec<String> {
        self.world
            .lock()
            .pods
            .keys()
            .map(ToString::to_string)
            .collect()
    }

    pub(crate) fn workloads(&self) -> usize {
        let world = self.world.lock();
        world
            .objects
            .keys()
            .filter(|key| key.resource == Resource::ReplicaSet)
            .count()
    }

    /// Somebody deletes an object by hand.
    pub(crate) fn remove(&self, reference: &ObjectRef) {
        let mut world = self.world.lock();
        world.delete(reference);
    }

    /// Somebody puts an object there, whatever was there before.
    pub(crate) fn put(&self, rendered: &Rendered, edit: impl FnOnce(&mut serde_json::Value)) {
        let mut rendered = rendered.clone();
        let mut world = self.world.lock();
        let uid = match world.objects.get(&rendered.reference) {
            Some(known) => Arc::clone(&known.uid),
            None => world.next_uid(),
        };
        edit(&mut rendered.body);
        world.store(&rendered, &uid);
    }

    /// A pod of a workload appears or changes.
    pub(crate) fn set_pod(&self, namespace: &str, workload: &str, pod: &str, ready: bool) {
        self.set_pod_of(namespace, workload, pod, ready, None);
    }

    /// The same, with the template the pod was made from.
    pub(crate) fn set_pod_of(
        &self,
        namespace: &str,
        workload: &str,
        pod: &str,
        ready: bool,
        template: Option<&str>,
    ) {
        let mut world = self.world.lock();
        let reference = ObjectRef::new(Resource::ReplicaSet, namespace, workload);
        let owner = world
            .objects
            .get(&reference)
            .map(|live| Arc::clone(&live.uid));
        world.version += 1;
        let digest = PodDigest {
            namespace: namespace.into(),
            name: pod.into(),
            uid: format!("uid-{pod}").into(),
            resource_version: world.version,
            created_at: 0,
            owner,
            phase: PodPhase::Running,
            is_ready: ready,
            is_terminating: false,
            ip: Some("10.0.0.7".into()),
            cpu_millicores: 100,
            memory_mib: 64,
            template: template.map(Into::into),
            sentinel_id: None,
            config_error: None,
        };
        world.pods.insert(pod.into(), digest.clone());
        world.tell(Resource::Pod, &WatchEvent::Applied(Item::Pod(digest)));
    }

    async fn call(&self, op: Op) -> Result<bool, Refusal> {
        let (fault, time) = {
            let mut world = self.world.lock();
            world.log.push(op.clone());
            world.calls += 1;
            world.most_calls = world.most_calls.max(world.calls);
            let fault = world.faults.as_mut().and_then(|faults| faults(&op));
            (fault, world.call_time)
        };
        crate::testing::pass(time).await;
        self.world.lock().calls -= 1;
        match fault {
            None => Ok(true),
            Some(Fault::Refuse(class)) => Err(refusal(class)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Late(time)) => {
                crate::testing::pass(time).await;
                Err(refusal(RefusalClass::Transient))
            }
            Some(Fault::LoseAnswer) => Ok(false),
            Some(Fault::Scale(workload, replicas)) => {
                self.scale(&workload, replicas);
                Ok(true)
            }
            Some(Fault::Replace(object)) => {
                self.replace(&object);
                Ok(true)
            }
        }
    }
}

fn refusal(class: RefusalClass) -> Refusal {
    Refusal {
        class,
        code: 500,
        message: "as the test wants it".to_owned(),
        retry_after: None,
    }
}

#[async_trait]
impl Cluster for FakeCluster {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        let is_answered = self.call(Op::Apply(object.reference.clone())).await?;
        let live = {
            let mut world = self.world.lock();
            assert!(
                !std::mem::take(&mut world.apply_panics),
                "as the test wants it"
            );
            let reference = &object.reference;
            if world.missing.contains(&reference.resource) {
                return Err(refusal(RefusalClass::KindMissing));
            }
            let namespace =
                ObjectRef::new(Resource::Namespace, "", Arc::clone(&reference.namespace));
            if reference.resource.is_namespaced() && !world.objects.contains_key(&namespace) {
                return Err(refusal(RefusalClass::NamespaceMissing));
            }
            let known = world.objects.get(reference).cloned();
            let is_other_version = known.as_ref().is_some_and(|live| {
                object
                    .made_for
                    .is_some_and(|version| version != live.resource_version)
            });
            if is_other_version {
                return Err(refusal(RefusalClass::Reevaluate));
            }
            let replicas = known.as_ref().and_then(scale::replicas_left_alone(object));
            let known = known.map(|live| Arc::clone(&live.uid));
            let uid = match (known, uid) {
                (Some(known), None) => known,
                (Some(known), Some(uid)) if *known == *uid => known,
                (_, Some(_)) => return Err(refusal(RefusalClass::Reevaluate)),
                (None, None) => world.next_uid(),
            };
            let live = world.store(object, &uid);
            match replicas {
                Some(replicas) => world.scale(reference, replicas).unwrap_or(live),
                None => live,
            }
        };
        if is_answered {
            Ok(live)
        } else {
            Err(refusal(RefusalClass::Transient))
        }
    }

    /// Nobody else ever owns anything here.
    async fn adopt(&self, object: &ObjectRef, _uid: &str) -> Result<LiveObject, Refusal> {
        self.call(Op::Adopt(object.clone())).await?;
        let world = self.world.lock();
        let live = world.objects.get(object).cloned();
        live.ok_or_else(|| refusal(RefusalClass::Reevaluate))
    }

    /// Nobody holds anything here.
    async fn hold(&self, _: &ObjectRef, _: &str, _: Option<&str>) -> Result<LiveObject, Refusal> {
        Err(refusal(RefusalClass::Permanent))
    }

    async fn delete(&self, object: &ObjectRef, uid: &str) -> Result<Deletion, Refusal> {
        let is_answered = self.call(Op::Delete(object.clone())).await?;
        let mut deletion = Deletion::Gone;
        {
            let mut world = self.world.lock();
            let is_that_pod = |pod: &PodDigest| *pod.uid == *uid;
            if object.resource == Resource::Pod
                && world.pods.get(&object.name).is_some_and(is_that_pod)
            {
                world.version += 1;
                if let Some(mut pod) = world.pods.remove(&object.name) {
                    pod.resource_version = world.version;
                    world.tell(Resource::Pod, &WatchEvent::Deleted(Item::Pod(pod)));
                }
            }
            if world
                .objects
                .get(object)
                .is_some_and(|live| *live.uid == *uid)
            {
                deletion = world.begin_delete(object);
            }
        }
        if is_answered {
            Ok(deletion)
        } else {
            Err(refusal(RefusalClass::Transient))
        }
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        self.call(Op::Metadata(object.clone())).await?;
        let world = self.world.lock();
        Ok(world.objects.get(object).map(|live| Metadata {
            uid: Arc::clone(&live.uid),
            labels: live.labels.clone(),
            is_terminating: live.is_terminating,
        }))
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        self.call(Op::Get(object.clone())).await?;
        Ok(self.world.lock().objects.get(object).cloned())
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        let mut world = self.world.lock();
        world.lists += 1;
        world.looks.push((spec.resource, Instant::now()));
        world.is_silent = false;
        if world.lists_fail {
            return Err(refusal(RefusalClass::Transient));
        }
        if let Some((resource, wait)) = world.refused_list
            && resource == spec.resource
        {
            return Err(Refusal {
                retry_after: Some(wait).filter(|wait| !wait.is_zero()),
                ..refusal(RefusalClass::Transient)
            });
        }
        if world.missing.contains(&spec.resource) {
            return Err(refusal(RefusalClass::KindMissing));
        }
        if world.forbidden.contains(&spec.resource) {
            return Err(forbidden(spec.resource));
        }
        let (objects, pods, version) = world.shown();
        let items = if spec.resource == Resource::Pod {
            pods.values().cloned().map(Item::Pod).collect()
        } else {
            let objects = objects.values();
            objects
                .filter(|live| live.reference.resource == spec.resource && live.is_ours())
                .cloned()
                .map(Item::Object)
                .collect()
        };
        let resource_version = version.to_string();
        Ok(Listed {
            items,
            undecodable: Vec::new(),
            resource_version,
        })
    }

    /// Only the server at the other end of the old connections lags behind.
    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        let sight = std::mem::take(&mut self.world.lock().sight);
        let listed = self.list(spec).await;
        self.world.lock().sight = sight;
        listed
    }

    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        let mut world = self.world.lock();
        world.looks.push((spec.resource, Instant::now()));
        if world.lists_fail {
            return Err(refusal(RefusalClass::Transient));
        }
        if world.missing.contains(&spec.resource) {
            return Err(refusal(RefusalClass::KindMissing));
        }
        if world.forbidden.contains(&spec.resource) {
            return Err(forbidden(spec.resource));
        }
        if let Some(refusal) = world.refused_watch(spec.resource) {
            return Err(refusal);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's script is as long as the test"
        )]
        let (sender, receiver) = mpsc::unbounded_channel();
        if world.is_silent {
            world.silent.push((spec.resource, sender));
            return Ok(unfold(receiver));
        }
        let from: u64 = resource_version.parse().expect("a version of this cluster");
        if from > world.version {
            // It is silent until the version is passed, which takes longer than a test.
            world.silent.push((spec.resource, sender));
            return Ok(unfold(receiver));
        }
        if from < world.oldest {
            let _ = sender.send(WatchEvent::Ended(WatchEnd::Expired));
            return Ok(unfold(receiver));
        }
        match &mut world.sight {
            Sight::Clear => {}
            Sight::Lagging(lagging) => {
                lagging.wait(spec.resource, from, sender);
                return Ok(unfold(receiver));
            }
            Sight::TooOld => {
                let _ = sender.send(WatchEvent::Ended(WatchEnd::Expired));
                return Ok(unfold(receiver));
            }
        }
        for (version, resource, event) in &world.history {
            if *version > from && *resource == spec.resource {
                let _ = sender.send(event.clone());
            }
        }
        if std::mem::take(&mut world.watch_panics) {
            return Ok(futures::stream::poll_fn(|_| panic!("as the test wants it")).boxed());
        }
        world.watchers.push((spec.resource, sender));
        Ok(unfold(receiver))
    }
}

fn unfold(receiver: mpsc::UnboundedReceiver<WatchEvent>) -> BoxStream<'static, WatchEvent> {
    futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|event| (event, receiver))
    })
    .boxed()
}
