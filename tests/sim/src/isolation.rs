//! One controller is broken: how long the others take for their work meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fastrand::Rng;
use futures::stream::BoxStream;
use krane_actors::status::StatusBoard;
use krane_domain::ids::Controller;
use krane_domain::kinds::{Rules, WatchSpec};
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Cluster, Deletion, Listed, WatchEvent};
use krane_sim::cluster::SimClient;
use krane_sim::control_plane::SimControlPlane;
use krane_supervision::fault::Fault;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::assembly::{self, Process};
use crate::kinds::index;
use crate::run::keep_planned_panics_quiet;
use crate::times::Times;
use crate::wishes;

mod work;

/// How long a controller is broken.
const LENGTH: Duration = Duration::from_mins(10);
/// The real adapter gives up a write after this long.
const WRITE_LIMIT: Duration = Duration::from_secs(15);

/// How a controller is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Its stream brings messages that make no sense, and ends all the time.
    Garbage,
    /// All its actors panic at every message.
    Panics,
    /// Its writes are never answered.
    HangingCalls,
    /// Its stream actor is killed whenever it runs, so that the controller is parked again and
    /// again.
    Parked,
}

impl Break {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Garbage,
        Self::Panics,
        Self::HangingCalls,
        Self::Parked,
    ];
}

/// Ten virtual minutes of work for all controllers, the broken one too. The times are from what is
/// wanted to what is there.
pub fn isolation(
    seed: u64,
    broken: Option<(Controller, Break)>,
) -> Result<BTreeMap<Controller, Times>, String> {
    keep_planned_panics_quiet();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|problem| problem.to_string())?;
    runtime.block_on(live(seed, broken))
}

async fn live(
    seed: u64,
    broken: Option<(Controller, Break)>,
) -> Result<BTreeMap<Controller, Times>, String> {
    let mut tasks = JoinSet::new();
    let cluster = assembly::cluster(seed, &mut tasks);
    let controls = [0, 1, 2].map(|number| SimControlPlane::new(seed ^ number));
    let board = StatusBoard::new();
    let hanging = match broken {
        Some((who, Break::HangingCalls)) => Some(who),
        Some(_) | None => None,
    };
    let process = Process {
        board: board.clone(),
        rules: Rules::default(),
        began: Instant::now(),
        seed,
        heartbeat: Arc::new(controls[0].clone()),
        secrets: None,
        election: None,
    };
    let agent = process.agent(|controller| {
        let cluster = SlowCluster {
            client: cluster.client(),
            chance: Mutex::new(Rng::with_seed(seed)),
            hangs: hanging == Some(controller),
        };
        let control = controls[index(controller)].clone();
        (Arc::new(cluster), Arc::new(control))
    })?;
    let root = agent.start(assembly::servers()).await;
    let root = root.map_err(|e| e.to_string())?;
    sleep(Duration::from_secs(5)).await;
    if let Some((who, how)) = broken {
        tasks.spawn(spoil(controls[index(who)].clone(), board.clone(), who, how));
    }
    let work = Controller::ALL
        .into_iter()
        .map(|who| work::measure(who, &cluster, &controls[index(who)], LENGTH));
    let times = futures::future::join_all(work).await;
    let times: Result<BTreeMap<_, _>, String> = times.into_iter().collect();
    let _ = root.stop().await;
    times
}

/// Breaks a controller for as long as the run goes on.
async fn spoil(control: SimControlPlane, board: StatusBoard, who: Controller, how: Break) {
    let prefix = format!("root/{}/", who.name());
    if how == Break::Panics {
        for (path, _) in board.all() {
            if path.starts_with(&prefix) {
                board.inject(&path, Fault::Panic.next().times(u32::MAX));
            }
        }
    }
    for round in 0_u64.. {
        sleep(Duration::from_millis(50)).await;
        match how {
            Break::Garbage => {
                control.garbage("no such thing");
                if round.is_multiple_of(40) {
                    control.cut_streams("internal");
                }
            }
            // There is something to do all the time.
            Break::Panics | Break::HangingCalls if round.is_multiple_of(4) => {
                wishes::want(who, &control, &format!("x{}", round % 200), round);
            }
            Break::Panics | Break::HangingCalls => {}
            Break::Parked => {
                board.kill(&format!("{prefix}intake/stream"));
            }
        }
    }
}

/// The cluster with the time that calls take.
struct SlowCluster {
    client: SimClient,
    chance: Mutex<Rng>,
    hangs: bool,
}

impl SlowCluster {
    async fn read(&self) {
        let time = self.chance.lock().u64(2..12);
        sleep(Duration::from_millis(time)).await;
    }

    async fn write(&self) -> Result<(), Refusal> {
        if self.hangs {
            sleep(WRITE_LIMIT).await;
            return Err(Refusal {
                class: RefusalClass::Transient,
                code: 0,
                message: "no answer in time".to_owned(),
                retry_after: None,
            });
        }
        let time = self.chance.lock().u64(8..40);
        sleep(Duration::from_millis(time)).await;
        Ok(())
    }
}

#[async_trait]
impl Cluster for SlowCluster {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        self.write().await?;
        self.client.apply(object, uid).await
    }

    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal> {
        self.write().await?;
        self.client.adopt(object, uid).await
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
        self.write().await?;
        self.client.delete(object, uid).await
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        self.read().await;
        self.client.metadata(object).await
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        self.read().await;
        self.client.get(object).await
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.read().await;
        self.client.list(spec).await
    }

    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.read().await;
        self.client.list_anew(spec).await
    }

    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        self.client.watch(spec, resource_version).await
    }
}
