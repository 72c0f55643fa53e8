//! Who gets the next lane.
//!
//! Control plane and scheduler each have a line of their own, so that nobody stands behind all
//! that the other one wants (D32). Lanes are shared evenly while something waits in both lines.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::FAIRNESS;
use crate::ids::{Moment, WorkKey};
use crate::scheduler::Origin;

/// The place of a ready key: its line, then class, then rank within the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    origin: Origin,
    class: Class,
    /// The lowest goes first.
    rank: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Somebody waits for the answer.
    Called,
    /// Others wait for it.
    Shared,
    /// Must not go on running.
    Delete,
    /// Was in place and is not any more.
    Repair,
    /// Is wanted anew.
    Apply,
}

impl Urgency {
    /// Of what a call wants that somebody waits for, or what it needs: the first to come goes first.
    pub(super) const fn called(arrival: u64) -> Self {
        Self {
            origin: Origin::Scheduler,
            class: Class::Called,
            rank: arrival,
        }
    }

    /// Of an object that workloads share.
    pub(super) const fn shared(origin: Origin) -> Self {
        Self::newest_first(origin, Class::Shared, 0)
    }

    /// Of what nobody waits for: the newest version goes first.
    pub(super) const fn newest_first(origin: Origin, class: Class, version: u64) -> Self {
        Self {
            origin,
            class,
            rank: u64::MAX - version,
        }
    }
}

/// Keys that wait for a lane, and how many lanes are at work for whom.
#[derive(Debug, Default)]
pub(super) struct Queue {
    control_plane: Line,
    scheduler: Line,
    last: Origin,
}

#[derive(Debug, Default)]
struct Line {
    by_urgency: BTreeSet<(Urgency, WorkKey)>,
    by_age: BTreeSet<(Moment, WorkKey)>,
    at_work: usize,
    was_aged: bool,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.control_plane.by_urgency.len() + self.scheduler.by_urgency.len()
    }

    pub(super) fn at_work(&self) -> usize {
        self.control_plane.at_work + self.scheduler.at_work
    }

    pub(super) fn insert(&mut self, key: &WorkKey, urgency: Urgency, since: Moment) {
        let line = self.line(urgency.origin);
        line.by_urgency.insert((urgency, key.clone()));
        line.by_age.insert((since, key.clone()));
    }

    pub(super) fn remove(&mut self, key: &WorkKey, urgency: Urgency, since: Moment) {
        let line = self.line(urgency.origin);
        line.by_urgency.remove(&(urgency, key.clone()));
        line.by_age.remove(&(since, key.clone()));
    }

    /// The key that goes next, and for whom, if one of this many lanes is free for it. It stays in
    /// its line.
    pub(super) fn next(&mut self, lanes: usize, now: Moment) -> Option<(Origin, WorkKey)> {
        let origin = self.turn(lanes)?;
        self.last = origin;
        let key = self.line(origin).next(now)?;
        Some((origin, key))
    }

    /// A lane begins to work for this one.
    pub(super) fn begin(&mut self, origin: Origin) {
        self.line(origin).at_work += 1;
    }

    /// A lane that worked for this one has ended.
    pub(super) fn end(&mut self, origin: Origin) {
        self.line(origin).at_work -= 1;
    }

    fn line(&mut self, origin: Origin) -> &mut Line {
        match origin {
            Origin::ControlPlane => &mut self.control_plane,
            Origin::Scheduler => &mut self.scheduler,
        }
    }

    /// Whose turn it is: of two that wait, whoever has fewer lanes at work, for lanes may take
    /// longer here than there; then the one that was not last. Some lanes are never the
    /// scheduler's, so that calls that hang leave a way through.
    fn turn(&self, lanes: usize) -> Option<Origin> {
        let (live, called) = (&self.control_plane, &self.scheduler);
        if self.at_work() >= lanes {
            return None;
        }
        let most_called = lanes.saturating_sub((lanes / 4).max(1)).max(1);
        let may_call = !called.by_urgency.is_empty() && called.at_work < most_called;
        match (!live.by_urgency.is_empty(), may_call) {
            (false, false) => None,
            (true, false) => Some(Origin::ControlPlane),
            (false, true) => Some(Origin::Scheduler),
            (true, true) => Some(match live.at_work.cmp(&called.at_work) {
                Ordering::Less => Origin::ControlPlane,
                Ordering::Greater => Origin::Scheduler,
                Ordering::Equal => match self.last {
                    Origin::ControlPlane => Origin::Scheduler,
                    Origin::Scheduler => Origin::ControlPlane,
                },
            }),
        }
    }
}

impl Line {
    /// Every other turn is for who waited long enough, if there is such a one: many of them must
    /// not hold up what is urgent either.
    fn next(&mut self, now: Moment) -> Option<WorkKey> {
        let oldest = self.by_age.first();
        let aged = oldest.filter(|(since, _)| *since + FAIRNESS <= now && !self.was_aged);
        self.was_aged = aged.is_some();
        let key = match aged {
            Some((_, key)) => key,
            None => &self.by_urgency.first()?.1,
        };
        Some(key.clone())
    }
}
