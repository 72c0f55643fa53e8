//! The demo's world while it plays: what is wanted, what is there, and how one waits for the other.

mod crowded;
mod secrets;
mod wanted;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use krane::run::Running;
use krane_actors::store::Store;
use krane_domain::backlog::{InTrouble, TroubleKind};
use krane_domain::ids::{Controller, ObjectKey, WorkKey};
use krane_sim::control_plane::{ControlPlane, Kind};
use parking_lot::Mutex;
pub(super) use secrets::{Secrets, VARIABLES};
use tokio::time::Instant;
use wanted::Wanted;

use super::cluster::DemoCluster;
use super::crowd::Crowd;
use super::summary::{Score, Summary};
use super::wish::Wish;

/// How often a wait looks again: shorter than anybody notices.
const LOOK: Duration = Duration::from_millis(10);

/// How long a wait goes on: longer than krane's slowest retry of what only fails in passing.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the story takes nothing away after a visitor has restored everything.
const REST: Duration = Duration::from_secs(15);

/// How long the story rests at most, so that a visitor can look at what is bad or on hold.
const LOOKED_AT: Duration = Duration::from_secs(60);

/// Everything on the stage.
pub(super) struct Stage {
    pub(super) control: ControlPlane,
    pub(super) cluster: DemoCluster,
    pub(super) secrets: Secrets,
    pub(super) crowd: Crowd,
    agent: OnceLock<Running>,
    wanted: Mutex<BTreeMap<ObjectKey, Wanted>>,
    /// Whether a visitor has taken something away.
    is_disturbed: AtomicBool,
    /// When a visitor last gave back what was missing.
    restored_at: Mutex<Option<Instant>>,
    /// When a visitor last made something bad, or put it on hold.
    shown_at: Mutex<Option<Instant>>,
    /// When the story has to come to an end, if it does.
    ends_at: OnceLock<Instant>,
}

impl Stage {
    pub(super) fn new(
        control: ControlPlane,
        cluster: DemoCluster,
        secrets: Secrets,
        crowd: Crowd,
    ) -> Self {
        Self {
            control,
            cluster,
            secrets,
            crowd,
            agent: OnceLock::new(),
            wanted: Mutex::default(),
            is_disturbed: AtomicBool::new(false),
            restored_at: Mutex::default(),
            shown_at: Mutex::default(),
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
        self.cluster.release();
        self.want(&self.poisoned());
        *self.shown_at.lock() = None;
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

    /// A visitor made something that wants to be looked at.
    pub(super) fn show(&self) {
        *self.shown_at.lock() = Some(Instant::now());
    }

    /// Whether the story leaves the world as it is, for a visitor looks at what is bad or on hold.
    pub(super) fn is_looked_at(&self, now: Instant) -> bool {
        let lasts = |at: Instant| now < at + LOOKED_AT;
        let is_there = || {
            let bad = self.poisoned();
            self.cluster.is_held() || bad.iter().any(|wish| self.is_spoilt(wish))
        };
        self.has_time() && self.shown_at.lock().is_some_and(lasts) && is_there()
    }

    /// Waits until what a visitor did is mended, or was looked at for long enough.
    pub(super) async fn looked_at(&self) {
        while self.is_looked_at(Instant::now()) || self.has_to_wait() {
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

    /// Whether krane follows all three desired-state streams.
    pub(super) fn is_connected(&self) -> bool {
        self.stores().iter().all(|store| store.connection().is_open)
    }

    /// Kinds that krane does not see at present.
    pub(super) fn broken_watches(&self) -> usize {
        let stores = self.stores().iter();
        let broken = stores.map(|store| store.snapshot().broken_watches.len());
        broken.sum()
    }

    /// What krane has set aside.
    pub(super) fn in_quarantine(&self) -> Vec<InTrouble> {
        let troubles = self.stores().iter().flat_map(|store| store.in_trouble());
        troubles
            .filter(|trouble| trouble.trouble.kind == TroubleKind::Quarantined)
            .collect()
    }

    /// Whether krane keeps its hands off, because a person wants that.
    pub(super) fn is_held(&self, key: &WorkKey) -> bool {
        let is_held = |store: &Arc<Store>| {
            let trouble = store.trouble_of(key);
            trouble.is_some_and(|it| it.trouble.kind == TroubleKind::Held)
        };
        self.stores().iter().any(is_held)
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
        let wishes = self.well();
        let as_wanted = |wish: &Wish| self.is_told(wish) && self.is_in_place(wish);
        wishes.iter().all(as_wanted) && self.in_quarantine().len() == self.poisoned().len()
    }

    /// What a sentinel's pods lack, in the kubelet's words, as far as krane knows.
    pub(super) fn lacking(&self, wish: &Wish) -> Option<Arc<str>> {
        let key = wish.key();
        let mut stores = self.stores().iter();
        stores.find_map(|store| store.config_error(&key))
    }

    fn score(&self, controller: Controller, open: &mut Vec<String>) -> Score {
        let mut score = Score::default();
        for wish in self.well_of(controller) {
            score.wanted += 1;
            if self.is_in_place(&wish) {
                score.in_place += 1;
            } else {
                open.push(format!("{} is not as it is wanted", wish.name()));
            }
            if self.is_told(&wish) {
                score.reported += 1;
            } else {
                open.push(match &wish {
                    Wish::App(app) => {
                        let (_, running) = self.told(app);
                        let all = app.replicas;
                        format!("{running} of {all} instances of {} are reported", app.name)
                    }
                    Wish::Sentinel(_) | Wish::Policy(_) => {
                        format!("{} is not reported as it is", wish.name())
                    }
                });
            }
        }
        score
    }

    fn score_crowd(&self, score: &mut Score, open: &mut Vec<String>) {
        for app in self.crowd.states() {
            score.wanted += 1;
            let (is_in_place, is_told) = (self.has(&app), self.is_told_of(&app));
            score.in_place += usize::from(is_in_place);
            score.reported += usize::from(is_told);
            if !(is_in_place && is_told) {
                open.push(format!(
                    "{} is not as it is wanted, or not reported",
                    app.k8s_name
                ));
            }
        }
    }

    /// How all of it is now.
    pub(super) fn summary(&self, seed: u64, elapsed: Duration, acts: usize) -> Summary {
        let mut open = Vec::new();
        let [mut apps, sentinels, policies] =
            Controller::ALL.map(|controller| self.score(controller, &mut open));
        self.score_crowd(&mut apps, &mut open);
        let poisoned = self.poisoned();
        let quarantine = self.in_quarantine();
        let on_purpose = |trouble: &&InTrouble| {
            let mut keys = poisoned.iter().map(|wish| WorkKey::Workload(wish.key()));
            keys.any(|key| key == trouble.key)
        };
        let expected = quarantine.iter().filter(on_purpose).count();
        for trouble in quarantine.iter().filter(|trouble| !on_purpose(trouble)) {
            open.push(format!(
                "{} is set aside: {}",
                trouble.key, trouble.trouble.problem
            ));
        }
        let secrets = self.secrets.requests();
        if secrets.leaked > 0 {
            open.push("a pod got the secrets of another app".to_owned());
        }
        let cursors = self.stores().iter().map(|store| store.cursor());
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
            ok: open.is_empty() && apps.wanted > 0 && expected == poisoned.len(),
            apps,
            sentinels,
            policies,
            secrets,
            reports_delivered: reports.values().map(|told| u64::from(told.count)).sum(),
            quarantined: quarantine.len() - expected,
            poisoned: expected,
            restarts: self.restarts(),
            open,
        }
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
