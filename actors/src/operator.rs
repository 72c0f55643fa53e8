//! What a person may tell a controller to do, beside its work.
//!
//! Nothing here waits for an actor: a word is left in the store, and the actor is woken.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use krane_domain::ids::{Controller, ObjectKey, WorkKey};
use krane_domain::refusal::Refusal;

use crate::address::Address;
use crate::events::Happening;
use crate::ports::Cluster;
use crate::reconciler::{self, ReconcilerMessage};
use crate::resync::ResyncMessage;
use crate::status::StatusBoard;
use crate::store::Store;

/// The hand of a person on one controller.
#[derive(Clone)]
pub struct Operator {
    /// What the controller knows.
    pub store: Arc<Store>,
    /// Whom to wake for work.
    pub reconciler: Address<ReconcilerMessage>,
    /// Whom to wake for a pass over all objects.
    pub resync: Address<ResyncMessage>,
    /// Whether writes are allowed (`safety.writes`); all controllers share it.
    pub writes: Arc<AtomicBool>,
    /// Where objects are put on hold.
    pub cluster: Arc<dyn Cluster>,
    /// Where it is told.
    pub board: StatusBoard,
}

impl Operator {
    /// Whose it is.
    pub fn controller(&self) -> Controller {
        self.store.controller()
    }

    /// Deletes what the brake holds, now (D7). Returns which objects.
    pub fn allow_deletes(&self) -> BTreeSet<ObjectKey> {
        let now = self.board.now();
        let keys = self.store.with(|memory| memory.allow_deletes(now));
        if !keys.is_empty() {
            tracing::warn!(
                controller = self.controller().name(),
                objects = keys.len(),
                "a person allowed the deletions that were held"
            );
            let objects = keys.len();
            self.tell(Happening::DeletesAllowed { objects });
            reconciler::nudge(&self.reconciler);
        }
        keys
    }

    /// Tries what waits at once: this workload with what it needs, or everything. Returns how many
    /// keys.
    pub fn retry(&self, key: Option<&ObjectKey>) -> usize {
        let now = self.board.now();
        let work = key.map(|key| WorkKey::Workload(key.clone()));
        let count = self
            .store
            .with(|memory| memory.backlog.retry_now(work.as_ref(), now));
        self.asked("retry", key.cloned());
        reconciler::nudge(&self.reconciler);
        count
    }

    fn look(&self, key: &ObjectKey) {
        let now = self.board.now();
        let work = WorkKey::Workload(key.clone());
        self.store.with(|memory| {
            memory.backlog.retry_now(Some(&work), now);
            memory.backlog.look(&work, now);
        });
        reconciler::nudge(&self.reconciler);
    }

    /// Asks the control plane about every object now. Whether the word got through: a controller
    /// that is down, or not allowed to write, makes no pass.
    pub fn resync(&self) -> bool {
        self.asked("resync", None);
        self.resync.try_send(ResyncMessage::Now).is_ok()
    }

    /// Switches all writes of this process on or off. Whether that was news.
    pub fn set_writes(&self, are_on: bool) -> bool {
        let is_news = self.writes.swap(are_on, Ordering::Relaxed) != are_on;
        if is_news {
            self.asked(if are_on { "writes on" } else { "writes off" }, None);
        }
        is_news
    }

    /// Writes were switched on: what waited for that goes on.
    pub fn go_on(&self) {
        let now = self.board.now();
        self.store.with(|memory| memory.backlog.retry_waiting(now));
        reconciler::nudge(&self.reconciler);
    }

    /// Puts the workload's primary object on hold until then, or ends that (D22c). `until` is
    /// RFC 3339. Nothing when there is no such object.
    ///
    /// # Errors
    ///
    /// The API server's refusal.
    pub async fn hold(&self, key: &ObjectKey, until: Option<&str>) -> Result<Option<()>, Refusal> {
        let live = self.store.with(|memory| memory.view.workload(key).cloned());
        let Some(live) = live else { return Ok(None) };
        let held = self.cluster.hold(&live.reference, &live.uid, until).await;
        held?;
        self.asked(
            if until.is_some() { "hold" } else { "release" },
            Some(key.clone()),
        );
        self.look(key);
        Ok(Some(()))
    }

    fn asked(&self, action: &'static str, key: Option<ObjectKey>) {
        let controller = self.controller().name();
        let workload = key.as_ref().map(ToString::to_string);
        tracing::warn!(controller, action, workload, "a person asked for this");
        self.tell(Happening::Asked { action, key });
    }

    fn tell(&self, what: Happening) {
        self.board.record(Some(self.controller()), what);
    }
}

/// Stores and ports are shared by all; what tells operators apart is whose they are.
impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator")
            .field("controller", &self.controller())
            .finish_non_exhaustive()
    }
}
