//! Who gets the next lane.
//!
//! Control plane and scheduler each have a line of their own, so that nobody stands behind all
//! that the other one wants (D32). Lanes are shared evenly while something waits in both lines.
//! What only looks older stands in a third line, behind both (D44).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::FAIRNESS;
use super::share::Quarter;
use crate::ids::{Moment, WorkKey};
use crate::origin::Origin;

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
    /// Can wait for a lane that nobody else needs.
    Renewal,
    /// Only looks older: last in line, and in a quarter of the lanes at most (D44).
    Upgrade,
}

/// A line of keys that wait for a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineName {
    #[default]
    ControlPlane,
    Scheduler,
    Upgrades,
}

impl Urgency {
    /// For whom it is.
    pub(super) const fn origin(self) -> Origin {
        self.origin
    }

    /// The line it stands in.
    pub(super) const fn line(self) -> LineName {
        match (self.class, self.origin) {
            (Class::Upgrade, _) => LineName::Upgrades,
            (_, Origin::ControlPlane) => LineName::ControlPlane,
            (_, Origin::Scheduler) => LineName::Scheduler,
        }
    }

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

    /// Of an object shared by workloads that all else overtakes.
    pub(super) const fn renewal(origin: Origin) -> Self {
        Self::newest_first(origin, Class::Renewal, 0)
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
    upgrades: Upgrades,
    last: Origin,
    slow: Quarter,
}

/// Nobody has waited too long here: whatever waits in another line goes first.
#[derive(Debug, Default)]
struct Upgrades {
    by_urgency: BTreeSet<(Urgency, WorkKey)>,
    lanes: Quarter,
}

#[derive(Debug, Default)]
struct Line {
    quick: Waiting,
    slow: Waiting,
    at_work: usize,
    was_aged: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    by_urgency: BTreeSet<(Urgency, WorkKey)>,
    by_age: BTreeSet<(Moment, WorkKey)>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        let urgent = self.control_plane.len() + self.scheduler.len();
        urgent + self.upgrades()
    }

    /// Of these, keys that only look older.
    pub(super) fn upgrades(&self) -> usize {
        self.upgrades.by_urgency.len()
    }

    pub(super) fn at_work(&self) -> usize {
        let urgent = self.control_plane.at_work + self.scheduler.at_work;
        urgent + self.upgrades.lanes.at_work()
    }

    pub(super) fn insert(&mut self, key: &WorkKey, urgency: Urgency, since: Moment, is_slow: bool) {
        let Some(waiting) = self.waiting(urgency, is_slow) else {
            self.upgrades.by_urgency.insert((urgency, key.clone()));
            return;
        };
        waiting.by_urgency.insert((urgency, key.clone()));
        waiting.by_age.insert((since, key.clone()));
    }

    pub(super) fn remove(&mut self, key: &WorkKey, urgency: Urgency, since: Moment, is_slow: bool) {
        let Some(waiting) = self.waiting(urgency, is_slow) else {
            self.upgrades.by_urgency.remove(&(urgency, key.clone()));
            return;
        };
        waiting.by_urgency.remove(&(urgency, key.clone()));
        waiting.by_age.remove(&(since, key.clone()));
    }

    /// Where a key waits that is not in the line of what only looks older.
    fn waiting(&mut self, urgency: Urgency, is_slow: bool) -> Option<&mut Waiting> {
        match urgency.line() {
            LineName::ControlPlane => Some(self.control_plane.of(is_slow)),
            LineName::Scheduler => Some(self.scheduler.of(is_slow)),
            LineName::Upgrades => None,
        }
    }

    /// The key that goes next, if one of this many lanes is free for it. It stays in its line.
    pub(super) fn next(&mut self, lanes: usize, now: Moment) -> Option<WorkKey> {
        if self.at_work() >= lanes {
            return None;
        }
        let may_be_slow = self.slow.has_room(lanes) || !self.quick_ones_wait(lanes);
        if let Some(origin) = self.turn(lanes, may_be_slow) {
            self.last = origin;
            return self.line(origin).next(may_be_slow, now);
        }
        let waiting = self.upgrades.by_urgency.first();
        let (_, key) = waiting.filter(|_| self.upgrades.lanes.has_room(lanes))?;
        Some(key.clone())
    }

    /// A lane begins to work for a key of this line.
    pub(super) fn begin(&mut self, line: LineName, is_slow: bool) {
        match line {
            LineName::ControlPlane => self.control_plane.at_work += 1,
            LineName::Scheduler => self.scheduler.at_work += 1,
            LineName::Upgrades => self.upgrades.lanes.begin(),
        }
        if is_slow {
            self.slow.begin();
        }
    }

    /// A lane that worked for a key of this line has ended.
    pub(super) fn end(&mut self, line: LineName, is_slow: bool) {
        match line {
            LineName::ControlPlane => self.control_plane.at_work -= 1,
            LineName::Scheduler => self.scheduler.at_work -= 1,
            LineName::Upgrades => self.upgrades.lanes.end(),
        }
        if is_slow {
            self.slow.end();
        }
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
    fn turn(&self, lanes: usize, may_be_slow: bool) -> Option<Origin> {
        let (live, called) = (&self.control_plane, &self.scheduler);
        let may_call = called.has_work(may_be_slow) && self.scheduler_has_room(lanes);
        match (live.has_work(may_be_slow), may_call) {
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

    fn scheduler_has_room(&self, lanes: usize) -> bool {
        let most = lanes.saturating_sub((lanes / 4).max(1)).max(1);
        self.scheduler.at_work < most
    }

    /// Whether a key waits that is not slow and could have a lane.
    fn quick_ones_wait(&self, lanes: usize) -> bool {
        self.control_plane.has_work(false)
            || (self.scheduler.has_work(false) && self.scheduler_has_room(lanes))
    }
}

impl Line {
    fn of(&mut self, is_slow: bool) -> &mut Waiting {
        if is_slow {
            &mut self.slow
        } else {
            &mut self.quick
        }
    }

    fn len(&self) -> usize {
        self.quick.by_urgency.len() + self.slow.by_urgency.len()
    }

    fn has_work(&self, may_be_slow: bool) -> bool {
        !self.quick.by_urgency.is_empty() || (may_be_slow && !self.slow.by_urgency.is_empty())
    }

    /// Every other turn is for who waited long enough, if there is such a one: many of them must
    /// not hold up what is urgent either.
    fn next(&mut self, may_be_slow: bool, now: Moment) -> Option<WorkKey> {
        let slow = Some(&self.slow).filter(|_| may_be_slow);
        let waiting = || [&self.quick].into_iter().chain(slow);
        let oldest = waiting().filter_map(|keys| keys.by_age.first()).min();
        let aged = oldest.filter(|(since, _)| *since + FAIRNESS <= now && !self.was_aged);
        self.was_aged = aged.is_some();
        let key = match aged {
            Some((_, key)) => key,
            None => {
                &waiting()
                    .filter_map(|keys| keys.by_urgency.first())
                    .min()?
                    .1
            }
        };
        Some(key.clone())
    }
}
