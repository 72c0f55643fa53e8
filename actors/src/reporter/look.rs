//! What is seen becomes reports.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use krane_domain::desired::Change;
use krane_domain::ids::{Moment, ObjectKey};
use krane_domain::kinds::{self, Observation};
use krane_domain::object::LiveObject;

use super::{Reporter, ReporterMessage, SPREAD, SPREAD_PER_OBJECT, WARNINGS};
use crate::events::Happening;
use crate::status::Context;
use crate::store::Memory;

impl Reporter {
    /// Looks at everything once: live objects are reported, and what the control plane was told
    /// of and is no longer there is reported as gone.
    pub(super) fn look_at_all(&mut self, context: &Context<ReporterMessage>) {
        let now = context.board.now();
        let store = Arc::clone(&self.store);
        store.with(|memory| {
            memory.outbox.abandon(now);
            memory.breaker.abandon_probe(now);
            if memory.view.is_blind() {
                // Everything is looked at when it can be seen again.
                return;
            }
            memory.to_observe.clear();
            let mut keys: BTreeSet<ObjectKey> = memory
                .view
                .workloads()
                .map(|live| live.reference.key())
                .collect();
            keys.extend(memory.outbox.live().cloned());
            keys.extend(memory.followers.known(store.controller()));
            let spread = SPREAD.min(
                SPREAD_PER_OBJECT.saturating_mul(u32::try_from(keys.len()).unwrap_or(u32::MAX)),
            );
            for key in keys {
                let at = now + spread.mul_f64(store.chance().unit());
                self.observe(memory, &key, now, at, context);
            }
        });
    }

    pub(super) fn look_at_changed(&mut self, context: &Context<ReporterMessage>) {
        let now = context.board.now();
        let store = Arc::clone(&self.store);
        let is_on = self.duty.is_on();
        store.with(|memory| {
            if memory.view.is_blind() {
                return;
            }
            let changed = std::mem::take(&mut memory.to_observe);
            // Once this process leads everything is looked at.
            for key in changed.into_iter().filter(|_| is_on) {
                self.observe(memory, &key, now, now, context);
            }
        });
    }

    fn observe(
        &mut self,
        memory: &mut Memory,
        key: &ObjectKey,
        now: Moment,
        at: Moment,
        context: &Context<ReporterMessage>,
    ) {
        let Some(live) = memory.view.workload(key).cloned() else {
            Self::observe_absence(memory, key, now);
            return;
        };
        if kinds::question_id(self.store.controller(), &live).is_none() {
            if self.warn_once(&live) {
                tracing::warn!(object = %live.reference, "its id label is missing: left alone");
            }
            return;
        }
        let Some(observation) = self.digest(memory, &live) else {
            return;
        };
        let controller = self.store.controller();
        memory
            .followers
            .show(controller, &observation.report, &live);
        let is_of_the_scheduler = memory.is_of_the_scheduler(key);
        if !is_of_the_scheduler && !is_the_one_of_its_name(memory, key) {
            if self.warn_once(&live) {
                tracing::error!(
                    object = %live.reference,
                    "another namespace has a workload of this name; reports carry no namespace, so \
                 this one is not reported: rename one of them"
                );
            }
            return;
        }
        match observation.outdated {
            0 => memory.outdated.remove(key),
            outdated => memory.outdated.insert(key.clone(), outdated),
        };
        self.note_config_error(memory, key, observation.config_error, context);
        // The control plane knows nothing of what the scheduler wants (D32).
        if !is_of_the_scheduler {
            memory.outbox.observe(observation.report, now, at);
        }
    }

    /// Says once why pods cannot start, and shows it until they can.
    fn note_config_error(
        &self,
        memory: &mut Memory,
        key: &ObjectKey,
        error: Option<Arc<str>>,
        context: &Context<ReporterMessage>,
    ) {
        let Some(error) = error else {
            memory.config_errors.remove(key);
            return;
        };
        let before = memory.config_errors.insert(key.clone(), Arc::clone(&error));
        if before.as_ref() == Some(&error) {
            return;
        }
        let controller = self.store.controller().name();
        tracing::warn!(controller, %key, %error, "its pods cannot start");
        let what = Happening::PodsCannotStart {
            key: key.clone(),
            error,
        };
        self.record(what, context);
    }

    fn warn_once(&mut self, live: &LiveObject) -> bool {
        if self.warned.len() > WARNINGS {
            self.warned.clear();
        }
        self.warned.insert(Arc::clone(&live.uid))
    }

    /// A panic over the pods of one workload leaves all others alone.
    fn digest(&self, memory: &Memory, live: &LiveObject) -> Option<Observation> {
        let pods = memory.view.pods_of(live);
        let pods: Vec<_> = pods.iter().map(AsRef::as_ref).collect();
        let (controller, rules) = (self.store.controller(), self.store.rules());
        let digest = AssertUnwindSafe(|| kinds::observe(controller, live, &pods, rules));
        std::panic::catch_unwind(digest).unwrap_or_else(|_| {
            self.metrics.lane_panics.inc();
            tracing::error!(object = %live.reference, "its pods made krane panic: not reported");
            None
        })
    }

    fn observe_absence(memory: &mut Memory, key: &ObjectKey, now: Moment) {
        memory.outdated.remove(key);
        memory.config_errors.remove(key);
        memory.followers.lose(memory.view.controller(), key);
        let told = memory.outbox.wanted(&key.name);
        let Some(told) = told.filter(|told| !told.is_gone() && told.key() == key) else {
            return;
        };
        let state = memory.backlog.state(key);
        if state.is_some_and(|state| state.change != Ok(Change::Delete)) {
            // It is desired, so it is made again: only what ran of it is gone (D27).
            let report = told.emptied();
            memory.outbox.observe(report, now, now);
        } else {
            memory.outbox.observe_gone(key, None, now);
        }
    }
}

/// Whether this workload is the one reported under its name: the one already told of, else the
/// first by namespace.
fn is_the_one_of_its_name(memory: &Memory, key: &ObjectKey) -> bool {
    let mut namespaces = memory.told_namespaces(&key.name).peekable();
    let first = namespaces
        .peek()
        .is_some_and(|first| **first == key.namespace);
    let told = memory.outbox.wanted(&key.name);
    let told = told.filter(|told| !told.is_gone() && memory.view.workload(told.key()).is_some());
    told.map_or(first, |told| told.key() == key)
}
