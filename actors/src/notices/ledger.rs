//! What was told about which object and how often it happened since. Pure, bounded.

use krane_ports::{Notice, Reason};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::{Controller, Moment};

/// The same about one object is said once in this time …
pub(super) const WINDOW: Duration = Duration::from_secs(300);
/// … and as an Event of its own after this: the API server forgets an Event after an hour.
const SERIES: Duration = Duration::from_secs(1800);
/// What is remembered.
pub(super) const MOST: usize = 512;
/// Events of one controller at once …
const BURST: u32 = 20;
/// … and how long it takes until there is room for another one.
const REFILL: Duration = Duration::from_secs(5);

type Key = (Arc<str>, Reason);

/// All that was and is to be told.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: BTreeMap<Key, Entry>,
    buckets: BTreeMap<Option<Controller>, Bucket>,
}

#[derive(Debug)]
struct Entry {
    controller: Option<Controller>,
    notice: Notice,
    /// When it last happened.
    last: Moment,
    /// How often it happened since its Event was made.
    count: u32,
    is_pending: bool,
    not_before: Moment,
    published: Option<Published>,
}

#[derive(Debug)]
struct Published {
    event: Arc<str>,
    note: String,
    since: Moment,
}

/// What is to be told now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) notice: Notice,
    /// The Event that says the same already, and how often it happened by now.
    pub(super) again: Option<(Arc<str>, u32)>,
}

impl Ledger {
    /// It happened.
    pub(super) fn note(&mut self, controller: Option<Controller>, notice: Notice, now: Moment) {
        if notice.reason.is_of_apply() {
            self.forget_others(&notice);
        }
        let key = (Arc::clone(&notice.subject), notice.reason);
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.notice.uid != notice.uid {
                // Another object of that name: nothing was told about it.
                entry.published = None;
                entry.count = 0;
            }
            entry.notice = notice;
            entry.last = now;
            entry.count = entry.count.saturating_add(1);
            entry.is_pending = true;
            return;
        }
        if self.entries.len() >= MOST && !self.make_room() {
            return;
        }
        let entry = Entry {
            controller,
            notice,
            last: now,
            count: 1,
            is_pending: true,
            not_before: now,
            published: None,
        };
        self.entries.insert(key, entry);
    }

    /// How the apply went before is not true any more, so nobody is told late.
    fn forget_others(&mut self, notice: &Notice) {
        let first = (Arc::clone(&notice.subject), Reason::ApplyFailed);
        for ((subject, reason), entry) in self.entries.range_mut(first..) {
            if *subject != notice.subject {
                return;
            }
            if *reason != notice.reason && reason.is_of_apply() {
                entry.is_pending = false;
            }
        }
    }

    /// Forgets what happened longest ago and is told. Whether there was such a thing.
    fn make_room(&mut self) -> bool {
        let told = self.entries.iter().filter(|(_, entry)| !entry.is_pending);
        let oldest = told.min_by_key(|(_, entry)| entry.last);
        let oldest = oldest.map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.entries.remove(&key).is_some())
    }

    /// What may be told now: what waits longest first.
    pub(super) fn next(&mut self, now: Moment) -> Option<Next> {
        let due = self
            .entries
            .values()
            .filter(|entry| entry.is_pending && entry.not_before <= now)
            .filter(|entry| {
                let bucket = self.buckets.get(&entry.controller);
                bucket.is_none_or(|bucket| bucket.has_room(now))
            });
        let entry = due.min_by_key(|entry| entry.last)?;
        let same = entry.published.as_ref().filter(|published| {
            published.note == entry.notice.note && published.since + SERIES > now
        });
        let next = Next {
            notice: entry.notice.clone(),
            again: same.map(|published| (Arc::clone(&published.event), entry.count)),
        };
        let bucket = self.buckets.entry(entry.controller).or_default();
        bucket.take(now);
        Some(next)
    }

    /// It was told, by this Event.
    pub(super) fn published(&mut self, next: &Next, event: Arc<str>, now: Moment) {
        let Some(entry) = self.entry(next) else {
            return;
        };
        entry.is_pending = false;
        entry.not_before = now + WINDOW;
        let is_the_same = entry
            .published
            .as_ref()
            .is_some_and(|published| published.event == event);
        if !is_the_same {
            entry.count = 1;
            entry.published = Some(Published {
                event,
                note: next.notice.note.clone(),
                since: now,
            });
        }
    }

    /// It could not be told: later, if it is still true then.
    pub(super) fn failed(&mut self, next: &Next, now: Moment) {
        if let Some(entry) = self.entry(next) {
            entry.not_before = now + WINDOW;
        }
    }

    /// It can never be told.
    pub(super) fn give_up(&mut self, next: &Next) {
        let key = (Arc::clone(&next.notice.subject), next.notice.reason);
        self.entries.remove(&key);
    }

    fn entry(&mut self, next: &Next) -> Option<&mut Entry> {
        let key = (Arc::clone(&next.notice.subject), next.notice.reason);
        self.entries.get_mut(&key)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// How much may still be said. Counts what was said lately.
#[derive(Debug, Default)]
struct Bucket {
    said: u32,
    since: Moment,
}

impl Bucket {
    fn refilled(&self, now: Moment) -> (u32, Moment) {
        let elapsed = now.saturating_sub(self.since);
        let steps = elapsed.as_secs() / REFILL.as_secs();
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        if steps >= self.said {
            return (0, now);
        }
        (self.said - steps, self.since + REFILL * steps)
    }

    fn has_room(&self, now: Moment) -> bool {
        self.refilled(now).0 < BURST
    }

    fn take(&mut self, now: Moment) {
        (self.said, self.since) = self.refilled(now);
        self.said += 1;
    }
}

#[cfg(test)]
mod tests;
