//! A tree of probes: actors that do as they are told, and write down what happens to them.
//!
//! For tests, also those of crates that have actors; no release build has it.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::new_without_default,
    reason = "helpers of tests, which may fail them"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};
use tokio::sync::watch;

use crate::actor::{Behaviour, Context, Shell, ShellArguments};
use crate::address::Address;
use crate::cause::{ActorError, Cause};
use crate::message::Message;

use crate::meter::Meter;
use crate::restart::Backoff;
use crate::status::{Activity, ActorStatus, Board, Facts};
use crate::supervisor::{
    ChildSpec, End, OnExhausted, Pulse, Restart, Shutdown, StartFn, Strategy, SupervisorSpec,
    Surroundings, start_topmost, supervisor,
};
use crate::watchdog::Watchdog;

pub const LIMIT: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(5);

/// What a probe can be told.
#[derive(Debug)]
pub enum Tell {
    Work,
    Slow(Duration),
    Panic(String),
    Fail,
    Hang,
    Leave,
    Tick,
}

impl Message for Tell {
    fn name(&self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Slow(_) => "slow",
            Self::Panic(_) => "panic",
            Self::Fail => "fail",
            Self::Hang => "hang",
            Self::Leave => "leave",
            Self::Tick => "tick",
        }
    }
}

/// How the starts of one probe go wrong; each is for one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadStart {
    /// The start function fails.
    Fails,
    /// The start function panics.
    Panics,
    /// The start function never returns.
    Hangs,
    /// The actor starts, but the start function never returns.
    HangsAfterwards,
    /// `pre_start` panics.
    PreStartPanics,
    /// `started` panics.
    StartedPanics,
    /// `started` fails.
    StartedFails,
    /// `started` never returns.
    StartedHangs,
}

/// What happens to one probe, over all incarnations.
#[derive(Debug, Default)]
pub struct Script {
    pub bad_starts: Vec<BadStart>,
    pub stopping_takes: Duration,
    pub stopping_panics: bool,
    pub ticks_after: Option<Duration>,
    living: usize,
    most_at_once: usize,
}

pub struct Probe {
    path: Arc<str>,
    rig: Rig,
    bad_start: Option<BadStart>,
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.rig.script(&self.path, |script| script.living -= 1);
    }
}

impl Behaviour for Probe {
    type Message = Tell;
    type Board = Board;

    async fn started(&mut self, context: &Context<Tell>) -> Result<(), ActorError> {
        match self.bad_start {
            Some(BadStart::StartedPanics) => panic!("started"),
            Some(BadStart::StartedFails) => return Err(ActorError("started failed".to_owned())),
            Some(BadStart::StartedHangs) => std::future::pending().await,
            _ => self.rig.note("start", &self.path),
        }
        if let Some(delay) = self.rig.script(&self.path, |script| script.ticks_after) {
            context.later(delay, Tell::Tick);
        }
        Ok(())
    }

    async fn handle(&mut self, message: Tell, _: &Context<Tell>) -> Result<(), ActorError> {
        match message {
            Tell::Work => self.rig.note("work", &self.path),
            Tell::Tick => self.rig.note("tick", &self.path),
            Tell::Slow(time) => pause(time).await,
            Tell::Panic(text) => panic!("{text}"),
            Tell::Fail => return Err(ActorError("told to fail".to_owned())),
            Tell::Hang => std::future::pending().await,
            Tell::Leave => {
                let actor = self
                    .rig
                    .board
                    .find(&self.path)
                    .and_then(|cell| cell.occupant());
                actor.expect("it runs").stop(None);
            }
        }
        Ok(())
    }

    async fn stopping(&mut self, _: &Context<Tell>) {
        self.rig.note("stop", &self.path);
        let takes = self.rig.script(&self.path, |script| script.stopping_takes);
        pause(takes).await;
    }
}

struct Broken;

impl Actor for Broken {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        panic!("pre_start")
    }
}

