//! How often one sender and one pod may ask.
//!
//! A pod asks once whenever a container of it starts: at most every few seconds, even when it
//! crashes all the time. Whoever asks more often pays for it alone.

use core::net::IpAddr;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use krane_domain::ids::Moment;
use parking_lot::Mutex;

/// All pods of a node may share one address, and all of them may start at once.
const PEER: Rate = Rate {
    burst: 256.0,
    per_second: 50.0,
};
/// Containers of one pod.
const POD: Rate = Rate {
    burst: 20.0,
    per_second: 2.0,
};
/// Senders, and pods, that are remembered; all others share one allowance.
const MOST_KNOWN: usize = 16_384;

#[derive(Clone, Copy)]
struct Rate {
    burst: f64,
    per_second: f64,
}

/// The limits on each sender and each pod, shared by clones.
#[derive(Clone)]
pub(super) struct Limits {
    peers: Arc<Mutex<Buckets<IpAddr>>>,
    pods: Arc<Mutex<Buckets<String>>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            peers: Arc::new(Mutex::new(Buckets::new(PEER))),
            pods: Arc::new(Mutex::new(Buckets::new(POD))),
        }
    }
}

impl Limits {
    /// Whether this sender may ask now.
    pub(super) fn peer(&self, peer: IpAddr, now: Moment) -> bool {
        self.peers.lock().take(&peer.to_canonical(), now)
    }

    /// Whether the pod with this uid may ask now.
    pub(super) fn pod(&self, uid: &str, now: Moment) -> bool {
        self.pods.lock().take(&uid.to_owned(), now)
    }
}

#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    filled: Moment,
}

impl Bucket {
    fn refill(&mut self, rate: Rate, now: Moment) {
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * rate.per_second).min(rate.burst);
        self.filled = now;
    }

    fn take(&mut self, rate: Rate, now: Moment) -> bool {
        self.refill(rate, now);
        let has_one = self.tokens >= 1.0;
        if has_one {
            self.tokens -= 1.0;
        }
        has_one
    }
}

/// An allowance for each key that asked lately.
struct Buckets<K> {
    rate: Rate,
    known: HashMap<K, Bucket>,
    others: Bucket,
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    fn new(rate: Rate) -> Self {
        Self {
            rate,
            known: HashMap::new(),
            others: Bucket {
                tokens: rate.burst,
                filled: Moment::ZERO,
            },
        }
    }

    fn take(&mut self, key: &K, now: Moment) -> bool {
        let rate = self.rate;
        if !self.known.contains_key(key) && self.known.len() >= MOST_KNOWN {
            // A full allowance is what a stranger has.
            self.known.retain(|_, bucket| {
                bucket.refill(rate, now);
                bucket.tokens < rate.burst
            });
            if self.known.len() >= MOST_KNOWN {
                return self.others.take(rate, now);
            }
        }
        let fresh = Bucket {
            tokens: rate.burst,
            filled: now,
        };
        let bucket = self.known.entry(key.clone()).or_insert(fresh);
        bucket.take(rate, now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Buckets, MOST_KNOWN, POD};

    #[test]
    fn a_burst_is_allowed_and_then_the_rate() {
        let mut pods = Buckets::new(POD);
        let now = Duration::from_secs(5);
        assert_eq!((0..100).filter(|_| pods.take(&"a", now)).count(), 20);
        assert!(!pods.take(&"a", now + Duration::from_millis(400)));
        assert!(pods.take(&"a", now + Duration::from_millis(600)));
        assert!(pods.take(&"b", now), "another one has its own");
    }

    #[test]
    fn strangers_cost_no_memory_without_end_and_share_what_is_left() {
        let mut pods = Buckets::new(POD);
        let now = Duration::from_secs(5);
        let count = |pods: &mut Buckets<usize>, from: usize, now| {
            (from..from + 2 * MOST_KNOWN)
                .filter(|key| pods.take(key, now))
                .count()
        };
        assert_eq!(count(&mut pods, 0, now), MOST_KNOWN + 20);
        assert_eq!(pods.known.len(), MOST_KNOWN);
        // Those that have not asked for a while are forgotten.
        let later = now + Duration::from_secs(60);
        assert_eq!(count(&mut pods, 1_000_000, later), MOST_KNOWN + 20);
        assert_eq!(pods.known.len(), MOST_KNOWN);
    }
}
