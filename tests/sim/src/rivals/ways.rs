//! The ways of one process to the world: what it does is written down, judged, and meets its fate.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fastrand::Rng;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use krane_actors::lease::Leadership;
use krane_domain::ids::Controller;
use krane_domain::kinds::WatchSpec;
use krane_domain::lease::{Claim, Record};
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::report::Report;
use krane_ports::{
    Answer, Cluster, ControlPlane, Deletion, LeaseFailure, Leases, Listed, Question, RpcFailure,
    RpcFailureKind, StreamEnd, StreamEvent, WatchEnd, WatchEvent, WriteAccess as _,
};
use krane_sim::cluster::SimClient;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::fate::Fate;
use super::plan::Reach;
use super::scene::{Scene, Write};
use crate::kinds::index;
use crate::wishes::round_in;

/// As the real adapters'.
const LIMIT: Duration = Duration::from_secs(15);

/// What all ways of one process have in common.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) scene: Arc<Scene>,
    pub(super) fate: Fate,
    pub(super) chance: Arc<Mutex<Rng>>,
}

impl Way {
    async fn request<T, E>(
        &self,
        to: Reach,
        lost: impl Fn() -> E,
        effect: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let whole = async {
            self.fate.runs().await;
            if self.fate.is_cut(to) {
                let is_silent = self.chance.lock().bool();
                if is_silent {
                    std::future::pending::<()>().await;
                }
                return Err(lost());
            }
            sleep(self.fate.latency(to, &self.chance)).await;
            let result = effect.await;
            sleep(self.fate.latency(to, &self.chance)).await;
            self.fate.runs().await;
            if self.fate.loses_answers(to) {
                return Err(lost());
            }
            result
        };
        timeout(LIMIT, whole).await.unwrap_or_else(|_| Err(lost()))
    }
}

/// To the cluster, of one controller.
pub(super) struct ClusterWay {
    pub(super) way: Way,
    pub(super) client: SimClient,
    pub(super) controller: Controller,
    pub(super) leadership: Leadership,
}

impl ClusterWay {
    async fn read<T>(
        &self,
        effect: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        self.way.request(Reach::Cluster, reset, effect).await
    }

    async fn write<T: Send + 'static>(
        &self,
        call: &'static str,
        object: &ObjectRef,
        round: Option<u64>,
        effect: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (scene, fate) = (&self.way.scene, &self.way.fate);
        if fate.is_dead() {
            std::future::pending::<()>().await;
        }
        // As the real adapter does, when it has a slot for the request.
        let permitted = self.leadership.permit().ok_or_else(reset)?;
        let is_late = fate.is_late();
        let write = Write {
            who: Arc::clone(&fate.identity),
            call,
            object: object.clone(),
            round,
            is_abandoned: is_late,
        };
        scene.begins(&write);
        let at_last = Arc::clone(scene);
        let effect = async move {
            let result = effect.await;
            if result.is_ok() {
                at_last.took_effect(&write);
            }
            result
        };
        if is_late && !fate.is_cut(Reach::Cluster) {
            let delay = Duration::from_millis(self.way.chance.lock().u64(10_000..60_000));
            scene.late.lock().spawn(async move {
                sleep(delay).await;
                drop(effect.await);
            });
            sleep(LIMIT).await;
            return Err(reset());
        }
        let result = self.way.request(Reach::Cluster, reset, effect).await;
        if result.is_ok() {
            permitted.answered();
        }
        result
    }
}

#[async_trait]
impl Cluster for ClusterWay {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        let round = round_in(self.controller, &object.body);
        let (client, reference) = (self.client.clone(), object.reference.clone());
        let (object, uid) = (object.clone(), uid.map(str::to_owned));
        let effect = async move { client.apply(&object, uid.as_deref()).await };
        self.write("apply", &reference, round, effect).await
    }

    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal> {
        let (client, reference, uid) = (self.client.clone(), object.clone(), uid.to_owned());
        let effect = async move { client.adopt(&reference, &uid).await };
        self.write("adopt", object, None, effect).await
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
        let (client, reference, uid) = (self.client.clone(), object.clone(), uid.to_owned());
        let effect = async move { client.delete(&reference, &uid).await };
        self.write("delete", object, None, effect).await
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        self.read(self.client.metadata(object)).await
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        self.read(self.client.get(object)).await
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.read(self.client.list(spec)).await
    }

    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.read(self.client.list_anew(spec)).await
    }

    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        let opened = self.client.watch(spec, resource_version);
        let events = self.read(opened).await?;
        let fate = self.way.fate.clone();
        let passed = events.then(move |event| {
            let fate = fate.clone();
            async move {
                fate.runs().await;
                if fate.is_cut(Reach::Cluster) {
                    WatchEvent::Ended(WatchEnd::Failed("the connection was reset".to_owned()))
                } else {
                    event
                }
            }
        });
        Ok(passed.boxed())
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

