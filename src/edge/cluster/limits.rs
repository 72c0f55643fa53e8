//! How many requests run at once and how long each may take.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

/// How long a request may take, from the first byte sent to the last byte read.
///
/// Waiting for a free slot of [`CallLimits`] is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Reads, each page of a list by itself, and the headers of a watch.
    pub read: Duration,
    /// Applies and deletes.
    pub write: Duration,
    /// After how long the server is asked to close a watch; whole seconds.
    pub watch: Duration,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            read: Duration::from_secs(10),
            write: Duration::from_secs(15),
            watch: Duration::from_secs(80),
        }
    }
}

/// How many requests one owner may have running, watches not counted (D22a).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallLimits {
    /// Requests in flight; at least 1 is allowed whatever is set.
    pub max_in_flight: usize,
    /// Requests per second; 0 for no limit.
    pub qps: f64,
    /// Requests that may go at once after a pause; counts only with `qps`.
    pub burst: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            max_in_flight: 32,
            qps: 0.0,
            burst: 0,
        }
    }
}

/// Hands out slots for requests, in the order asked.
#[derive(Debug)]
pub(super) struct Slots {
    free: Semaphore,
    pace: Option<Pace>,
}

impl Slots {
    pub(super) fn new(limits: CallLimits) -> Self {
        let pace = (limits.qps > 0.0).then(|| Pace::new(limits.qps, limits.burst));
        Self {
            free: Semaphore::new(limits.max_in_flight.max(1)),
            pace,
        }
    }

    /// Waits for a slot; it is free again when the permit is dropped.
    pub(super) async fn take(&self) -> Option<SemaphorePermit<'_>> {
        // An error means a closed semaphore, and nobody closes this one.
        let permit = self.free.acquire().await.ok()?;
        if let Some(pace) = &self.pace {
            let turn = pace.reserve(Instant::now());
            #[expect(
                clippy::disallowed_methods,
                reason = "the wait is the rate limit, in a lane"
            )]
            sleep_until(turn).await;
        }
        Some(permit)
    }
}

/// A rate of requests: each reserves the next free moment.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    /// How far the next free moment may lie in the past: the burst.
    slack: Duration,
    next: Mutex<Option<Instant>>,
}

impl Pace {
    fn new(qps: f64, burst: u32) -> Self {
        const LONGEST: Duration = Duration::from_mins(1);
        let interval = Duration::try_from_secs_f64(1.0 / qps)
            .unwrap_or(LONGEST)
            .min(LONGEST);
        let slack = interval.saturating_mul(burst.saturating_sub(1));
        Self {
            interval,
            slack,
            next: Mutex::new(None),
        }
    }

    fn reserve(&self, now: Instant) -> Instant {
        let mut next = self.next.lock();
        let oldest = now.checked_sub(self.slack).unwrap_or(now);
        let turn = next.map_or(oldest, |next| next.max(oldest));
        *next = Some(turn + self.interval);
        turn.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pace: &Pace, now: Instant, count: usize) -> Vec<u128> {
        (0..count)
            .map(|_| (pace.reserve(now) - now).as_millis())
            .collect()
    }

    #[test]
    fn a_rate_lets_a_burst_go_and_then_one_per_interval() {
        assert_eq!(
            waits(&Pace::new(10.0, 3), Instant::now(), 5),
            [0, 0, 0, 100, 200]
        );
    }

    #[test]
    fn a_pause_does_not_save_up_more_than_the_burst() {
        let pace = Pace::new(10.0, 2);
        let now = Instant::now();
        pace.reserve(now);
        assert_eq!(waits(&pace, now + Duration::from_secs(60), 3), [0, 0, 100]);
    }

    #[tokio::test]
    async fn zero_slots_still_let_one_request_through() {
        let slots = Slots::new(CallLimits {
            max_in_flight: 0,
            ..CallLimits::default()
        });
        assert!(slots.take().await.is_some());
    }
}
