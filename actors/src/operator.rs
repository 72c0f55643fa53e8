//! What a person may tell a controller to do, beside its work.
//!
//! Nothing here waits for an actor: a word is left in the store, and the actor is woken.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use krane_domain::ids::{Controller, Moment, ObjectKey, WorkKey};
use krane_domain::labels;
use krane_domain::refusal::Refusal;
use krane_ports::Cluster;
use krane_supervision::address::Address;

use crate::events::Happening;
use crate::lease::Leadership;
use crate::reconciler::{self, ReconcilerMessage};
use crate::resync::ResyncMessage;
use crate::status::StatusBoard;
use crate::store::Store;

/// What is told when a person switches writes off.
pub const WRITES_OFF: &str = "writes off";

/// What came of asking for a pass over all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
    /// It begins now, or after the one that is under way.
    Begins,
    /// It begins when the stream has replayed everything (D12).
    AfterReplay,
    /// This process stands by, or stops: nothing begins.
    Standby,
    /// The actor is down: it begins with its next incarnation.
    Down,
}

/// Why an object was not put on hold.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// No watch shows it.
    #[error("krane sees no such object in the cluster")]
    NoObject,
    /// It is somebody else's (D15).
    #[error("the object is not krane's, which leaves it alone anyway")]
    NotOurs,
    /// A hold is an annotation, and nothing is written.
    #[error("writes are off, so that nothing is repaired or applied anyway")]
    NoWrites,
    /// The API server did not take it.
    #[error("the API server refused it: {0}")]
    Refused(#[source] Refusal),
}

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
    /// Whether this process is the one that works.
    pub leadership: Leadership,
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
        let keys = self.store.allow_deletes(now);
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
        let count = self.store.retry_now(work.as_ref(), now);
        self.asked("retry", key.cloned());
        reconciler::nudge(&self.reconciler);
        count
    }

    fn look(&self, key: &ObjectKey) {
        self.store.check_now(key, self.board.now());
        reconciler::nudge(&self.reconciler);
    }

    /// Asks the control plane about every object now, and says what comes of that.
    pub fn resync(&self) -> Heard {
        self.asked("resync", None);
        let now = self.board.now();
        if !self.may_act(now) {
            return Heard::Standby;
        }
        if self.resync.try_send(ResyncMessage::Now).is_err() {
            return Heard::Down;
        }
        if self.store.may_resync(now) {
            Heard::Begins
        } else {
            Heard::AfterReplay
        }
    }

    /// Whether this process is the one that works.
    fn may_act(&self, now: Moment) -> bool {
        self.leadership.is_leader(now) && !self.store.is_halted()
    }

    /// Whether this process may write now.
    pub fn may_write(&self) -> bool {
        self.may_act(self.board.now()) && self.writes.load(Ordering::Relaxed)
    }

    /// Switches all writes of this process on or off. Whether that was news.
    pub fn set_writes(&self, are_on: bool) -> bool {
        let is_news = self.writes.swap(are_on, Ordering::Relaxed) != are_on;
        if is_news {
            let action = if are_on { "writes on" } else { WRITES_OFF };
            tracing::warn!(action, "a person asked for this");
            // All controllers share it.
            self.board
                .record(None, Happening::Asked { action, key: None });
        }
        is_news
    }

    /// Writes were switched on: what waited for that goes on.
    pub fn go_on(&self) {
        self.store.retry_waiting(self.board.now());
        reconciler::nudge(&self.reconciler);
    }

    /// Puts the workload's primary object on hold until then, or ends that (D22c). `until` is
    /// RFC 3339. Whether that was news: what is not on hold needs no end of it.
    ///
    /// # Errors
    ///
    /// Why nothing was written.
    pub async fn hold(&self, key: &ObjectKey, until: Option<&str>) -> Result<bool, HoldError> {
        if self.store.is_halted() || !self.writes.load(Ordering::Relaxed) {
            return Err(HoldError::NoWrites);
        }
        let live = self.store.live_workload(key);
        let live = live.ok_or(HoldError::NoObject)?;
        if !live.is_ours() {
            return Err(HoldError::NotOurs);
        }
        let is_held =
            || !live.value()["metadata"]["annotations"][labels::HOLD_ANNOTATION].is_null();
        if until.is_none() && !is_held() {
            return Ok(false);
        }
        let held = self.cluster.hold(&live.reference, &live.uid, until).await;
        let held = held.map_err(HoldError::Refused)?;
        // The next lane has to see it, whether or not the watch was faster.
        self.store.note_live_object(held);
        let what = if until.is_some() { "hold" } else { "release" };
        self.asked(what, Some(key.clone()));
        self.look(key);
        Ok(true)
    }

    /// Tells that a person asked for something that is done elsewhere.
    pub fn note(&self, action: &'static str) {
        self.asked(action, None);
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