/// Everything a test needs to build a tree of probes and to see what becomes of it.
#[derive(Clone)]
pub struct Rig {
    pub backoff: Backoff,
    pub board: Board,
    pub surroundings: Surroundings,
    journal: Arc<Mutex<Vec<String>>>,
    scripts: Arc<Mutex<BTreeMap<Arc<str>, Script>>>,
    addresses: Arc<Mutex<BTreeMap<Arc<str>, Address<Tell>>>>,
}

impl Rig {
    pub fn new() -> Self {
        Self::with_seed(1)
    }

    pub fn with_seed(seed: u64) -> Self {
        Self::on(Board::new(), seed)
    }

    /// One whose actors publish there.
    pub fn on(board: Board, seed: u64) -> Self {
        Self {
            backoff: Backoff::RESTART,
            surroundings: Surroundings {
                board: board.clone(),
                seed,
                grace: GRACE,
            },
            board,
            journal: Arc::default(),
            scripts: Arc::default(),
            addresses: Arc::default(),
        }
    }

    pub fn note(&self, what: &str, path: &str) {
        self.journal
            .lock()
            .push(format!("{what} {}", path.trim_start_matches("root/")));
    }

    /// What happened since this was last asked.
    pub fn journal(&self) -> Vec<String> {
        std::mem::take(&mut *self.journal.lock())
    }

    /// How often this happened since the journal was last taken.
    pub fn count(&self, entry: &str) -> usize {
        self.journal.lock().iter().filter(|it| *it == entry).count()
    }

    pub fn script<T>(&self, path: &str, change: impl FnOnce(&mut Script) -> T) -> T {
        change(self.scripts.lock().entry(path.into()).or_default())
    }

    pub fn bad_starts(&self, path: &str, kind: BadStart, times: usize) {
        self.script(path, |script| script.bad_starts = vec![kind; times]);
    }

    /// No two incarnations of any probe ever were there at once.
    pub fn assert_never_two(&self) {
        for (path, script) in &*self.scripts.lock() {
            assert!(
                script.most_at_once <= 1,
                "{} of {path} at once",
                script.most_at_once
            );
        }
    }

    pub fn address(&self, path: &str) -> Address<Tell> {
        let mut addresses = self.addresses.lock();
        addresses
            .entry(path.into())
            .or_insert_with(|| Address::vacant(path, 8))
            .clone()
    }

    pub fn tell(&self, path: &str, tell: Tell) {
        self.address(path)
            .try_send(tell)
            .unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    pub fn status(&self, path: &str) -> Arc<ActorStatus> {
        self.board
            .get(path)
            .unwrap_or_else(|| panic!("nothing published at {path}"))
    }

    pub fn is_up(&self, path: &str) -> bool {
        self.board
            .get(path)
            .is_some_and(|status| status.activity.is_up())
    }

    pub fn is_parked(&self, path: &str) -> bool {
        matches!(self.status(path).activity, Activity::Parked { .. })
    }

    /// Kind of the last failure published at this path.
    pub fn last_failure(&self, path: &str) -> Option<&'static str> {
        self.status(path)
            .last_failure
            .as_ref()
            .map(|failure| failure.kind)
    }

    /// A start function for the probe at this path, which fails as its script says.
    pub fn probe(&self, path: &str) -> StartFn {
        let (rig, path) = (self.clone(), Arc::<str>::from(path));
        Arc::new(move |supervisor| {
            let (rig, path) = (rig.clone(), Arc::clone(&path));
            Box::pin(async move { rig.start_probe(path, supervisor).await })
        })
    }

    async fn start_probe(self, path: Arc<str>, supervisor: ActorCell) -> Result<ActorCell, Cause> {
        let bad_start = self.script(&path, |script| script.bad_starts.pop());
        match bad_start {
            Some(BadStart::Fails) => return Err(ActorError("told to fail".to_owned()).into()),
            Some(BadStart::Panics) => panic!("start function"),
            Some(BadStart::Hangs) => return std::future::pending().await,
            Some(BadStart::PreStartPanics) => {
                let (actor, _) = Actor::spawn_linked(None, Broken, (), supervisor).await?;
                return Ok(actor.get_cell());
            }
            _ => {}
        }
        self.script(&path, |script| {
            script.living += 1;
            script.most_at_once = script.most_at_once.max(script.living);
        });
        let arguments = ShellArguments {
            behaviour: Probe {
                path: Arc::clone(&path),
                rig: self.clone(),
                bad_start,
            },
            address: self.address(&path),
            board: self.board.clone(),
            meter: Meter::default(),
        };
        let actor = Shell::start(arguments, supervisor).await?;
        if bad_start == Some(BadStart::HangsAfterwards) {
            return std::future::pending().await;
        }
        Ok(actor)
    }

