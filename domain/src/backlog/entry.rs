//! One key of the backlog.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::queue::{Class, LineName, Urgency};
use super::{InTrouble, Stages, Trouble, TroubleKind};
use crate::desired::{Change, State};
use crate::ids::{Moment, SharedKey, WorkKey};
use crate::origin::Origin;
use crate::trace::TraceContext;

/// Blockings of one key, each this soon after the last …
const DISAGREEMENT: Duration = Duration::from_secs(1);
/// … that are taken at their word.
const BLOCKINGS: u32 = 8;

/// Where a key is between being wanted and being in place.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing to do.
    #[default]
    Idle,
    /// Waits for a lane.
    Ready {
        /// Its place in the order.
        urgency: Urgency,
        /// Since when.
        since: Moment,
    },
    /// A lane works on it.
    InFlight,
    /// Waits for a moment.
    Waiting {
        /// Which.
        until: Moment,
    },
    /// Waits for shared objects.
    Blocked(BTreeSet<SharedKey>),
}

/// What a state was last compared with when it was in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Fingerprint of the live object; absent when the state wants none.
    pub live: Option<u64>,
    /// When.
    pub at: Moment,
}

/// Who said what is wanted. An answer carries no version of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Source {
    /// Nobody yet, or an answer alone: the stream does not speak of the object, or the control
    /// plane has forgotten since what it said there.
    #[default]
    NotTheStream,
    /// The stream, in the highest version.
    Stream,
    /// The stream, and since then an answer that differed.
    StreamThenAnswer,
    /// A call of the scheduler: the control plane does not speak of the object.
    Scheduler,
}

impl Source {
    pub(super) const fn origin(self) -> Origin {
        match self {
            Self::NotTheStream | Self::Stream | Self::StreamThenAnswer => Origin::ControlPlane,
            Self::Scheduler => Origin::Scheduler,
        }
    }

    /// Whether the version known is one of what the stream wants.
    pub(super) const fn is_the_stream(self) -> bool {
        match self {
            Self::Stream | Self::StreamThenAnswer => true,
            Self::NotTheStream | Self::Scheduler => false,
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) state: Option<Arc<State>>,
    pub(super) highest: u64,
    pub(super) source: Source,
    pub(super) stream_at: Option<Moment>,
    pub(super) called_at: Option<Moment>,
    /// The place in line of a call that somebody waits for.
    pub(super) arrival: Option<u64>,
    /// For whom a lane works on it or last did.
    pub(super) origin: Origin,
    /// Whether its last calls to the API server took long …
    pub(super) is_slow: bool,
    /// … and whether they had when the lane that works on it, or last did, began.
    pub(super) is_slow_lane: bool,
    /// The line a lane took it from.
    pub(super) line: LineName,
    /// Whether this state is known to be a change of what was wanted, and not what a start shows
    /// again.
    pub(super) is_change: bool,
    /// Whether all that is left to write only looks older (D44).
    pub(super) is_deferred: bool,
    pub(super) settled: Option<Settled>,
    pub(super) phase: Phase,
    pub(super) is_replaced: bool,
    pub(super) look_again: bool,
    /// Whether a retry was called for while a lane worked on it: what troubled the lane may be over.
    pub(super) is_retried: bool,
    /// Whether all else goes first, until somebody waits for it.
    pub(super) is_renewal: bool,
    pub(super) written_at: Option<Moment>,
    pub(super) stages: Option<Stages>,
    pub(super) trace: Option<TraceContext>,
    blocked_at: Option<Moment>,
    blockings: u32,
    failure: Option<Failing>,
    repairs: u32,
    repaired_at: Option<Moment>,
    repaired_edit: Option<u64>,
}

#[derive(Clone, Debug)]
struct Failing {
    trouble: Trouble,
    attempts: u32,
    since: Moment,
    /// The server asked not to be bothered before.
    not_before: Moment,
    retry_at: Moment,
}

impl Entry {
    /// Size of a state that waits its turn. What is invalid, and what failed for a reason that
    /// does not pass by itself, is kept like a settled state: if it counted, enough of it would
    /// stop the stream for good. Nor does the stream wait for what only looks older.
    pub(super) fn waiting_bytes(&self) -> usize {
        let waits = !self.is_stuck() && !self.is_deferred;
        match (&self.state, &self.settled) {
            (Some(state), None) if state.change.is_ok() && waits => state.size,
            (Some(_) | None, _) => 0,
        }
    }

