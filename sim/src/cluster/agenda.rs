//! What controllers, scheduler and nodes will do, and when.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::store::Key;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// Look at an object of a kind that has a controller.
    Sync(Key),
    /// Remove what is owned by nobody that is there.
    Collect(Key),
    /// A step in the life of the pod with this uid.
    Pod(Key, Arc<str>, PodStep),
    /// Say of a lost node's pods that they are not ready.
    DoubtNode(Arc<str>),
    /// Delete a lost node's pods.
    EvictNode(Arc<str>),
}

/// A step in the life of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PodStep {
    /// The scheduler finds a node.
    Bind,
    /// The kubelet starts its containers.
    Start,
    /// Its probe succeeds.
    BecomeReady,
    /// All containers end badly.
    Fail,
    /// A crashed container starts again.
    Restart,
    /// A deleted pod's containers have ended.
    End,
}

/// Tasks in the order in which they are due; one that waits already is not added again.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    queue: BTreeMap<(Instant, u64), Task>,
    waiting: BTreeMap<Task, (Instant, u64)>,
    number: u64,
}

impl Agenda {
    /// Adds a task; an earlier time for one that waits brings it forward.
    pub(super) fn add(&mut self, at: Instant, task: Task) {
        if let Some(place) = self.waiting.get(&task) {
            if place.0 <= at {
                return;
            }
            let place = *place;
            self.queue.remove(&place);
        }
        self.number += 1;
        let place = (at, self.number);
        self.waiting.insert(task.clone(), place);
        self.queue.insert(place, task);
    }

    pub(super) fn cancel(&mut self, task: &Task) {
        if let Some(place) = self.waiting.remove(task) {
            self.queue.remove(&place);
        }
    }

    /// The next task that is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<Task> {
        let first = self.queue.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let task = first.remove();
        self.waiting.remove(&task);
        Some(task)
    }

    /// When the next task is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }
}
