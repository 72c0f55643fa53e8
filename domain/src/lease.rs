//! Who may write, when several processes run: the election of one of them by a Lease (D22).
//!
//! No two processes need the same time of day. A candidate takes the lease over when the record
//! has not changed for its whole duration on the candidate's own clock; the times within the
//! record are for people. A holder counts from the moment before it sent the renewal that
//! succeeded, so that it has stopped writing before anyone can have waited long enough.

use std::sync::Arc;
use std::time::Duration;

use crate::ids::Moment;

#[cfg(test)]
mod tests;

/// Whatever a record says, nobody waits longer than the longest lease that can be configured.
const LONGEST: Duration = Duration::from_secs(3600);
/// Conflicts in a row after which the next look waits its turn.
const CONFLICTS: u32 = 3;

/// How long everything takes (`lease.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a lease lasts after its renewal.
    pub duration: Duration,
    /// The time in which the holder must succeed to renew, or else stop.
    pub renew: Duration,
    /// The time between two attempts.
    pub retry: Duration,
}

impl Timing {
    /// How long after sending a renewal that succeeded its sender may start writes: a sixth less
    /// than the lease lasts, for what is under way and for clocks that run at different rates.
    pub fn window(&self) -> Duration {
        let margin = self.duration / 6;
        self.renew.min(self.duration.saturating_sub(margin))
    }

    /// How long one request may take: two have to fit into a window.
    pub fn request(&self) -> Duration {
        self.renew / 2
    }
}

/// A Lease, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which object of that name it is.
    pub uid: Arc<str>,
    /// Its resourceVersion: every change has another one.
    pub version: Arc<str>,
    /// Who holds it; nobody when it was given back.
    pub holder: Option<Arc<str>>,
    /// How long it lasts, by its holder.
    pub duration: Option<Duration>,
    /// How often it went to somebody else.
    pub transitions: u32,
    /// Since when its holder has it, in seconds of the day's time as the holder sees it. Shown,
    /// and never reckoned with.
    pub acquired_at: Option<u64>,
}

impl Record {
    fn term(&self) -> Term {
        Term {
            uid: Arc::clone(&self.uid),
            transitions: self.transitions,
        }
    }
}

/// One holder's time in office. Whoever returns to it finds nothing written by others meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    uid: Arc<str>,
    transitions: u32,
}

/// What a candidate or holder writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who holds it from now on; nobody, to give it back.
    pub holder: Option<Arc<str>>,
    /// How long it lasts.
    pub duration: Duration,
    /// How often it went to somebody else, this time included.
    pub transitions: u32,
    /// Whether its holder is another one than before.
    pub is_new: bool,
}

/// The next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Read the Lease.
    Look,
    /// Make it.
    Create(Claim),
    /// Change it, if it still has this version.
    Update {
        /// The version it must have.
        version: Arc<str>,
        /// What it becomes.
        claim: Claim,
    },
}

/// Why a write did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was not done: the Lease is another one by now, or there is one, or none.
    Conflict,
    /// It may have been done or not, or may still be.
    Unknown,
}

/// The right to write, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// In which term.
    pub term: Term,
    /// No write starts at this moment or later.
    pub until: Moment,
}

/// What was read or written last.
#[derive(Clone, Debug)]
struct Seen {
    /// Nothing, when there is no Lease.
    record: Option<Record>,
    /// Since when it has been seen like this.
    since: Moment,
    /// How long it has to stay like this before it may be taken; `None` when it is ours.
    wait: Option<Duration>,
}

/// One process in the election.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something else of what was seen"
)]
#[derive(Clone, Debug)]
pub struct Elector {
    identity: Arc<str>,
    timing: Timing,
    seen: Option<Seen>,
    is_doubtful: bool,
    /// Whether another one held it since this process did: a record that names this process again
    /// comes from a backup, and that other one may not know yet.
    is_displaced: bool,
    /// Whether nobody knows what became of the last write.
    is_unsure: bool,
    /// Whether the next request follows at once.
    is_urgent: bool,
    conflicts: u32,
    tenure: Option<Tenure>,
}

impl Elector {
    /// A process that knows nothing yet. No other process ever has its identity: not even the one
    /// that is started after it in the same pod.
    pub fn new(identity: Arc<str>, timing: Timing) -> Self {
        Self {
            identity,
            timing,
            seen: None,
            is_doubtful: false,
            is_displaced: false,
            is_unsure: false,
            is_urgent: true,
            conflicts: 0,
            tenure: None,
        }
    }

    /// One that goes on where another one of the same process stopped.
    #[must_use]
    pub fn resumed(mut self, tenure: Option<Tenure>) -> Self {
        self.tenure = tenure;
        self
    }

    /// The right to write. It ends by itself at its moment, whoever is asked or not.
    pub fn tenure(&self) -> Option<&Tenure> {
        self.tenure.as_ref()
    }

    /// The Lease as it was last seen.
    pub fn record(&self) -> Option<&Record> {
        self.seen.as_ref()?.record.as_ref()
    }

    /// What to do now.
    pub fn next(&self, now: Moment) -> Move {
        let Some(seen) = self.seen.as_ref().filter(|_| !self.is_doubtful) else {
            return Move::Look;
        };
        let is_free = self.free_at().is_none_or(|at| at <= now);
        match &seen.record {
            _ if !is_free => Move::Look,
            None => Move::Create(self.claim(0, true)),
            Some(record) => {
                let is_new = !self.is_mine(record);
                let transitions = if is_new {
                    next_transition(record.transitions)
                } else {
                    record.transitions
                };
                Move::Update {
                    version: Arc::clone(&record.version),
                    claim: self.claim(transitions, is_new),
                }
            }
        }
    }

