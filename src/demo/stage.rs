//! The demo's world while it plays: what is wanted, what is there, and how one waits for the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use krane_actors::store::Store;
use krane_domain::backlog::InTrouble;
use krane_sim::control_plane::{ControlPlane, Kind, samples};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::cluster::DemoCluster;
use super::script::App;
use super::summary::Summary;
use crate::run::Running;

/// How often a wait looks again: shorter than anybody notices.
const LOOK: Duration = Duration::from_millis(10);

/// How long a wait goes on: longer than krane's slowest retry of what only fails in passing.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the story takes nothing away after a visitor has restored everything.
const REST: Duration = Duration::from_secs(15);

/// Everything on the stage.
pub(super) struct Stage {
    pub(super) control: ControlPlane,
    pub(super) cluster: DemoCluster,
    agent: OnceLock<Running>,
    wanted: Mutex<BTreeMap<&'static str, Wanted>>,
    /// Whether a visitor has taken something away.
    is_disturbed: AtomicBool,
    /// When a visitor last gave back what was missing.
    restored_at: Mutex<Option<Instant>>,
    /// When the story has to come to an end, if it does.
    ends_at: OnceLock<Instant>,
}

/// An app as the control plane wants it.
#[derive(Clone, Debug)]
struct Wanted {
    app: App,
    /// The control plane's newest state of it cannot be.
    is_poisoned: bool,
    /// That was a visitor's doing.
    is_spoilt: bool,
}

impl Stage {
    pub(super) fn new(control: ControlPlane, cluster: DemoCluster) -> Self {
        Self {
            control,
            cluster,
            agent: OnceLock::new(),
            wanted: Mutex::default(),
            is_disturbed: AtomicBool::new(false),
            restored_at: Mutex::default(),
            ends_at: OnceLock::new(),
        }
    }

    /// The agent enters. It was made with the stage, so it cannot be part of it from the start.
    pub(super) fn enter(&self, agent: Running) {
        self.agent.get_or_init(|| agent);
    }

    /// The agent, once it has entered.
    pub(super) fn agent(&self) -> Option<&Running> {
        self.agent.get()
    }

    fn stores(&self) -> &[Arc<Store>] {
        self.agent().map_or(&[], Running::stores)
    }

    /// The control plane wants these apps like this, all at once.
    pub(super) fn want(&self, apps: &[App]) {
        for app in apps {
            let wanted = Wanted {
                app: app.clone(),
                is_poisoned: false,
                is_spoilt: false,
            };
            self.wanted.lock().insert(app.name, wanted);
        }
        let states = apps.iter().map(|app| samples::apply(message(app)));
        self.control.push_all(states);
    }

    /// The control plane wants of this app what no cluster can do.
    pub(super) fn poison(&self, app: &App) {
        if let Some(wanted) = self.wanted.lock().get_mut(app.name) {
            wanted.is_poisoned = true;
        }
        let mut message = message(app);
        "no image at all".clone_into(&mut message.image);
        self.control.push(samples::apply(message));
    }

    /// A visitor makes the control plane want nonsense of this app.
    pub(super) fn spoil(&self, app: &App) {
        self.poison(app);
        if let Some(wanted) = self.wanted.lock().get_mut(app.name) {
            wanted.is_spoilt = true;
        }
    }

    /// Whether a visitor made this app's state bad: the story must not mend it on the way.
    pub(super) fn is_spoilt(&self, app: &App) -> bool {
        let wanted = self.wanted.lock();
        wanted.get(app.name).is_some_and(|wanted| wanted.is_spoilt)
    }

    /// A visitor takes something away. Whether nothing was missing before.
    pub(super) fn disturb(&self) -> bool {
        !self.is_disturbed.swap(true, Ordering::Relaxed)
    }

    /// Whether something is missing that a visitor took away.
    pub(super) fn is_disturbed(&self) -> bool {
        self.is_disturbed.load(Ordering::Relaxed)
    }

