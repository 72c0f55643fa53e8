//! What happened in a run: the trace, and the facts that the invariants are about.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::Desired;
use krane_domain::report::Report;
use tokio::time::Instant;

/// Lines of the trace that are shown with a failure.
const TAIL: usize = 200_000;

/// What the control plane wants of a workload.
#[derive(Clone, Debug)]
pub(crate) enum Want {
    /// This, under this stamp.
    Apply(Desired),
    /// Nothing of it.
    Delete,
    /// What cannot be.
    Poison,
    /// It does not know it (any more).
    Unknown,
}

/// A state that reached an incarnation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) version: u64,
    pub(crate) wants: ReceivedWant,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ReceivedWant {
    Apply(u64),
    Delete,
    Poison,
}

/// Everything that is known of a run.
pub(crate) struct Ledger {
    pub(crate) began: Instant,
    hash: u64,
    tail: VecDeque<String>,
    is_loud: bool,
    violation: Option<String>,
    /// Faults that struck, by kind, and other things worth counting.
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) epoch: u64,
    pub(crate) is_chaos: bool,
    /// What is wanted now.
    pub(crate) wants: BTreeMap<ObjectKey, Want>,
    /// When a workload was last wanted gone, or forgotten.
    pub(crate) unwanted_at: BTreeMap<ObjectKey, Instant>,
    /// The newest stamp applied to each workload: older ones must not follow.
    pub(crate) floor: BTreeMap<ObjectKey, u64>,
    /// The states that a stream has brought, by their stamps.
    pub(crate) by_stream: BTreeSet<(ObjectKey, u64)>,
    /// The newest stamp that each workload has had in the cluster.
    pub(crate) reached: BTreeMap<ObjectKey, u64>,
    /// What the present incarnation received.
    pub(crate) received: BTreeMap<ObjectKey, Vec<Received>>,
    /// Up to which version each workload was deleted by the present incarnation.
    pub(crate) deleted: BTreeMap<ObjectKey, u64>,
    /// The highest version that the present incarnation received of each controller.
    pub(crate) highest: BTreeMap<Controller, u64>,
    /// Whether rows come in any order.
    pub(crate) is_disordered: bool,
    /// When the stream last spoke of each workload.
    pub(crate) spoken_of: BTreeMap<ObjectKey, Instant>,
    /// Stamps that the present incarnation met only when it knew a newer one of that workload.
    pub(crate) outdated: BTreeSet<(ObjectKey, u64)>,
    /// Calls that change an object and have not ended, by object.
    pub(crate) writing: BTreeMap<String, u32>,
    /// Uids that controllers of the present incarnation were shown.
    pub(crate) shown: BTreeSet<(Arc<str>, Controller)>,
    /// How sentinels were shown to be.
    pub(crate) health: BTreeMap<ObjectKey, Vec<Report>>,
    /// Uids of objects that krane made.
    pub(crate) made: BTreeSet<Arc<str>>,
    /// Isolation policies that were in place once, by namespace and environment.
    pub(crate) policies: BTreeSet<(String, String)>,
    /// What pods were shown to be: name, running and ready, address.
    pub(crate) pods: BTreeMap<Arc<str>, BTreeSet<(bool, String)>>,
    /// Deletions of what the control plane does not know, by this incarnation.
    pub(crate) disowned: BTreeMap<Controller, VecDeque<Instant>>,
    /// Since when the present incarnation may be shown something old.
    pub(crate) was_lagging: bool,
    /// A request arrived after its sender gave up.
    pub(crate) had_late: bool,
    /// The control plane was restored from a copy.
    pub(crate) was_restored: bool,
    /// Workloads that the present incarnation was told to delete.
    pub(crate) told_to_delete: BTreeSet<ObjectKey>,
    /// When questions about a workload were answered "not found" since it was last named.
    pub(crate) not_found: BTreeMap<ObjectKey, Vec<Instant>>,
    /// Whether replaced rows are shown, too: a new process meets them first.
    pub(crate) has_history: bool,
    /// Writes that changed or may have changed the cluster.
    pub(crate) writes: u64,
    pub(crate) applied: u64,
    /// Panics that were planned.
    pub(crate) panics: u64,
}

impl Ledger {
    pub(crate) fn new(is_loud: bool) -> Self {
        Self {
            began: Instant::now(),
            hash: 0xcbf2_9ce4_8422_2325,
            tail: VecDeque::new(),
            is_loud,
            violation: None,
            counts: BTreeMap::new(),
            epoch: 0,
            is_chaos: true,
            wants: BTreeMap::new(),
            unwanted_at: BTreeMap::new(),
            floor: BTreeMap::new(),
            by_stream: BTreeSet::new(),
            reached: BTreeMap::new(),
            received: BTreeMap::new(),
            deleted: BTreeMap::new(),
            highest: BTreeMap::new(),
            is_disordered: false,
            spoken_of: BTreeMap::new(),
            outdated: BTreeSet::new(),
            writing: BTreeMap::new(),
            shown: BTreeSet::new(),
            health: BTreeMap::new(),
            made: BTreeSet::new(),
            policies: BTreeSet::new(),
            pods: BTreeMap::new(),
            disowned: BTreeMap::new(),
            was_lagging: false,
            had_late: false,
            was_restored: false,
            told_to_delete: BTreeSet::new(),
            not_found: BTreeMap::new(),
            has_history: false,
            writes: 0,
            applied: 0,
            panics: 0,
        }
    }

    /// The present time of the run.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// One line of the trace; every line counts for the hash.
    pub(crate) fn note(&mut self, line: &str) {
        let now = self.now();
        for byte in now.as_nanos().to_le_bytes().iter().chain(line.as_bytes()) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.is_loud {
            self.tail.push_back(format!("{now:>12.3?} {line}"));
            if self.tail.len() > TAIL {
                self.tail.pop_front();
            }
        }
    }

    pub(crate) fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    /// An invariant does not hold. The first one counts.
    pub(crate) fn violate(&mut self, which: &str, how: impl AsRef<str>) {
        let text = format!("{which} at {:.3?}: {}", self.now(), how.as_ref());
        self.note(&text);
        self.violation.get_or_insert(text);
    }

    pub(crate) fn violation(&self) -> Option<&String> {
        self.violation.as_ref()
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn tail(&self) -> impl Iterator<Item = &String> {
        self.tail.iter()
    }

    /// A new process begins: it knows nothing.
    pub(crate) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.forget_received();
        self.shown.clear();
        self.disowned.clear();
        self.was_lagging = false;
        self.told_to_delete.clear();
        self.not_found.clear();
        if self.has_history {
            self.floor.clear();
        }
        let line = format!("process {} starts", self.epoch);
        self.note(&line);
    }

    /// What was received counts no more: it starts from nothing, or what was said is not true any
    /// more.
    pub(crate) fn forget_received(&mut self) {
        self.received.clear();
        self.outdated.clear();
        self.deleted.clear();
        self.highest.clear();
    }

    pub(crate) fn want(&mut self, key: &ObjectKey, want: Want) {
        if !matches!(want, Want::Apply(_) | Want::Poison) {
            self.unwanted_at.insert(key.clone(), Instant::now());
        }
        self.wants.insert(key.clone(), want);
    }
}
