//! One run: chaos, then quiet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use krane_domain::ids::Controller;
use krane_domain::labels;
use krane_sim::cluster::{Options, SimCluster};
use krane_sim::control_plane::SimControlPlane;
use krane_sim::control_plane::memory::Order;
use krane_supervision::root::Exit;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::incarnation::Incarnation;
use crate::plan::{Fault, MessageFault, Plan, WorldFault, ms, workers_of};
use crate::planted::plant;
use crate::quiet;
use crate::script::{Script, Step};
use crate::shared::{Extent, Shared};
use crate::world::{Deed, Undo, World};

/// How long the agent may take to bring everything about once all is well.
const CONVERGENCE: Duration = Duration::from_secs(120);
/// Two full replays and what is between them, where only they can find out (D8).
const REPLAYS: Duration = Duration::from_secs(1500);
/// How often, at least, an object that somebody else must put right is looked at.
const RARELY: Duration = Duration::from_secs(900);
/// How long the last report may take.
const REPORTS: Duration = Duration::from_secs(90);
/// How long nothing may be written when there is nothing to write.
const SILENCE: Duration = Duration::from_secs(600);
/// The longest pause of a parked controller, jitter included.
const PARKED: Duration = Duration::from_secs(900);
/// How often things that nobody announces are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Chance of the cluster and of the agent.
    pub seed: u64,
    /// What is wanted.
    pub script: Script,
    /// What goes wrong.
    pub plan: Plan,
    /// How long it goes wrong, in milliseconds.
    pub chaos: u64,
    /// Whose calls, events and messages the faults of the plan are about.
    pub about: Vec<Controller>,
    /// How soon after that everything must be in place; `None`: as soon as the specification says.
    pub patience: Option<Duration>,
    /// The defect that is switched on, if any: the name of a patch in `defects/`.
    pub defect: Option<&'static str>,
    /// Whether the trace is kept for people.
    pub is_loud: bool,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The invariant that did not hold, and how.
    pub violation: Option<String>,
    /// Hash of the whole trace.
    pub hash: u64,
    /// Faults that struck, and more.
    pub counts: BTreeMap<String, u64>,
    /// Applies that the cluster took.
    pub applied: u64,
    /// Calls, events and messages until nothing went wrong any more.
    pub extent: Extent,
    /// Virtual time.
    pub lasted: Duration,
    /// The last lines of the trace, when it was kept.
    pub trace: Vec<String>,
}

enum Due {
    Step(Step),
    Fault(WorldFault),
    Undo(Undo),
}

struct Driver {
    shared: Arc<Shared>,
    world: World,
    agent: Incarnation,
    /// Of the first process, the one that faults of actors are planted in.
    #[cfg(debug_assertions)]
    first: krane_actors::status::StatusBoard,
    chance: Rng,
    seed: u64,
    agenda: BTreeMap<(Duration, u64), Due>,
    scheduled: u64,
    plan: Plan,
    patience: Option<Duration>,
    about: Vec<Controller>,
}

/// Panics that were planned are told by the trace, not on stderr.
#[cfg(debug_assertions)]
pub(crate) fn keep_planned_panics_quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let earlier = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload_as_str() != Some(krane_supervision::fault::PLANNED) {
                earlier(info);
            }
        }));
    });
}

/// Runs everything on this thread, from the first to the last moment.
pub fn run(setup: &Setup) -> Outcome {
    #[cfg(debug_assertions)]
    keep_planned_panics_quiet();
    plant(setup.defect);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(live(setup)),
        Err(problem) => unreachable!("no runtime: {problem}"),
    }
}

async fn live(setup: &Setup) -> Outcome {
    let options = Options {
        seed: setup.seed,
        ..Options::default()
    };
    let cluster = SimCluster::new(options);
    let mut drivers = JoinSet::new();
    drivers.spawn(cluster.clone().run());
    let controls = [0, 1, 2].map(|number| SimControlPlane::new(setup.seed ^ number));
    let (plan, about) = (&setup.plan, &setup.about);
    let shared = Arc::new(Shared::new(cluster, controls, about, plan, setup.is_loud));
    prepare(&shared);
    let mut extent = Extent::default();
    let outcome = match Incarnation::start(&shared, setup.seed).await {
        Ok(agent) => {
            let mut driver = Driver::new(&shared, agent, setup);
            driver.go(ms(setup.chaos), &mut extent).await
        }
        Err(problem) => Err(format!("it does not start: {problem}")),
    };
    shared.with(|ledger| {
        if let Err(text) = outcome {
            ledger.violate("run", text);
        }
        Outcome {
            violation: ledger.violation().cloned(),
            hash: ledger.hash(),
            counts: ledger.counts.clone(),
            applied: ledger.applied,
            extent,
            lasted: ledger.now(),
            trace: ledger.tail().cloned().collect(),
        }
    })
}

/// What is there before krane.
fn prepare(shared: &Shared) {
    let _ = shared.admin.create_namespace(labels::SENTINEL_NAMESPACE);
    shared.put_secret();
}