    /// Whatever a visitor took away is there again, and what was nonsense makes sense.
    pub(super) fn restore(&self) {
        self.control.thaw();
        self.control.heal();
        self.cluster.give_api_server_back();
        self.want(&self.poisoned());
        *self.restored_at.lock() = Some(Instant::now());
        self.is_disturbed.store(false, Ordering::Relaxed);
    }

    /// Whether a visitor shall see first that all is well again.
    pub(super) fn is_resting(&self) -> bool {
        let rests = |at: Instant| at.elapsed() < REST;
        self.has_time() && self.restored_at.lock().is_some_and(rests)
    }

    /// Waits until nothing is missing that a visitor took away, nor has been for a while.
    pub(super) async fn rested(&self) {
        while self.has_to_wait() || self.is_resting() {
            pause(LOOK).await;
        }
    }

    /// The story has this long.
    pub(super) fn end_after(&self, length: Duration) {
        self.ends_at.get_or_init(|| Instant::now() + length);
    }

    /// Whether one has to wait until a visitor gives back what is missing.
    fn has_to_wait(&self) -> bool {
        self.is_disturbed() && self.has_time()
    }

    fn has_time(&self) -> bool {
        self.ends_at.get().is_none_or(|end| Instant::now() < *end)
    }

    /// Waits until nothing is missing that a visitor took away.
    pub(super) async fn undisturbed(&self) {
        while self.has_to_wait() {
            pause(LOOK).await;
        }
    }

    /// The control plane wants this app gone.
    pub(super) fn remove(&self, app: &App) {
        self.wanted.lock().remove(app.name);
        self.control.push(samples::delete(&message(app)));
    }

    /// The apps that are wanted and can be.
    pub(super) fn well(&self) -> Vec<App> {
        let wanted = self.wanted.lock();
        let well = wanted.values().filter(|wanted| !wanted.is_poisoned);
        well.map(|wanted| wanted.app.clone()).collect()
    }

    /// The apps whose newest state cannot be.
    pub(super) fn poisoned(&self) -> Vec<App> {
        let wanted = self.wanted.lock();
        let poisoned = wanted.values().filter(|wanted| wanted.is_poisoned);
        poisoned.map(|wanted| wanted.app.clone()).collect()
    }

    /// Whether the cluster has the app as it is wanted.
    pub(super) fn is_in_place(&self, app: &App) -> bool {
        let live = self.cluster.workload(app);
        live.is_some_and(|live| {
            live.image == app.image() && live.replicas == u64::from(app.replicas)
        })
    }

    /// How many instances of the app the control plane was last told of, and how many of them run.
    pub(super) fn told(&self, app: &App) -> (usize, usize) {
        self.control.look(|seen| {
            let instances = seen
                .report(app.name)
                .map_or(&[][..], |report| report.instances());
            let running = instances
                .iter()
                .filter(|instance| instance.status() == krane_sim::control_plane::Status::Running);
            (instances.len(), running.count())
        })
    }

    /// Whether the control plane was told that all of the app runs.
    pub(super) fn is_told(&self, app: &App) -> bool {
        let all = usize::try_from(app.replicas).unwrap_or(usize::MAX);
        self.told(app) == (all, all)
    }

    /// Whether the control plane was told that the app is gone.
    pub(super) fn is_told_gone(&self, app: &App) -> bool {
        self.control.look(|seen| seen.deleted(app.name))
    }

    /// Whether krane follows the desired-state stream.
    pub(super) fn is_connected(&self) -> bool {
        self.stores()
            .iter()
            .all(|store| store.with(|memory| memory.stream.opened_at.is_some()))
    }

    /// Kinds that krane does not see at present.
    pub(super) fn broken_watches(&self) -> usize {
        let stores = self.stores().iter();
        let broken = stores.map(|store| store.with(|memory| memory.broken_watches.len()));
        broken.sum()
    }

    /// What krane has set aside.
    pub(super) fn in_quarantine(&self) -> Vec<InTrouble> {
        use krane_domain::backlog::TroubleKind::Quarantined;
        let troubles = self
            .stores()
            .iter()
            .flat_map(|store| store.with(|memory| memory.backlog.in_trouble().collect::<Vec<_>>()));
        troubles
            .filter(|trouble| trouble.trouble.kind == Quarantined)
            .collect()
    }

