//! Reports on their way to the control plane: due, sent, and how that went.

use std::time::Duration;

use krane_domain::ids::{Moment, ObjectKey};
use krane_domain::outbox::{Delivery, SendId, Sending};
use krane_domain::trace::TraceContext;

use super::{Memory, Store};
use crate::breaker::BreakerState;

mod observe;
#[cfg(test)]
mod tests;

pub(crate) use observe::StatusProblem;

/// Reports in flight at once.
const MAX_IN_FLIGHT: usize = 32;
/// While nothing can be seen nothing is sent: when to look again whether it can.
const BLIND: Duration = Duration::from_secs(1);

impl Store {
    /// The next report that may be sent now, which counts as in flight from here on. When the
    /// breaker is open, it is the probe.
    pub(crate) fn take_due_report(&self, now: Moment) -> Option<Sending> {
        self.with(|memory| {
            let is_due = memory.outbox.next_due().is_some_and(|at| at <= now);
            if !is_due
                || memory.view.is_blind()
                || self.is_halted()
                || memory.outbox.in_flight() >= MAX_IN_FLIGHT
                || !memory.breaker.allow(now)
            {
                return None;
            }
            memory.outbox.next(now)
        })
    }

    /// When the next report may be sent. Nothing when none is due, when the end of another one has
    /// to come first, or when the process is on its way out.
    pub(crate) fn next_report_at(&self, now: Moment) -> Option<Moment> {
        self.with(|memory| {
            if self.is_halted() {
                return None;
            }
            let outbox = &memory.outbox;
            if memory.view.is_blind() {
                return Some(outbox.next_due()?.max(now + BLIND));
            }
            wake_at(
                outbox.next_due()?,
                outbox.in_flight(),
                memory.breaker.state(),
            )
        })
    }

    /// Whether this report is still waited for: its end counts only then.
    pub(crate) fn is_report_in_flight(&self, id: &SendId) -> bool {
        self.with(|memory| memory.outbox.is_in_flight(id))
    }

    /// Gives up the reports in flight, the breaker's probe among them: they are due again, and
    /// their ends no longer count.
    pub(crate) fn abandon_reports(&self, now: Moment) {
        self.with(|memory| memory.abandon_reports(now));
    }

    /// The control plane took this report, which was true since `since`. Returns how long after
    /// the apply, if it is the first report that tells of it.
    pub(crate) fn finish_delivered_report(
        &self,
        id: &SendId,
        key: &ObjectKey,
        since: Moment,
        now: Moment,
    ) -> Option<Duration> {
        let jitter = self.chance.unit();
        self.with(|memory| {
            // First, so that what was just taken is not sent again.
            memory.note_sign_of_life(Duration::ZERO, &self.chance, now);
            memory
                .outbox
                .finish(id, Delivery::Delivered, now, now, jitter);
            memory.backlog.reported(key, since, now)
        })
    }

    /// The control plane answered with an error about this report: it is due again after a backoff.
    pub(crate) fn finish_refused_report(&self, id: &SendId, now: Moment) {
        let jitter = self.chance.unit();
        self.with(|memory| {
            memory.note_sign_of_life(Duration::ZERO, &self.chance, now);
            memory
                .outbox
                .finish(id, Delivery::Refused, now, now, jitter);
        });
    }

    /// This report did not reach the control plane: it is due again when the breaker lets it.
    /// Returns whether that opened the breaker.
    pub(crate) fn finish_unreachable_report(&self, id: &SendId, now: Moment) -> bool {
        let jitter = self.chance.unit();
        self.with(|memory| {
            let has_opened = memory.note_unreachable(&self.chance, now);
            let retry_at = memory.breaker.retry_at(now, self.chance.unit());
            memory
                .outbox
                .finish(id, Delivery::Unreachable, now, retry_at, jitter);
            has_opened
        })
    }

    /// The version and the trace that a report about this object belongs to, if it may tell of a
    /// state that was just applied.
    pub(crate) fn report_trace(&self, key: &ObjectKey, now: Moment) -> Option<(u64, TraceContext)> {
        self.with(|memory| {
            let backlog = &memory.backlog;
            backlog
                .trace(key)
                .filter(|_| backlog.awaits_report(key, now))
        })
    }
}

impl Memory {
    /// See [`Store::abandon_reports`].
    fn abandon_reports(&mut self, now: Moment) {
        self.outbox.abandon(now);
        self.breaker.abandon_probe(now);
    }
}

/// When a report that is due at `due` can go out; `None` when the end of another call has to come
/// first, which wakes the reporter anyway.
fn wake_at(due: Moment, in_flight: usize, breaker: BreakerState) -> Option<Moment> {
    if in_flight >= MAX_IN_FLIGHT {
        return None;
    }
    match breaker {
        BreakerState::Closed => Some(due),
        BreakerState::Open { probe_at } => Some(due.max(probe_at)),
        BreakerState::Probing => None,
    }
}