impl Driver {
    fn new(shared: &Arc<Shared>, agent: Incarnation, setup: &Setup) -> Self {
        let mut driver = Self {
            shared: Arc::clone(shared),
            world: World::new(shared, setup.script.clone()),
            #[cfg(debug_assertions)]
            first: agent.board.clone(),
            agent,
            chance: Rng::with_seed(setup.seed),
            seed: setup.seed,
            agenda: BTreeMap::new(),
            scheduled: 0,
            plan: setup.plan.clone(),
            patience: setup.patience,
            about: setup.about.clone(),
        };
        for (at, step) in &setup.script.steps {
            driver.schedule(ms(*at), Due::Step(*step));
        }
        for fault in &setup.plan.faults {
            if let Fault::World(at, what) = fault {
                driver.schedule(ms(*at), Due::Fault(*what));
            }
        }
        driver.plant_actor_faults();
        driver
    }

    #[cfg(not(debug_assertions))]
    #[allow(clippy::unused_self, reason = "the shape of the one with hooks")]
    fn plant_actor_faults(&self) {}

    #[cfg(debug_assertions)]
    fn plant_actor_faults(&self) {
        use crate::plan::{ACTORS, ActorFault};
        use krane_supervision::fault::Fault as Hook;
        for fault in &self.plan.faults {
            if let Fault::Actor(which, what) = fault {
                let (hook, skip) = match *what {
                    ActorFault::Panic(skip) => (Hook::Panic, skip),
                    ActorFault::PanicAfter(skip) => (Hook::PanicAfter, skip),
                    ActorFault::Fail(skip) => (Hook::Fail, skip),
                    ActorFault::Hang(skip) => (Hook::Hang, skip),
                };
                let path = ACTORS[which % ACTORS.len()];
                self.first.inject(path, hook.next().after(skip));
                self.shared.with(|ledger| {
                    ledger.panics += 1;
                    ledger.count(fault.kind());
                });
            }
        }
    }

    fn schedule(&mut self, at: Duration, due: Due) {
        self.scheduled += 1;
        self.agenda.insert((at, self.scheduled), due);
    }

    fn check(&self) -> Result<(), String> {
        let violation = self.shared.with(|ledger| ledger.violation().cloned());
        violation.map_or(Ok(()), Err)
    }

    async fn go(&mut self, chaos: Duration, extent: &mut Extent) -> Result<(), String> {
        let end = self.shared.with(|ledger| ledger.began) + chaos;
        self.pass(end).await?;
        *extent = self.shared.extent();
        self.calm_down();
        let settled = self.settle().await;
        #[cfg(debug_assertions)]
        {
            extent.actors = crate::plan::ACTORS.map(|path| self.first.messages(path));
        }
        settled
    }

