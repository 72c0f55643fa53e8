//! Data keys that were read a while ago.
//!
//! One read per key at a time, however many ask. A key is used for an hour, and for a day while
//! the store is away, so that its outage does not keep pods from starting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use krane_ports::{VaultFailure, VaultFailureKind};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::envelope::Key;
use super::name::KeyName;

/// How many keys are kept, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Keys; the one that was read first goes first.
    pub keys: usize,
    /// After which a key is read again.
    pub fresh: Duration,
    /// After which it is not used any more, though the store is away.
    pub stale: Duration,
    /// After a failed read, until the store is asked for the same key again.
    pub pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            keys: 10_000,
            fresh: Duration::from_hours(1),
            stale: Duration::from_hours(24),
            pause: Duration::from_secs(15),
        }
    }
}

type ReadResult = Result<Arc<Key>, VaultFailure>;
pub(super) type Read = BoxFuture<'static, ReadResult>;

/// Keeps keys for a while; what it lets go of is wiped.
pub(super) struct KeyCache {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<KeyName, Entry>,
    /// The keys in the order in which they were read.
    order: BTreeMap<u64, KeyName>,
    reads: BTreeMap<KeyName, Flight>,
    /// Numbers entries and reads.
    count: u64,
}

struct Entry {
    key: Arc<Key>,
    number: u64,
    read_at: Instant,
    /// The store was away; it is left in peace until then.
    paused_until: Option<Instant>,
}

/// A read under way; it ends when nobody waits for it any more.
struct Flight {
    number: u64,
    read: WeakShared<Read>,
}

enum Found {
    Key(Arc<Key>),
    Reading(u64, Shared<Read>),
}

impl KeyCache {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
        }
    }

    /// The key, read by `read` unless there is one that is fresh.
    pub(super) async fn get(&self, name: &KeyName, read: impl FnOnce() -> Read) -> ReadResult {
        let (number, reading) = match self.find(name, read) {
            Found::Key(key) => return Ok(key),
            Found::Reading(number, reading) => (number, reading),
        };
        let result = reading.await;
        self.settle(name, number, result)
    }

    /// Forgets every key, and what is being read does not come in any more.
    pub(super) fn clear(&self) {
        let mut state = self.state.lock();
        state.entries.clear();
        state.order.clear();
        state.reads.clear();
    }

    fn find(&self, name: &KeyName, read: impl FnOnce() -> Read) -> Found {
        let now = Instant::now();
        let mut state = self.state.lock();
        if let Some(entry) = state.entries.get(name) {
            let age = now - entry.read_at;
            let is_paused = entry.paused_until.is_some_and(|until| now < until);
            if age < self.limits.fresh || (is_paused && age < self.limits.stale) {
                return Found::Key(Arc::clone(&entry.key));
            }
        }
        if let Some(flight) = state.reads.get(name)
            && let Some(reading) = flight.read.upgrade()
        {
            return Found::Reading(flight.number, reading);
        }
        state
            .reads
            .retain(|_, flight| flight.read.upgrade().is_some());
        let reading = read().shared();
        let number = state.next();
        if let Some(weak) = reading.downgrade() {
            let flight = Flight { number, read: weak };
            state.reads.insert(name.clone(), flight);
        }
        Found::Reading(number, reading)
    }

    /// What a read that is over means for whoever waited for it; the first of them puts it in.
    fn settle(&self, name: &KeyName, number: u64, result: ReadResult) -> ReadResult {
        let now = Instant::now();
        let mut state = self.state.lock();
        let is_first = state
            .reads
            .get(name)
            .is_some_and(|flight| flight.number == number);
        if is_first {
            state.reads.remove(name);
        }
        match result {
            Ok(key) => {
                if is_first {
                    state.insert(name, Arc::clone(&key), now, &self.limits);
                }
                Ok(key)
            }
            Err(failure) if failure.kind == VaultFailureKind::Unavailable => {
                let Some(entry) = state.entries.get_mut(name) else {
                    return Err(failure);
                };
                if now - entry.read_at >= self.limits.stale {
                    return Err(failure);
                }
                if is_first {
                    entry.paused_until = Some(now + self.limits.pause);
                    tracing::warn!(
                        key = ?name, %failure,
                        "the store is away, a data key that was read earlier stays in use"
                    );
                }
                Ok(Arc::clone(&entry.key))
            }
            Err(failure) => {
                if is_first {
                    state.remove(name);
                }
                Err(failure)
            }
        }
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn remove(&mut self, name: &KeyName) {
        if let Some(entry) = self.entries.remove(name) {
            self.order.remove(&entry.number);
        }
    }

    fn insert(&mut self, name: &KeyName, key: Arc<Key>, now: Instant, limits: &Limits) {
        self.remove(name);
        while let Some((&number, oldest)) = self.order.first_key_value() {
            let is_over = self
                .entries
                .get(oldest)
                .is_none_or(|entry| now - entry.read_at >= limits.stale);
            if self.entries.len() < limits.keys && !is_over {
                break;
            }
            self.entries.remove(oldest);
            self.order.remove(&number);
        }
        let number = self.next();
        self.order.insert(number, name.clone());
        let entry = Entry {
            key,
            number,
            read_at: now,
            paused_until: None,
        };
        self.entries.insert(name.clone(), entry);
    }
}

#[cfg(test)]
mod tests;