    /// Incarnations after the first, of all actors.
    pub(super) fn restarts(&self) -> u64 {
        let actors = self.agent().map(|agent| agent.board().all());
        let actors = actors.unwrap_or_default();
        actors.iter().map(|(_, cell)| cell.read().restarts).sum()
    }

    /// Waits for what is to come, and says how long it took; nothing when it does not come,
    /// which only a visitor can bring about.
    pub(super) async fn until(&self, look: impl Fn() -> bool) -> Option<Duration> {
        let start = Instant::now();
        let mut end = start + PATIENCE;
        while !look() {
            if self.has_to_wait() {
                end = Instant::now() + PATIENCE;
            }
            // With its time over, the story waits once more at most for what a visitor took away.
            let is_over = self.is_disturbed()
                && self
                    .ends_at
                    .get()
                    .is_some_and(|end| Instant::now() > *end + PATIENCE);
            if is_over || Instant::now() > end {
                return None;
            }
            pause(LOOK).await;
        }
        Some(start.elapsed())
    }

    /// Waits until all that is wanted is in place and reported.
    pub(super) async fn settle(&self) {
        self.until(|| self.is_settled()).await;
    }

    pub(super) fn is_settled(&self) -> bool {
        let apps = self.well();
        let as_wanted = |app: &App| self.is_told(app) && self.is_in_place(app);
        apps.iter().all(as_wanted) && self.in_quarantine().len() == self.poisoned().len()
    }

    /// How all of it is now.
    pub(super) fn summary(&self, seed: u64, elapsed: Duration, acts: usize) -> Summary {
        let well = self.well();
        let mut open = Vec::new();
        let (mut in_place, mut reported) = (0, 0);
        for app in &well {
            if self.is_in_place(app) {
                in_place += 1;
            } else {
                open.push(format!("{} is not as it is wanted", app.name));
            }
            if self.is_told(app) {
                reported += 1;
            } else {
                let (_, running) = self.told(app);
                open.push(format!(
                    "{running} of {} instances of {} are reported",
                    app.replicas, app.name
                ));
            }
        }
        let poisoned = self.poisoned();
        let quarantine = self.in_quarantine();
        let on_purpose = |trouble: &&InTrouble| {
            let key = trouble.key.to_string();
            let mut apps = poisoned.iter();
            apps.any(|app| key == format!("{}/{}", app.namespace, app.name))
        };
        let expected = quarantine.iter().filter(on_purpose).count();
        for trouble in quarantine.iter().filter(|trouble| !on_purpose(trouble)) {
            open.push(format!(
                "{} is set aside: {}",
                trouble.key, trouble.trouble.problem
            ));
        }
        let cursors = self
            .stores()
            .iter()
            .map(|store| store.with(|memory| memory.backlog.cursor()));
        let reports = self.control.reports();
        Summary {
            seed,
            elapsed_ms: elapsed.as_millis(),
            acts,
            states_sent: [Kind::Deployments, Kind::Sentinels, Kind::Policies]
                .map(|kind| self.control.newest(kind))
                .iter()
                .sum(),
            states_applied: cursors.sum(),
            apps_wanted: well.len(),
            apps_in_place: in_place,
            apps_reported: reported,
            reports_delivered: reports.values().map(|told| u64::from(told.count)).sum(),
            quarantined: quarantine.len() - expected,
            poisoned: expected,
            restarts: self.restarts(),
            ok: open.is_empty() && !well.is_empty() && expected == poisoned.len(),
            open,
        }
    }
}

/// The message of an app.
fn message(app: &App) -> krane_proto::ctrl::v1::ApplyDeployment {
    krane_proto::ctrl::v1::ApplyDeployment {
        image: app.image(),
        replicas: i32::try_from(app.replicas).unwrap_or(i32::MAX),
        ..samples::deployment(app.namespace, app.name)
    }
}

/// Lets some time pass: a story has a pace.
#[expect(
    clippy::disallowed_methods,
    reason = "no actor waits here, a storyteller does"
)]
pub(super) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