    /// Lets time pass until then, and does what is due.
    async fn pass(&mut self, until: Instant) -> Result<(), String> {
        let began = self.shared.with(|ledger| ledger.began);
        loop {
            let next = self.agenda.first_key_value();
            let due = next.map_or(until, |((at, _), _)| (began + *at).min(until));
            let look = (Instant::now() + LOOK).min(due);
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                biased;
                () = shared.violated.notified() => return self.check(),
                () = shared.crashed.notified() => self.rise_again().await?,
                exit = self.agent.root.finished() => {
                    return Err(format!("S12: the root ended: {exit:?}"));
                }
                () = sleep_until(look) => {}
            }
            self.look_around()?;
            while let Some(entry) = self.agenda.first_entry() {
                if began + entry.key().0 > Instant::now() {
                    break;
                }
                let due = entry.remove();
                self.carry_out(due);
            }
            if Instant::now() >= until {
                return self.check();
            }
        }
    }

    fn carry_out(&mut self, due: Due) {
        let now = self.shared.with(|ledger| ledger.now());
        match due {
            Due::Step(step) => self.world.take_step(step),
            Due::Undo(what) => self.undo(&what),
            Due::Fault(fault) => match self.world.strike(fault) {
                Deed::Nothing => {}
                Deed::Later(after, what) => self.schedule(now + ms(after), Due::Undo(what)),
                Deed::Crash => self.agent.epoch.crash(),
                Deed::Kill(path) => {
                    self.agent.board.kill(path);
                }
                Deed::Lag(versions, time) => {
                    self.agent.lag(versions);
                    self.shared.with(|ledger| ledger.was_lagging = true);
                    self.schedule(now + ms(time), Due::Undo(Undo::Lag));
                }
            },
        }
    }

    fn undo(&mut self, what: &Undo) {
        if *what == Undo::Lag {
            self.agent.lag(0);
        }
        self.world.undo(what);
    }

    /// The process died: what is left of it is taken away, and another one starts.
    async fn rise_again(&mut self) -> Result<(), String> {
        self.agent.bury();
        let pause = ms(self.chance.u64(100..5_000));
        sleep(pause).await;
        self.agent = Incarnation::start(&self.shared, self.seed).await?;
        Ok(())
    }

    /// Whose actors nothing happens to, where everything planned happens to one other controller's.
    fn untouched(&self) -> Option<Controller> {
        let mut faults = self.plan.faults.iter();
        let is_of = |fault: &Fault, who: Controller| match fault {
            Fault::Actor(which, _) => !workers_of(who).contains(which),
            _ => false,
        };
        let about = *self.about.first()?;
        let who = Controller::ALL.into_iter().find(|who| *who != about)?;
        (!self.plan.faults.is_empty() && faults.all(|fault| is_of(fault, who))).then_some(who)
    }

    /// S11, S14, and panics that nobody planned.
    fn look_around(&self) -> Result<(), String> {
        if let Some(text) = self.agent.overflow() {
            return Err(format!("S11: {text}"));
        }
        if self.agent.is_parked() {
            self.shared.with(|ledger| {
                ledger.count("seen parked");
                // It starts over from nothing, like a new process.
                ledger.forget_received();
                if ledger.has_history {
                    ledger.floor.clear();
                }
            });
        }
        if let Some(text) = self.untouched().and_then(|who| self.agent.touched(who)) {
            return Err(format!("S14: {text}"));
        }
        let planned = self.shared.with(|ledger| ledger.panics);
        let panics = self.agent.panics();
        if panics > planned {
            return Err(format!("{panics} panics or hangs, {planned} planned"));
        }
        Ok(())
    }

    /// From now on nothing goes wrong.
    fn calm_down(&mut self) {
        let due = std::mem::take(&mut self.agenda);
        for due in due.into_values() {
            match due {
                Due::Undo(what) => self.undo(&what),
                Due::Step(step) => self.world.take_step(step),
                Due::Fault(_) => {}
            }
        }
        self.world.undo(&Undo::Memory);
        let has_forgotten = self
            .shared
            .with(|ledger| ledger.counts.contains_key("seen parked"));
        self.world.mend(has_forgotten);
        for control in &self.shared.controls {
            control.give_back();
            control.heal();
            control.replay_order(Order::ByVersion);
        }
        self.shared.is_cluster_away.store(false, Ordering::Relaxed);
        self.shared.late.lock().abort_all();
        self.shared.with(|ledger| {
            ledger.is_chaos = false;
            ledger.note("quiet");
        });
    }

    fn needs_replays(&self) -> bool {
        let is_out_of_order = |fault: &Fault| {
            matches!(
                fault,
                Fault::Message(_, MessageFault::Swap)
                    | Fault::World(
                        _,
                        WorldFault::Order(_)
                            | WorldFault::History
                            // What a person has to mend is looked at rarely.
                            | WorldFault::Squat(_)
                            | WorldFault::Restore(_)
                            | WorldFault::Amnesia(_)
                    )
            )
        };
        self.plan.faults.iter().any(is_out_of_order)
    }

    async fn settle(&mut self) -> Result<(), String> {
        let mut patience = PARKED;
        while self.agent.is_parked() && !patience.is_zero() {
            self.pass(Instant::now() + LOOK).await?;
            patience = patience.saturating_sub(LOOK);
        }
        let limit = match self.patience {
            Some(patience) => patience,
            None if self.needs_replays() => CONVERGENCE + REPLAYS,
            None => CONVERGENCE,
        };
        self.until("L1", limit, |driver| {
            quiet::difference(&driver.shared, driver.unix_seconds())
                .or_else(|| driver.agent.disorder())
        })
        .await?;
        self.until("L2", REPORTS, |driver| quiet::untold(&driver.shared))
            .await?;
        // A writer that is slow to rest is given the time that the specification gives it.
        let has_squatters = self.plan.has(|fault| matches!(fault, WorldFault::Squat(_)));
        // What a person has to mend is looked at rarely.
        let rest = if has_squatters { RARELY } else { CONVERGENCE };
        self.pass(Instant::now() + rest).await?;
        let before = self.shared.with(|ledger| ledger.writes);
        self.pass(Instant::now() + SILENCE).await?;
        let writes = self.shared.with(|ledger| ledger.writes) - before;
        if writes > 0 {
            return Err(format!("L1: {writes} writes with nothing to write"));
        }
        if let Some(text) = quiet::difference(&self.shared, self.unix_seconds()) {
            return Err(format!("L1: not stable: {text}"));
        }
        self.stop().await
    }

    fn unix_seconds(&self) -> u64 {
        1_767_225_600 + self.shared.with(|ledger| ledger.now()).as_secs()
    }

    async fn until(
        &mut self,
        which: &str,
        limit: Duration,
        look: impl Fn(&Self) -> Option<String>,
    ) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        let mut pause = ms(1_000);
        loop {
            let Some(text) = look(self) else {
                return Ok(());
            };
            if Instant::now() >= deadline {
                return Err(format!("{which}: after {limit:?}: {text}"));
            }
            self.pass(Instant::now() + pause).await?;
            pause = (pause * 3 / 2).min(ms(15_000));
        }
    }

    /// S12: it stops in order, and nothing of it is left.
    async fn stop(&mut self) -> Result<(), String> {
        let exit = timeout(Duration::from_secs(11), self.agent.root.stop()).await;
        match exit {
            Ok(Exit::Stopped) => Ok(()),
            other => Err(format!("S12: it does not stop: {other:?}")),
        }
    }
}
