//! Whether this process may write, for everyone to ask, at every moment anew.
//!
//! It lives above the lease actor: whatever becomes of that one, the right to write ends at its
//! moment, because nobody prolonged it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::ids::Moment;
use krane_domain::lease::{Elector, Tenure};
use krane_ports::{WriteAccess, WritePermit};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::status::StatusBoard;

/// A process that needs no lease has one term that never ends.
const ALWAYS: u64 = 0;

/// The right to write of this process. Cheap to clone; by default it has it always.
#[derive(Clone, Debug, Default)]
pub struct Leadership {
    shared: Option<Arc<Shared>>,
}

#[derive(Debug)]
struct Shared {
    identity: Arc<str>,
    board: StatusBoard,
    office: Mutex<Office>,
    /// Wakes in the order in which they began to wait, so that a run can be repeated.
    changed: Notify,
    writes: Mutex<Writes>,
}

#[derive(Clone, Debug, Default)]
struct Office {
    tenure: Option<Tenure>,
    /// Counts this process's terms; 0 before the first.
    term: u64,
    /// When it last came into office, or left it.
    since: Moment,
    holder: Option<Arc<str>>,
    acquired_at: Option<u64>,
    trouble: Option<Arc<str>>,
    is_withdrawn: bool,
}

/// Writes that were let go.
#[derive(Clone, Copy, Debug, Default)]
struct Writes {
    under_way: usize,
    /// When one was last left without an answer: it may still take effect.
    left_at: Option<Moment>,
}

/// What a process is in an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It writes.
    Leader,
    /// It stands by.
    Standby,
}

impl Role {
    /// Name for pages and probes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Standby => "standby",
        }
    }
}

/// What is shown of the election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What this process is.
    pub role: Role,
    /// Since when.
    pub since: Moment,
    /// Who this process is in the election.
    pub identity: Arc<str>,
    /// Who held the lease when it was last seen.
    pub holder: Option<Arc<str>>,
    /// Since when, in seconds since the Unix epoch, as the holder wrote it.
    pub acquired_at: Option<u64>,
    /// Why the lease cannot be read or written, if it cannot.
    pub trouble: Option<Arc<str>>,
}

impl Office {
    fn term(&self, now: Moment) -> Option<u64> {
        let tenure = self.tenure.as_ref()?;
        (now < tenure.until && !self.is_withdrawn).then_some(self.term)
    }

    fn publish(&mut self, elector: &Elector, now: Moment) -> Option<Role> {
        let mut change = None;
        let was_leader = self.term(now).is_some();
        let lapsed_at = self.tenure.as_ref().map(|tenure| tenure.until);
        let is_another_term = elector.tenure().is_some_and(|new| {
            let old = self.tenure.as_ref().map(|old| &old.term);
            old != Some(&new.term)
        });
        if is_another_term {
            self.term += 1;
        }
        if let Some(tenure) = elector.tenure() {
            self.tenure = Some(tenure.clone());
        } else if let Some(tenure) = &mut self.tenure {
            // The term is kept: whoever comes back to it goes on.
            tenure.until = tenure.until.min(now);
        }
        let record = elector.record();
        self.holder = record.and_then(|record| record.holder.clone());
        self.acquired_at = record.and_then(|record| record.acquired_at);
        let is_leader = self.term(now).is_some();
        if is_leader && (!was_leader || is_another_term) {
            self.since = now;
            change = Some(Role::Leader);
        } else if !is_leader && was_leader {
            self.since = now;
            change = Some(Role::Standby);
        } else if let Some(at) = lapsed_at.filter(|_| !is_leader) {
            self.since = self.since.max(at.min(now));
        }
        change
    }
}

impl Leadership {
    /// The right to write of a process that is elected under this name.
    pub fn elected(identity: Arc<str>, board: StatusBoard) -> Self {
        let shared = Shared {
            identity,
            board,
            office: Mutex::default(),
            changed: Notify::new(),
            writes: Mutex::default(),
        };
        Self {
            shared: Some(Arc::new(shared)),
        }
    }

    /// The present term, if this process may write now. Nothing that was decided in one term is
    /// written in another one.
    pub fn term(&self, now: Moment) -> Option<u64> {
        match &self.shared {
            None => Some(ALWAYS),
            Some(shared) => shared.office.lock().term(now),
        }
    }

    /// Whether this process is the one that follows the control plane and reports.
    pub fn is_leader(&self, now: Moment) -> bool {
        self.term(now).is_some()
    }

    /// Whether a write may start now.
    pub fn may_write(&self, now: Moment) -> bool {
        self.is_leader(now)
    }