    fn is_stuck(&self) -> bool {
        self.failure.is_some() && !self.is_transient()
    }

    pub(super) fn replace(&mut self, state: Arc<State>, now: Moment) {
        self.stages = Some(Stages::received(state.version, now));
        self.trace = None;
        let before = self.state.as_ref();
        self.is_change |= before.is_some_and(|before| before.change != state.change);
        self.is_deferred = false;
        self.state = Some(state);
        self.settled = None;
        self.failure = None;
        self.is_replaced = self.phase == Phase::InFlight;
    }

    /// The place of a workload in its line.
    pub(super) fn urgency(&self) -> Urgency {
        let origin = self.source.origin();
        match self.arrival {
            Some(arrival) if origin == Origin::Scheduler => return Urgency::called(arrival),
            Some(_) | None => {}
        }
        let class = if self.wants_absence() {
            Class::Delete
        } else if self.settled.is_some() {
            Class::Repair
        } else if self.is_deferred {
            Class::Upgrade
        } else {
            Class::Apply
        };
        Urgency::newest_first(origin, class, self.highest)
    }

    /// The place of an object shared by workloads while none waits for it.
    pub(super) fn urgency_unneeded(&self) -> Urgency {
        if self.is_deferred {
            Urgency::newest_first(self.origin, Class::Upgrade, u64::MAX)
        } else if self.is_renewal {
            Urgency::renewal(self.origin)
        } else {
            Urgency::shared(self.origin)
        }
    }

    /// The place of an object shared by workloads while this entry waits for it.
    pub(super) fn urgency_of_need(&self, key: &WorkKey) -> Urgency {
        let origin = match key {
            WorkKey::Shared(_) => self.origin,
            WorkKey::Workload(_) => self.source.origin(),
        };
        match (origin, self.arrival) {
            (Origin::Scheduler, Some(arrival)) => Urgency::called(arrival),
            (Origin::Scheduler | Origin::ControlPlane, _) if self.is_deferred => {
                Urgency::newest_first(origin, Class::Upgrade, self.highest)
            }
            (Origin::Scheduler | Origin::ControlPlane, _) => Urgency::shared(origin),
        }
    }

    pub(super) fn wants_absence(&self) -> bool {
        self.state
            .as_ref()
            .is_some_and(|state| matches!(state.change, Ok(Change::Delete)))
    }

    pub(super) fn settle(&mut self, live: Option<u64>, now: Moment) {
        self.settled = Some(Settled { live, at: now });
        self.failure = None;
        self.is_change = false;
        self.is_deferred = false;
    }

    /// Waits for shared objects. Should they be said to be in place again and again while this
    /// entry finds that they are not, it waits for a moment instead: two views that disagree
    /// must not make a hot loop.
    pub(super) fn block(
        &mut self,
        on: BTreeSet<SharedKey>,
        now: Moment,
        jitter: f64,
    ) -> Option<Moment> {
        let is_again = self
            .blocked_at
            .is_some_and(|at| now.saturating_sub(at) < DISAGREEMENT);
        self.blockings = if is_again { self.blockings + 1 } else { 1 };
        self.blocked_at = Some(now);
        if self.blockings > BLOCKINGS {
            let names: Vec<String> = on.iter().map(ToString::to_string).collect();
            let reason = format!("keeps waiting for {}", names.join(", "));
            return Some(self.fail(Trouble::new(TroubleKind::Waiting, reason), now, jitter));
        }
        self.failure = None;
        self.phase = Phase::Blocked(on);
        None
    }