    pub fn leaf(&self, path: &'static str) -> ChildSpec {
        let facts = Facts {
            group: None,
            handler_limit: Some(LIMIT),
        };
        self.board.declare(&path.into(), facts);
        ChildSpec {
            id: path.rsplit('/').next().unwrap_or(path),
            path: path.into(),
            restart: Restart::Permanent,
            start: self.probe(path),
            start_timeout: Some(Duration::from_secs(5)),
            shutdown: Shutdown::Stop(Duration::from_secs(1)),
            backoff: self.backoff,
            reset: None,
        }
    }

    pub fn nest(&self, spec: SupervisorSpec, id: &'static str) -> ChildSpec {
        ChildSpec {
            id,
            path: Arc::clone(&spec.path),
            restart: Restart::Permanent,
            start: supervisor(spec, self.surroundings.clone()),
            start_timeout: None,
            shutdown: Shutdown::Stop(Duration::from_secs(5)),
            backoff: self.backoff,
            reset: None,
        }
    }

    /// Starts a topmost supervisor with a watchdog on its loop.
    pub async fn start(&self, spec: SupervisorSpec) -> Top {
        self.start_with_rounds(spec, Duration::from_secs(1)).await
    }

    pub async fn start_with_rounds(&self, spec: SupervisorSpec, every: Duration) -> Top {
        let watchdog = Watchdog::new(self.board.clone(), self.surroundings.grace);
        let pulse = Pulse {
            every,
            beat: Arc::new(move || watchdog.round()),
        };
        let started = start_topmost(spec, self.surroundings.clone(), Some(pulse)).await;
        let (actor, ended) = started.expect("the topmost supervisor starts");
        Top { actor, ended }
    }
}

/// A running topmost supervisor.
pub struct Top {
    pub actor: ActorCell,
    pub ended: watch::Receiver<End>,
}

impl Top {
    pub async fn end(&mut self) -> Result<(), Cause> {
        let end = self
            .ended
            .wait_for(Option::is_some)
            .await
            .expect("it says how it ended")
            .clone();
        self.actor.wait(None).await.expect("no time limit");
        end.expect("waited for")
    }

    pub async fn stop(&mut self) -> Result<(), Cause> {
        self.actor.stop(None);
        self.end().await
    }
}

/// A specification with budgets that escalate.
pub fn escalating(
    path: &str,
    strategy: Strategy,
    intensity: usize,
    children: Vec<ChildSpec>,
) -> SupervisorSpec {
    SupervisorSpec {
        path: path.into(),
        strategy,
        intensity,
        period: Duration::from_mins(1),
        on_exhausted: OnExhausted::Escalate,
        prepare: None,
        children,
    }
}

/// A specification as the root's: it parks.
pub fn parking(children: Vec<ChildSpec>) -> SupervisorSpec {
    SupervisorSpec {
        on_exhausted: OnExhausted::Park(Backoff::PARK),
        ..escalating("root", Strategy::OneForOne, 5, children)
    }
}

/// Waits for a state. The clock is paused, so waiting costs nothing; an hour of its time is
/// longer than any pause.
pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = tokio::time::Instant::now();
    while !is_so() {
        let waited = began.elapsed();
        assert!(waited < Duration::from_hours(1), "never: {what}");
        pause((waited / 100).max(Duration::from_millis(1))).await;
    }
}

/// Lets this much time pass.
#[allow(
    clippy::disallowed_methods,
    reason = "the paused clock of a test, moved on"
)]
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// All living actors below this one, itself included, as ractor knows them.
pub fn living_below(actor: &ActorCell) -> usize {
    1 + actor.get_children().iter().map(living_below).sum::<usize>()
}
