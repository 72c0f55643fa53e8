//! Many runs, over all cores: how they went together, and what is left of a failing one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use krane_domain::ids::Controller;
use parking_lot::Mutex;

use crate::plan::{Intensity, Plan, at_random};
use crate::run::{Outcome, Setup, run};
use crate::script::Script;
use crate::shrink::shrink;

/// How long the chaos of a random run is, in virtual milliseconds.
const CHAOS: u64 = 600_000;

/// What many runs came to.
#[derive(Debug, Default)]
pub struct Summary {
    /// Runs.
    pub runs: u64,
    /// Faults that struck, by kind.
    pub counts: BTreeMap<String, u64>,
    /// Applies that the cluster took.
    pub applied: u64,
    /// Virtual hours.
    pub hours: f64,
    /// How long they took, all cores at work.
    pub took: Duration,
    /// The first failures, with what it takes to see them again.
    pub failures: Vec<String>,
}

impl Summary {
    fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.applied += outcome.applied;
        self.hours += outcome.lasted.as_secs_f64() / 3600.0;
        for (kind, count) in &outcome.counts {
            *self.counts.entry(kind.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} runs in {:.0} s, {:.0} virtual hours, {} states applied, {} failed",
            self.runs,
            self.took.as_secs_f64(),
            self.hours,
            self.applied,
            self.failures.len()
        )?;
        for (kind, count) in &self.counts {
            writeln!(f, "  {count:>8}  {kind}")?;
        }
        for failure in &self.failures {
            writeln!(f, "{failure}")?;
        }
        Ok(())
    }
}

/// Does this with every item, side by side on as many threads as there are cores.
pub fn on_all_cores<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

/// A number from the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The run that follows from a seed.
pub fn seeded(seed: u64) -> Setup {
    let mut chance = fastrand::Rng::with_seed(seed);
    // Mostly few: faults meet the same objects again. Now and then many.
    let workloads = match chance.u8(..100) {
        0 => chance.usize(50..=200),
        1..=9 => chance.usize(10..30),
        _ => chance.usize(1..6),
    };
    let script = Script::at_random(&mut chance, workloads, CHAOS);
    let subjects = u64::try_from(script.subjects().len()).unwrap_or_default();
    let calls = 250 + 20 * subjects;
    let intensity = Intensity {
        chaos: CHAOS,
        calls,
    };
    let plan = at_random(&mut chance, intensity);
    Setup {
        seed,
        script,
        plan,
        chaos: CHAOS,
        about: Controller::ALL.to_vec(),
        patience: None,
        defect: None,
        is_loud: false,
    }
}

/// The plan that the environment asks for instead of the setup's own.
pub fn plan_asked_for() -> Option<Result<Plan, String>> {
    let text = std::env::var("KRANE_PLAN").ok()?;
    Some(Plan::parse(&text))
}

/// Does all of these, on as many threads as there are cores. A failing one is cut down to what it
/// takes. Each comes with the words that repeat it.
pub fn all(setups: &[(String, Setup)]) -> Summary {
    let began = Instant::now();
    let summary = Mutex::new(Summary::default());
    on_all_cores(setups, |(words, setup)| {
        let outcome = run(setup);
        let failure = outcome
            .violation
            .as_ref()
            .map(|text| describe(words, setup, text, summary.lock().failures.len()));
        let mut summary = summary.lock();
        summary.add(&outcome);
        summary.failures.extend(failure);
    });
    let mut summary = summary.into_inner();
    summary.took = began.elapsed();
    summary
}

fn describe(words: &str, setup: &Setup, violation: &str, earlier: usize) -> String {
    let faults = setup.plan.faults.len();
    if earlier >= 3 {
        // Cutting down takes time; a few show what is wrong.
        return format!("FAILED {violation}\n  {words} ({faults} faults)");
    }
    let (plan, text) = shrink(setup, violation);
    format!(
        "FAILED {violation}\n  cut down from {faults} faults to {}: {text}\n  {words} KRANE_PLAN='{}' \
         scripts/sim",
        plan.faults.len(),
        plan.to_text()
    )
}