    pub(super) fn fail(&mut self, trouble: Trouble, now: Moment, jitter: f64) -> Moment {
        let known = self
            .failure
            .take()
            .filter(|known| known.trouble.kind == trouble.kind);
        let (attempts, since) = known.map_or((1, now), |known| (known.attempts + 1, known.since));
        let retry_at = now + trouble.delay(attempts, jitter);
        let not_before = now + trouble.retry_after.unwrap_or_default();
        self.failure = Some(Failing {
            trouble,
            attempts,
            since,
            not_before,
            retry_at,
        });
        retry_at
    }

    /// What is left only looks older: it waits in another line.
    pub(super) fn defer(&mut self) {
        self.is_deferred = true;
        self.failure = None;
    }

    /// Gives up the backoff of its trouble. When to try again, if the server asked for a wait that
    /// is not over.
    pub(super) fn hurry(&mut self, now: Moment) -> Option<Moment> {
        let failing = self.failure.as_mut()?;
        failing.retry_at = failing.not_before.max(now);
        (failing.retry_at > now).then_some(failing.retry_at)
    }

    pub(super) fn is_transient(&self) -> bool {
        self.trouble_kind() == Some(TroubleKind::Transient)
    }

    pub(super) fn trouble_kind(&self) -> Option<TroubleKind> {
        let failing = self.failure.as_ref()?;
        Some(failing.trouble.kind)
    }

    /// Whether a change in the cluster may end its trouble, so that it need not wait it out.
    pub(super) fn wakes_on_change(&self) -> bool {
        self.failure.as_ref().is_some_and(|failing| {
            matches!(
                failing.trouble.kind,
                TroubleKind::Held | TroubleKind::Waiting
            )
        })
    }

    /// How long the next repair has to wait because someone keeps undoing them.
    pub(super) fn repair_backoff(
        &self,
        now: Moment,
        free: u32,
        streak: Duration,
    ) -> Option<Duration> {
        let recent = self
            .repaired_at
            .is_some_and(|at| now.saturating_sub(at) < streak);
        (recent && self.repairs >= free).then(|| {
            let doublings = (self.repairs - free).min(8);
            Duration::from_secs(1u64 << doublings).min(Duration::from_secs(300))
        })
    }

    pub(super) fn count_repair(&mut self, repaired: Option<u64>, now: Moment, streak: Duration) {
        let Some(edit) = repaired else { return };
        // The pauses the backoff itself makes belong to the streak.
        let within = streak + self.repair_backoff_pause();
        let is_recent = self
            .repaired_at
            .is_some_and(|at| now.saturating_sub(at) < within);
        let is_same = self.repaired_edit == Some(edit);
        self.repairs = if is_recent && is_same {
            self.repairs.saturating_add(1)
        } else {
            1
        };
        self.repaired_at = Some(now);
        self.repaired_edit = Some(edit);
    }

    pub(super) fn count_write(&mut self, wrote: bool, now: Moment) {
        if wrote {
            self.written_at = Some(now);
        }
    }

    fn repair_backoff_pause(&self) -> Duration {
        Duration::from_secs(1u64 << self.repairs.min(8))
    }

    /// Deleted, settled, and long enough ago that no older state can still be on its way.
    pub(super) fn is_gone_since(&self, before: Moment) -> bool {
        self.phase == Phase::Idle
            && self.wants_absence()
            && self
                .settled
                .as_ref()
                .is_some_and(|settled| settled.at < before)
            && self.stream_at.is_none_or(|arrived| arrived < before)
    }

    pub(super) fn in_trouble(&self, key: &WorkKey) -> Option<InTrouble> {
        let failing = self.failure.as_ref()?;
        Some(InTrouble {
            key: key.clone(),
            version: self.highest,
            trouble: failing.trouble.clone(),
            attempts: failing.attempts,
            since: failing.since,
            retry_at: failing.retry_at,
        })
    }
}