    /// When to do it: `began` is when the last request was begun, which is over now. `jitter` in
    /// 0..1 keeps candidates apart.
    pub fn next_at(&self, began: Moment, now: Moment, jitter: f64) -> Moment {
        if self.is_urgent {
            return now;
        }
        let pace = self.timing.retry.mul_f64(0.8 + 0.2 * jitter);
        let turn = (began + pace).max(now);
        let free_at = self.free_at().filter(|at| *at > now && !self.is_doubtful);
        free_at.map_or(turn, |at| at.min(turn))
    }

    /// The Lease was read.
    pub fn read(&mut self, record: Option<Record>, now: Moment) {
        self.is_doubtful = false;
        // A write of which nobody knows what became of it is what makes it ours again.
        let is_unsure = std::mem::take(&mut self.is_unsure);
        match record.as_ref() {
            Some(record) if self.is_own(record) => self.is_displaced &= !is_unsure,
            Some(record) if record.holder.is_some() => self.is_displaced = true,
            Some(_) | None => {}
        }
        self.see(record, now);
        self.is_urgent = self.free_at().is_none_or(|at| at <= now);
        if !self.is_urgent {
            self.conflicts = 0;
        }
    }

    /// A read failed: nothing is known that was not known before.
    pub fn read_failed(&mut self) {
        self.is_urgent = false;
    }

    /// A write that was sent at `sent_at`, or a little later, is answered with the Lease as it
    /// is now.
    pub fn wrote(&mut self, record: Record, sent_at: Moment, now: Moment) {
        self.is_urgent = false;
        let before = self.record().map(|record| Arc::clone(&record.version));
        if before.as_ref() == Some(&record.version) {
            // A write that changed nothing renewed nothing: nobody else can see it.
            self.is_doubtful = true;
            return;
        }
        self.conflicts = 0;
        self.is_unsure = false;
        if self.is_own(&record) {
            self.is_displaced = false;
            self.tenure = Some(Tenure {
                term: record.term(),
                until: sent_at + self.timing.window(),
            });
        }
        self.see(Some(record), now);
    }

    /// A write did not succeed, as far as is known. What was granted before stays granted.
    pub fn write_failed(&mut self, failure: Failure) {
        self.is_urgent = false;
        match failure {
            Failure::Conflict => {
                self.is_doubtful = true;
                self.conflicts = self.conflicts.saturating_add(1);
                self.is_urgent = self.conflicts < CONFLICTS;
            }
            // The same write again will tell, if it is answered: it meets its own result, or it
            // succeeds.
            Failure::Unknown => self.is_doubtful = std::mem::replace(&mut self.is_unsure, true),
        }
    }

    /// The cluster was restored from a backup: versions count from there again, so that the one that
    /// is known may be another record's. It is read before the next write.
    pub fn mistrust(&mut self) {
        self.is_doubtful = true;
    }

    /// Gives up the right to write, and gives the Lease back if it is ours: from now on the
    /// caller must not write any more.
    pub fn release(&mut self) -> Option<Move> {
        self.tenure = None;
        let record = self.record().filter(|record| self.is_mine(record))?;
        if self.is_doubtful {
            return Some(Move::Look);
        }
        let claim = Claim {
            holder: None,
            duration: self.timing.duration,
            transitions: record.transitions,
            is_new: true,
        };
        let version = Arc::clone(&record.version);
        Some(Move::Update { version, claim })
    }

    fn see(&mut self, record: Option<Record>, now: Moment) {
        let tenure = self.tenure.take();
        let own = record.as_ref().filter(|record| self.is_mine(record));
        self.tenure = tenure.filter(|tenure| own.is_some_and(|own| own.term() == tenure.term));
        if let Some(seen) = &self.seen
            && seen.record == record
        {
            return;
        }
        let wait = match &record {
            Some(record) => self.wait(record),
            // Somebody deleted it: its holder may not know that yet.
            None => self.seen.as_ref().map_or(Some(Duration::ZERO), |seen| {
                seen.record.as_ref().map_or(seen.wait, |it| self.wait(it))
            }),
        };
        self.seen = Some(Seen {
            wait: wait.or_else(|| record.is_none().then_some(Duration::ZERO)),
            record,
            since: now,
        });
    }

    /// When what was seen may be taken, if it stays as it is; `None` when it is ours already.
    fn free_at(&self) -> Option<Moment> {
        let seen = self.seen.as_ref()?;
        Some(seen.since + seen.wait?)
    }

    /// How long this record has to stay as it is before it may be taken.
    fn wait(&self, record: &Record) -> Option<Duration> {
        if self.is_mine(record) {
            return None;
        }
        let lasts = record.duration.unwrap_or_default().min(LONGEST);
        let wait = record
            .holder
            .as_ref()
            .map(|_| lasts.max(self.timing.duration));
        Some(wait.unwrap_or_default())
    }

    fn is_own(&self, record: &Record) -> bool {
        record.holder.as_ref() == Some(&self.identity)
    }

    /// Whether it is held by this process, as far as anybody can know.
    fn is_mine(&self, record: &Record) -> bool {
        self.is_own(record) && !self.is_displaced
    }

    fn claim(&self, transitions: u32, is_new: bool) -> Claim {
        Claim {
            holder: Some(Arc::clone(&self.identity)),
            duration: self.timing.duration,
            transitions,
            is_new,
        }
    }
}

/// One holder more. The API server keeps 31 bits: a count at its end, which somebody must have put
/// there, begins anew, for what it does not take it would refuse for ever.
const fn next_transition(transitions: u32) -> u32 {
    if transitions >= i32::MAX.unsigned_abs() {
        0
    } else {
        transitions + 1
    }
}