    /// Lets a write start now, if it may.
    fn let_go(&self) -> Option<PermittedWrite> {
        let Some(shared) = &self.shared else {
            return Some(PermittedWrite {
                leadership: self.clone(),
                term: Some(ALWAYS),
                is_open: true,
            });
        };
        let mut writes = shared.writes.lock();
        let term = self.term(shared.board.now())?;
        writes.under_way += 1;
        Some(PermittedWrite {
            leadership: self.clone(),
            term: Some(term),
            is_open: true,
        })
    }

    /// Waits until the term is another one than `known`, or over.
    pub async fn turned(&self, known: Option<u64>) {
        let Some(shared) = &self.shared else {
            if known == Some(ALWAYS) {
                std::future::pending::<()>().await;
            }
            return;
        };
        loop {
            // Before the look: nothing that comes after it is missed.
            let change = shared.changed.notified();
            let (term, until) = {
                let office = shared.office.lock();
                let until = office.tenure.as_ref().map(|tenure| tenure.until);
                (office.term(shared.board.now()), until)
            };
            if term != known {
                return;
            }
            match until.filter(|_| term.is_some()) {
                Some(until) => {
                    let left = until.saturating_sub(shared.board.now());
                    let _ = tokio::time::timeout(left, change).await;
                }
                None => change.await,
            }
        }
    }

    /// What is shown; nothing when no lease is used.
    pub fn shown(&self) -> Option<Shown> {
        let shared = self.shared.as_ref()?;
        let now = shared.board.now();
        let office = shared.office.lock();
        let lapsed_at = office.tenure.as_ref().map(|it| it.until);
        let (role, since) = match (office.term(now), lapsed_at) {
            (Some(_), _) => (Role::Leader, office.since),
            (None, Some(until)) => (Role::Standby, until.max(office.since).min(now)),
            (None, None) => (Role::Standby, office.since),
        };
        Some(Shown {
            role,
            since,
            identity: Arc::clone(&shared.identity),
            holder: office.holder.clone(),
            acquired_at: office.acquired_at,
            trouble: office.trouble.clone(),
        })
    }

    pub(super) fn identity(&self) -> Arc<str> {
        let shared = self.shared.as_ref();
        shared.map_or_else(|| "".into(), |shared| Arc::clone(&shared.identity))
    }

    pub(super) fn tenure(&self) -> Option<Tenure> {
        self.shared.as_ref()?.office.lock().tenure.clone()
    }

    /// Takes over what the elector reached. Returns the new role, if it is one.
    pub fn publish(&self, elector: &Elector, now: Moment) -> Option<Role> {
        let shared = self.shared.as_ref()?;
        let change = shared.office.lock().publish(elector, now);
        shared.changed.notify_waiters();
        change
    }

    /// Why requests about the lease fail; nothing when they do not.
    pub(super) fn note_trouble(&self, trouble: Option<&str>) {
        if let Some(shared) = &self.shared {
            shared.office.lock().trouble = trouble.map(Arc::from);
        }
    }

    /// Ends the right to write for good. Returns whether a write may still take effect.
    pub(super) fn withdraw(&self, duration: Duration) -> bool {
        let Some(shared) = &self.shared else {
            return false;
        };
        shared.office.lock().is_withdrawn = true;
        shared.changed.notify_waiters();
        let now = shared.board.now();
        let writes = *shared.writes.lock();
        let is_left = |at: Moment| at + duration > now;
        writes.under_way > 0 || writes.left_at.is_some_and(is_left)
    }
}

impl WriteAccess for Leadership {
    fn permit(&self) -> Option<Box<dyn WritePermit>> {
        Some(Box::new(self.let_go()?))
    }
}

/// A write that was let go.
#[derive(Debug)]
struct PermittedWrite {
    leadership: Leadership,
    term: Option<u64>,
    is_open: bool,
}

#[async_trait]
impl WritePermit for PermittedWrite {
    async fn ended(&self) {
        self.leadership.turned(self.term).await;
    }

    fn answered(mut self: Box<Self>) {
        self.is_open = false;
        if let Some(shared) = &self.leadership.shared {
            shared.writes.lock().under_way -= 1;
        }
    }
}

impl Drop for PermittedWrite {
    fn drop(&mut self) {
        if let Some(shared) = self.leadership.shared.as_ref().filter(|_| self.is_open) {
            let now = shared.board.now();
            let mut writes = shared.writes.lock();
            writes.under_way -= 1;
            writes.left_at = Some(now);
        }
    }
}