/// To the Lease.
pub(super) struct LeaseWay {
    pub(super) way: Way,
}

impl LeaseWay {
    async fn write(
        &self,
        claim: &Claim,
        effect: impl Future<Output = Result<Record, LeaseFailure>>,
    ) -> Result<Record, LeaseFailure> {
        let (scene, who) = (&self.way.scene, &self.way.fate.identity);
        let sent_at = Instant::now();
        let effect = async {
            let result = effect.await;
            if result.is_ok() {
                scene.committed(who, claim.holder.as_ref());
            }
            result
        };
        let result = self.way.request(Reach::Lease, unknown, effect).await;
        if result.is_ok() && claim.holder.as_ref() == Some(who) {
            scene.renewed(who, sent_at);
        }
        result
    }
}

#[async_trait]
impl Leases for LeaseWay {
    async fn read(&self) -> Result<Option<Record>, LeaseFailure> {
        let read = self.way.scene.leases.read();
        self.way.request(Reach::Lease, unknown, read).await
    }

    async fn create(&self, claim: &Claim) -> Result<Record, LeaseFailure> {
        self.write(claim, self.way.scene.leases.create(claim)).await
    }

    async fn update(&self, version: &str, claim: &Claim) -> Result<Record, LeaseFailure> {
        let update = self.way.scene.leases.update(version, claim);
        self.write(claim, update).await
    }
}

fn unknown() -> LeaseFailure {
    LeaseFailure::no_answer(LIMIT)
}

/// To the control plane, of one controller.
#[derive(Clone)]
pub(super) struct ControlWay {
    pub(super) way: Way,
    pub(super) controller: Controller,
}

impl ControlWay {
    fn control(&self) -> &krane_sim::control_plane::SimControlPlane {
        &self.way.scene.controls[index(self.controller)]
    }

    fn speaks(&self, what: &str) {
        if !self.way.fate.is_dead() {
            self.way.scene.speaks(&self.way.fate.identity, what);
        }
    }

    async fn call<T>(
        &self,
        effect: impl Future<Output = Result<T, RpcFailure>>,
    ) -> Result<T, RpcFailure> {
        self.way.request(Reach::Control, unreachable, effect).await
    }
}

#[async_trait]
impl ControlPlane for ControlWay {
    async fn watch(&self, cursor: u64) -> BoxStream<'static, StreamEvent> {
        self.speaks(&format!(
            "{} watches behind {cursor}",
            self.controller.name()
        ));
        let opened = async { Ok(self.control().watch(cursor).await) };
        let events = match self.call(opened).await {
            Ok(events) => events,
            Err(_) => stream::iter([ended()]).boxed(),
        };
        let fate = self.way.fate.clone();
        let passed = events.then(move |event| {
            let fate = fate.clone();
            async move {
                fate.runs().await;
                if fate.is_cut(Reach::Control) {
                    ended()
                } else {
                    event
                }
            }
        });
        passed.boxed()
    }

    async fn desired(&self, question: &Question) -> Result<Answer, RpcFailure> {
        self.speaks(&format!("asks about {}", question.key));
        self.call(self.control().desired(question)).await
    }

    async fn report(&self, report: &Report) -> Result<(), RpcFailure> {
        self.speaks(&format!("tells of {}", report.key()));
        self.call(self.control().report(report)).await
    }

    async fn heartbeat(&self) -> Result<(), RpcFailure> {
        self.speaks("is alive");
        self.call(self.control().heartbeat()).await
    }
}

fn ended() -> StreamEvent {
    StreamEvent::Ended(StreamEnd {
        code: "unavailable",
        message: "cut off".to_owned(),
        is_oversize: false,
    })
}

fn unreachable() -> RpcFailure {
    RpcFailure {
        kind: RpcFailureKind::Transport,
        code: "unavailable",
        message: "cut off".to_owned(),
    }
}
