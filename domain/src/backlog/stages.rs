//! How far the newest version of an object has come, and when it got there.

use std::time::Duration;

use super::Backlog;
use crate::ids::{Moment, ObjectKey, WorkKey};
use crate::trace::TraceContext;

/// A report later than this after the apply tells of something else.
const REPORTED_WITHIN: Duration = Duration::from_secs(600);

/// The way of one desired version, from its arrival to the report about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// The version; 0 if an answer to a question was the first word.
    pub version: u64,
    /// When it was taken in.
    pub received: Moment,
    /// When a lane first took it up.
    pub started: Option<Moment>,
    /// When the cluster was first as it wants it.
    pub applied: Option<Moment>,
    /// When a report was delivered that became due after that. None is awaited where nothing had
    /// to be written.
    pub reported: Option<Moment>,
    /// Whether something had to be written for it.
    pub wrote: bool,
}

impl Stages {
    pub(super) const fn received(version: u64, now: Moment) -> Self {
        Self {
            version,
            received: now,
            started: None,
            applied: None,
            reported: None,
            wrote: false,
        }
    }

    /// A lane takes it up. How long it was waited for, if this is the first one.
    pub(super) fn start(&mut self, now: Moment) -> Option<Duration> {
        let is_first = self.started.is_none();
        self.started.get_or_insert(now);
        is_first.then(|| now.saturating_sub(self.received))
    }

    /// The cluster is as wanted. How long that took since the first lane, the first time.
    pub(super) fn apply(&mut self, wrote: bool, now: Moment) -> Option<Duration> {
        if self.applied.is_some() {
            return None;
        }
        self.applied = Some(now);
        self.wrote = wrote;
        Some(now.saturating_sub(self.started?))
    }

    fn report(&mut self, since: Moment, now: Moment) -> Option<Duration> {
        let (started, applied) = (self.started?, self.applied?);
        let lag = now.saturating_sub(applied);
        let is_about_it = self.wrote && since >= started && lag <= REPORTED_WITHIN;
        if self.reported.is_some() || !is_about_it {
            return None;
        }
        self.reported = Some(now);
        Some(lag)
    }
}

impl Backlog {
    /// How far the newest version of this object has come.
    pub fn stages(&self, key: &ObjectKey) -> Option<Stages> {
        self.entries.get(&WorkKey::Workload(key.clone()))?.stages
    }

    /// Whether a report is awaited that tells of the newest version of this object.
    pub fn awaits_report(&self, key: &ObjectKey, now: Moment) -> bool {
        self.stages(key).is_some_and(|stages| {
            let is_recent = stages
                .applied
                .is_some_and(|at| now.saturating_sub(at) <= REPORTED_WITHIN);
            is_recent && stages.wrote && stages.reported.is_none()
        })
    }

    /// The trace of the newest state of this object, and its version.
    pub fn trace(&self, key: &ObjectKey) -> Option<(u64, TraceContext)> {
        let entry = self.entries.get(&WorkKey::Workload(key.clone()))?;
        Some((entry.stages?.version, entry.trace?))
    }

    /// A trace began when this version was received. Nothing happens when a newer one is wanted,
    /// or when its trace has begun already.
    pub fn begin_trace(&mut self, key: &ObjectKey, version: u64, trace: TraceContext) {
        if let Some(entry) = self.entries.get_mut(&WorkKey::Workload(key.clone()))
            && entry.stages.is_some_and(|stages| stages.version == version)
        {
            entry.trace.get_or_insert(trace);
        }
    }

    /// Whether this version is the newest one and its trace has not begun.
    pub fn lacks_trace(&self, key: &ObjectKey, version: u64) -> bool {
        let entry = self.entries.get(&WorkKey::Workload(key.clone()));
        entry.is_some_and(|entry| {
            entry.trace.is_none() && entry.stages.is_some_and(|stages| stages.version == version)
        })
    }

    /// A report about this object was delivered that is true since `since`. How long after the
    /// apply, if it is the first one that tells of it.
    pub fn reported(&mut self, key: &ObjectKey, since: Moment, now: Moment) -> Option<Duration> {
        let entry = self.entries.get_mut(&WorkKey::Workload(key.clone()))?;
        entry.stages.as_mut()?.report(since, now)
    }
}
