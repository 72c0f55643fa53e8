//! Reports on their way to the control plane.
//!
//! Reports carry no namespace, so they are kept by name. Per name the latest report wins, one is in flight, and a failed one is retried until it is
//! delivered or replaced. What was delivered is remembered, so that nothing is said twice
//! without need, and said again from time to time in case the other side forgot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::ids::{Moment, ObjectKey};
use crate::report::Report;

/// Live objects are reported again after this long without a delivery.
pub const REFRESH: Duration = Duration::from_secs(600);
/// How long a delivered deletion is remembered, so that it is reported once.
pub const GONE_MEMORY: Duration = Duration::from_secs(1800);

/// How a delivery went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The control plane took it.
    Delivered,
    /// The way to the control plane failed; the breaker decides when to try again.
    Unreachable,
    /// The control plane answered with an error about this report.
    Refused,
}

/// One send of a report. Its end names it, so that a late answer of an earlier send cannot finish
/// a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendId {
    name: Arc<str>,
    number: u64,
}

/// A report to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Which send it is.
    pub id: SendId,
    /// What is sent.
    pub report: Report,
    /// Since when it is true.
    pub since: Moment,
}

/// What the control plane was told of an object, and what it is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The newest report.
    pub wanted: Report,
    /// Since when it is true.
    pub since: Moment,
    /// Whether the control plane took exactly this one.
    pub is_delivered: bool,
    /// When it last took one.
    pub delivered_at: Option<Moment>,
    /// How often it refused this one.
    pub refusals: u32,
}

/// All reports of one controller.
#[derive(Debug, Default)]
pub struct Outbox {
    entries: BTreeMap<Arc<str>, Entry>,
    due: BTreeSet<(Moment, Arc<str>)>,
    in_flight: usize,
    /// Sends so far.
    sends: u64,
}

#[derive(Debug)]
struct Entry {
    wanted: Report,
    /// When the wanted report became the wanted one, for the lag metric.
    wanted_since: Moment,
    delivered: Option<Report>,
    delivered_at: Moment,
    refusals: u32,
    phase: Phase,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Quiet,
    Due(Moment),
    InFlight {
        /// The send whose end counts.
        number: u64,
        /// What it says; something newer may be wanted meanwhile.
        sent: Report,
    },
}

impl Outbox {
    /// This is what is true of the object now. Sent at `at` when it differs from what was
    /// delivered, at once when `at` is now.
    pub fn observe(&mut self, report: Report, now: Moment, at: Moment) {
        let name = Arc::clone(&report.key().name);
        let Some(entry) = self.entries.get_mut(&name) else {
            let entry = Entry {
                wanted: report,
                wanted_since: now,
                delivered: None,
                delivered_at: now,
                refusals: 0,
                phase: Phase::Due(at),
            };
            self.entries.insert(Arc::clone(&name), entry);
            self.due.insert((at, name));
            return;
        };
        if entry.wanted == report {
            return;
        }
        entry.wanted = report;
        entry.wanted_since = now;
        entry.refusals = 0;
        match entry.phase {
            Phase::InFlight { .. } => {}
            Phase::Quiet if entry.delivered.as_ref() == Some(&entry.wanted) => {}
            Phase::Quiet | Phase::Due(_) => self.schedule(&name, at),
        }
    }

    /// The object is gone, whose control-plane id was `id`, if that is still known.
    pub fn observe_gone(&mut self, key: &ObjectKey, id: Option<Arc<str>>, now: Moment) {
        let before = self.wanted(&key.name).filter(|told| told.key() == key);
        let id = before.and_then(Report::id).cloned().or(id);
        let key = key.clone();
        self.observe(Report::Gone { key, id }, now, now);
    }

    /// The next report to send.
    pub fn next(&mut self, now: Moment) -> Option<Sending> {
        let (_, name) = self.due.first().filter(|(at, _)| *at <= now).cloned()?;
        self.leave_due(&name);
        let entry = self.entries.get_mut(&name)?;
        self.sends += 1;
        entry.phase = Phase::InFlight {
            number: self.sends,
            sent: entry.wanted.clone(),
        };
        self.in_flight += 1;
        Some(Sending {
            id: SendId {
                name,
                number: self.sends,
            },
            report: entry.wanted.clone(),
            since: entry.wanted_since,
        })
    }

    /// Whether this send was neither finished nor abandoned.
    pub fn is_in_flight(&self, id: &SendId) -> bool {
        let entry = self.entries.get(&id.name);
        entry.is_some_and(|entry| entry.is_in_flight(id))
    }

