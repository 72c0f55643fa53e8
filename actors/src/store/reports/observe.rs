//! What is seen of workloads becomes reports.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use krane_domain::desired::Change;
use krane_domain::ids::{Moment, ObjectKey};
use krane_domain::kinds::{self, Observation, Rules};
use krane_domain::object::LiveObject;

use crate::store::{Memory, Store};

/// First reports after a start are spread over at most this long …
const SPREAD: Duration = Duration::from_secs(10);
/// … at this much per object.
const SPREAD_PER_OBJECT: Duration = Duration::from_millis(5);

/// What is wrong with one workload whose status was observed.
#[derive(Clone, Debug)]
pub(crate) enum StatusProblem {
    /// It lacks the label with its id, and is not reported.
    NoId(Arc<LiveObject>),
    /// A workload of this name in another namespace is reported, so that this one is not.
    NameTaken(Arc<LiveObject>),
    /// Its pods made krane panic; it is not reported.
    Panicked(Arc<LiveObject>),
    /// It is reported, and its pods cannot start, for another reason than before.
    PodsCannotStart {
        /// Which workload.
        key: ObjectKey,
        /// Why, in the kubelet's words.
        error: Arc<str>,
    },
}

impl Store {
    /// Whether the status of some workload may have changed since it was last observed.
    pub(crate) fn has_workloads_to_observe(&self) -> bool {
        self.with(|memory| !memory.to_observe.is_empty())
    }

    /// Observes every workload, after giving up what was in flight: live ones are reported, and
    /// what was reported and is no longer there is reported as gone. Nothing is observed while the
    /// cluster cannot be seen. Returns what is wrong with some of them.
    pub(crate) fn observe_all(&self, now: Moment) -> Vec<StatusProblem> {
        self.with(|memory| {
            memory.abandon_reports(now);
            if memory.view.is_blind() {
                // Everything is observed when it can be seen again.
                return Vec::new();
            }
            memory.to_observe.clear();
            let mut keys: BTreeSet<ObjectKey> = memory
                .view
                .workloads()
                .map(|live| live.reference.key())
                .collect();
            keys.extend(memory.outbox.live().cloned());
            keys.extend(memory.followers.known(self.controller));
            let spread = SPREAD.min(
                SPREAD_PER_OBJECT.saturating_mul(u32::try_from(keys.len()).unwrap_or(u32::MAX)),
            );
            let mut problems = Vec::new();
            for key in keys {
                let at = now + spread.mul_f64(self.chance.unit());
                problems.extend(memory.observe_status(&key, &self.rules, now, at));
            }
            problems
        })
    }

    /// Observes the workloads whose status may have changed. Returns what is wrong with some of
    /// them.
    pub(crate) fn observe_changed(&self, now: Moment) -> Vec<StatusProblem> {
        self.with(|memory| {
            let changed = memory.take_changed().into_iter();
            changed
                .filter_map(|key| memory.observe_status(&key, &self.rules, now, now))
                .collect()
        })
    }

    /// Forgets whose status may have changed: once this process leads, everything is observed.
    pub(crate) fn skip_changed(&self) {
        self.with(|memory| drop(memory.take_changed()));
    }
}

impl Memory {
    /// What may have changed, unless the cluster cannot be seen: then it is kept for later.
    fn take_changed(&mut self) -> BTreeSet<ObjectKey> {
        if self.view.is_blind() {
            return BTreeSet::new();
        }
        std::mem::take(&mut self.to_observe)
    }

    fn observe_status(
        &mut self,
        key: &ObjectKey,
        rules: &Rules,
        now: Moment,
        at: Moment,
    ) -> Option<StatusProblem> {
        let controller = self.view.controller();
        let Some(live) = self.view.workload(key).cloned() else {
            self.observe_absence(key, now);
            return None;
        };
        if kinds::question_id(controller, &live).is_none() {
            return Some(StatusProblem::NoId(live));
        }
        let observation = match self.digest(&live, rules) {
            Ok(observation) => observation?,
            Err(Panicked) => return Some(StatusProblem::Panicked(live)),
        };
        self.followers.show(controller, &observation.report, &live);
        let is_of_the_scheduler = self.is_of_the_scheduler(key);
        if !is_of_the_scheduler && !self.is_the_one_of_its_name(key) {
            return Some(StatusProblem::NameTaken(live));
        }
        match observation.outdated {
            0 => self.outdated.remove(key),
            outdated => self.outdated.insert(key.clone(), outdated),
        };
        let problem = self.note_config_error(key, observation.config_error);
        // The control plane knows nothing of what the scheduler wants (D32).
        if !is_of_the_scheduler {
            self.outbox.observe(observation.report, now, at);
        }
        problem
    }

    /// Keeps why pods cannot start until they can; a problem when that is news.
    fn note_config_error(
        &mut self,
        key: &ObjectKey,
        error: Option<Arc<str>>,
    ) -> Option<StatusProblem> {
        let Some(error) = error else {
            self.config_errors.remove(key);
            return None;
        };
        let before = self.config_errors.insert(key.clone(), Arc::clone(&error));
        let is_news = before.as_ref() != Some(&error);
        is_news.then(|| StatusProblem::PodsCannotStart {
            key: key.clone(),
            error,
        })
    }

    /// A panic over the pods of one workload leaves all others alone.
    pub(in crate::store) fn digest(
        &self,
        live: &LiveObject,
        rules: &Rules,
    ) -> Result<Option<Observation>, Panicked> {
        let controller = self.view.controller();
        let pods = self.view.pods_of(live);
        let pods: Vec<_> = pods.iter().map(AsRef::as_ref).collect();
        let digest = AssertUnwindSafe(|| kinds::observe(controller, live, &pods, rules));
        std::panic::catch_unwind(digest).map_err(|_| Panicked)
    }

    fn observe_absence(&mut self, key: &ObjectKey, now: Moment) {
        self.outdated.remove(key);
        self.config_errors.remove(key);
        self.followers.lose(self.view.controller(), key);
        let told = self.outbox.wanted(&key.name);
        let Some(told) = told.filter(|told| !told.is_gone() && told.key() == key) else {
            return;
        };
        let state = self.backlog.state(key);
        if state.is_some_and(|state| state.change != Ok(Change::Delete)) {
            // It is desired, so it is made again: only what ran of it is gone (D27).
            let report = told.emptied();
            self.outbox.observe(report, now, now);
        } else {
            self.outbox.observe_gone(key, None, now);
        }
    }

    /// Whether this workload is the one reported under its name: the one already told of, else the
    /// first by namespace.
    fn is_the_one_of_its_name(&self, key: &ObjectKey) -> bool {
        let mut namespaces = self.told_namespaces(&key.name).peekable();
        let first = namespaces
            .peek()
            .is_some_and(|first| **first == key.namespace);
        let told = self.outbox.wanted(&key.name);
        let told = told.filter(|told| !told.is_gone() && self.view.workload(told.key()).is_some());
        told.map_or(first, |told| told.key() == key)
    }
}

/// Digesting the pods of a workload made krane panic.
pub(in crate::store) struct Panicked;
