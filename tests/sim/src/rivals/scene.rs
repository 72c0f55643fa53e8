//! What the processes share, and the judge of what they do.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use krane_domain::lease::Timing;
use krane_domain::object::ObjectRef;
use krane_sim::cluster::{SimCluster, SimLeases};
use krane_sim::control_plane::SimControlPlane;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Rivalry;

/// As configured by default.
pub(super) const TIMING: Timing = Timing {
    duration: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};
/// How long after it sent a renewal its sender may begin to write, as the rules say: no defect of
/// the agent's own reckoning moves this.
const WINDOW: Duration = Duration::from_secs(10);
/// Lines of the trace that are kept.
const KEPT: usize = 2_000;

/// The world of both.
pub(super) struct Scene {
    pub(super) cluster: SimCluster,
    pub(super) leases: SimLeases,
    /// One for each controller, in the order of all.
    pub(super) controls: [SimControlPlane; 3],
    pub(super) began: Instant,
    /// Writes that arrive when their sender has given up.
    pub(super) late: Mutex<JoinSet<()>>,
    judge: Mutex<Judge>,
}

#[derive(Default)]
struct Judge {
    /// Who the Lease says holds it.
    holder: Option<Arc<str>>,
    /// When each process sent the last renewal that it knows to have succeeded.
    renewed: BTreeMap<Arc<str>, Instant>,
    /// The newest round that was written of each object.
    rounds: BTreeMap<ObjectRef, u64>,
    writes: u64,
    violation: Option<String>,
    counts: BTreeMap<&'static str, u64>,
    hash: u64,
    trace: Vec<String>,
}

/// A write on its way.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) who: Arc<str>,
    pub(super) call: &'static str,
    pub(super) object: ObjectRef,
    pub(super) round: Option<u64>,
    /// Whether its sender is not waiting for it any more.
    pub(super) is_abandoned: bool,
}

impl Scene {
    pub(super) fn new(cluster: SimCluster, seed: u64) -> Self {
        Self {
            cluster,
            leases: SimLeases::default(),
            controls: [0, 1, 2].map(|number| SimControlPlane::new(seed ^ number)),
            began: Instant::now(),
            late: Mutex::default(),
            judge: Mutex::default(),
        }
    }

    pub(super) fn note(&self, line: &str) {
        let at = self.began.elapsed();
        self.judge.lock().note(at, line);
    }

    pub(super) fn count(&self, what: &'static str) {
        *self.judge.lock().counts.entry(what).or_default() += 1;
    }

    /// Writes that were begun so far.
    pub(super) fn writes(&self) -> u64 {
        self.judge.lock().writes
    }

    pub(super) fn violation(&self) -> Option<String> {
        self.judge.lock().violation.clone()
    }

    pub(super) fn violate(&self, text: String) {
        let at = self.began.elapsed();
        self.judge.lock().violate(at, text);
    }

    /// The Lease is as this process wrote it.
    pub(super) fn committed(&self, who: &Arc<str>, holder: Option<&Arc<str>>) {
        let at = self.began.elapsed();
        let mut judge = self.judge.lock();
        if judge.holder.as_ref() != holder {
            judge.note(at, &format!("{who}: the lease goes to {holder:?}"));
            *judge.counts.entry("handovers").or_default() += 1;
        }
        judge.holder = holder.cloned();
    }

    /// This process hears that its renewal succeeded, which it sent then.
    pub(super) fn renewed(&self, who: &Arc<str>, sent_at: Instant) {
        self.judge.lock().renewed.insert(Arc::clone(who), sent_at);
    }

    /// A process says something that only the holder may say.
    pub(super) fn speaks(&self, who: &Arc<str>, what: &str) {
        let at = self.began.elapsed();
        let mut judge = self.judge.lock();
        judge.note(at, &format!("{who}: {what}"));
        judge.check(at, who, what);
    }

    /// A process begins to write. It must hold the Lease then.
    pub(super) fn begins(&self, write: &Write) {
        let at = self.began.elapsed();
        let Write {
            who, call, object, ..
        } = write;
        let line = format!("{call} {object} in {:?}", write.round);
        let mut judge = self.judge.lock();
        judge.writes += 1;
        judge.note(at, &format!("{who}: {line}"));
        judge.check(at, who, &line);
    }

    /// A write takes effect now. One of a holder never puts an older state in the place of a newer
    /// one; what was begun in time and arrives late may, and must be made good.
    pub(super) fn took_effect(&self, write: &Write) {
        let at = self.began.elapsed();
        let mut judge = self.judge.lock();
        let is_holders = judge.holder.as_ref() == Some(&write.who);
        if !is_holders {
            judge.note(at, &format!("late: {write:?}"));
            *judge
                .counts
                .entry("writes beside another holder")
                .or_default() += 1;
        }
        let Some(round) = write.round else { return };
        let newest = judge.rounds.get(&write.object).copied().unwrap_or_default();
        if round >= newest {
            judge.rounds.insert(write.object.clone(), round);
        } else if is_holders && !write.is_abandoned {
            judge.violate(
                at,
                format!("S2: round {newest} was in place before {write:?}"),
            );
        } else {
            *judge.counts.entry("older over newer, late").or_default() += 1;
        }
    }

    pub(super) fn result(&self) -> Rivalry {
        let judge = self.judge.lock();
        Rivalry {
            violation: judge.violation.clone(),
            hash: judge.hash,
            counts: judge.counts.clone(),
            trace: judge.trace.clone(),
        }
    }
}

impl Judge {
    fn note(&mut self, at: Duration, line: &str) {
        let mut hasher = DefaultHasher::new();
        (self.hash, at, line).hash(&mut hasher);
        self.hash = hasher.finish();
        if self.trace.len() == KEPT {
            self.trace.remove(0);
        }
        self.trace
            .push(format!("{:>10.3} {line}", at.as_secs_f64()));
    }

    fn violate(&mut self, at: Duration, text: String) {
        self.note(at, &format!("VIOLATION {text}"));
        self.violation.get_or_insert(text);
    }

    fn check(&mut self, at: Duration, who: &Arc<str>, what: &str) {
        let age = self.renewed.get(who).map(Instant::elapsed);
        let is_in_time = age.is_some_and(|age| age < WINDOW);
        if is_in_time && self.holder.as_ref() == Some(who) {
            return;
        }
        let holder = &self.holder;
        let text = format!("S4: {who}: {what}, {age:?} after its renewal, held by {holder:?}");
        self.violate(at, text);
    }
}