    /// A send ended. After an unreachable control plane the report is due at `retry_at`. The end of
    /// a send that is not in flight changes nothing: it was abandoned, and a later one may be out.
    pub fn finish(
        &mut self,
        id: &SendId,
        delivery: Delivery,
        now: Moment,
        retry_at: Moment,
        jitter: f64,
    ) {
        let entry = self.entries.get_mut(&id.name);
        let Some(entry) = entry.filter(|entry| entry.is_in_flight(id)) else {
            return;
        };
        let Phase::InFlight { sent, .. } = std::mem::replace(&mut entry.phase, Phase::Quiet) else {
            return;
        };
        self.in_flight -= 1;
        let is_replaced = sent != entry.wanted;
        let again_at = match delivery {
            Delivery::Delivered => {
                entry.delivered = Some(sent);
                entry.delivered_at = now;
                entry.refusals = 0;
                if is_replaced {
                    Some(now)
                } else {
                    (!entry.wanted.is_gone()).then_some(now + REFRESH.mul_f64(0.9 + 0.1 * jitter))
                }
            }
            Delivery::Unreachable => Some(retry_at),
            Delivery::Refused if is_replaced => Some(now),
            Delivery::Refused => {
                entry.refusals = entry.refusals.saturating_add(1);
                Some(now + refusal_backoff(entry.refusals, jitter))
            }
        };
        if let Some(at) = again_at {
            self.schedule(&id.name, at);
        }
    }

    /// Everything live is said again, each object at the moment `at` gives it.
    pub fn refresh(&mut self, mut at: impl FnMut(&ObjectKey) -> Moment) {
        let quiet: Vec<ObjectKey> = self
            .entries
            .values()
            .filter(|entry| !matches!(entry.phase, Phase::InFlight { .. }))
            .filter(|entry| entry.delivered.as_ref() != Some(&entry.wanted) || entry.is_live())
            .map(|entry| entry.wanted.key().clone())
            .collect();
        for key in quiet {
            let at = at(&key);
            self.schedule(&key.name, at);
        }
    }

    /// Sends lost with their reporter, or with their term, are due again; their ends no longer count.
    pub fn abandon(&mut self, now: Moment) {
        let lost: Vec<Arc<str>> = self
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry.phase, Phase::InFlight { .. }))
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for name in lost {
            self.in_flight -= 1;
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.phase = Phase::Quiet;
            }
            self.schedule(&name, now);
        }
    }

    /// Forgets deletions that were delivered long ago.
    pub fn forget_gone(&mut self, now: Moment) {
        self.entries.retain(|_, entry| {
            entry.phase != Phase::Quiet || entry.is_live() || entry.delivered_at + GONE_MEMORY > now
        });
    }

    /// Objects whose last wish was anything but gone: what the control plane believes exists.
    pub fn live(&self) -> impl Iterator<Item = &ObjectKey> {
        self.entries
            .values()
            .filter(|entry| entry.is_live())
            .map(|entry| entry.wanted.key())
    }

    /// What was last wanted said under this name, whichever namespace it was about.
    pub fn wanted(&self, name: &str) -> Option<&Report> {
        self.entries.get(name).map(|entry| &entry.wanted)
    }

    /// How far the reports about the object of this name have got.
    pub fn told(&self, name: &str) -> Option<Told> {
        let entry = self.entries.get(name)?;
        Some(Told {
            wanted: entry.wanted.clone(),
            since: entry.wanted_since,
            is_delivered: entry.delivered.as_ref() == Some(&entry.wanted),
            delivered_at: entry.delivered.is_some().then_some(entry.delivered_at),
            refusals: entry.refusals,
        })
    }

    /// When [`Self::next`] has something to give.
    pub fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Reports being sent.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Objects whose newest report is not delivered.
    pub fn undelivered(&self) -> usize {
        self.entries
            .values()
            .filter(|entry| entry.delivered.as_ref() != Some(&entry.wanted))
            .count()
    }

    fn schedule(&mut self, name: &Arc<str>, at: Moment) {
        self.leave_due(name);
        if let Some(entry) = self.entries.get_mut(name) {
            entry.phase = Phase::Due(at);
            self.due.insert((at, Arc::clone(name)));
        }
    }

    fn leave_due(&mut self, name: &Arc<str>) {
        if let Some(Phase::Due(at)) = self.entries.get(name).map(|entry| &entry.phase) {
            self.due.remove(&(*at, Arc::clone(name)));
        }
    }
}

impl Entry {
    fn is_live(&self) -> bool {
        !self.wanted.is_gone()
    }

    fn is_in_flight(&self, id: &SendId) -> bool {
        matches!(self.phase, Phase::InFlight { number, .. } if number == id.number)
    }
}

/// 1 s doubling to 5 min, with jitter between half and all of it.
fn refusal_backoff(refusals: u32, jitter: f64) -> Duration {
    let doubled = Duration::from_secs(1u64 << refusals.saturating_sub(1).min(9));
    doubled
        .min(Duration::from_secs(300))
        .mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests;
