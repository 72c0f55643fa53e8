//! How many requests run at once and how long each may take.

use std::collections::BTreeMap;
use std::time::Duration;

use krane_ports::LONGEST_CALL;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::request::Verb;

/// How long reads keep a longer limit after the last one that needed it.
const REMEMBERED: Duration = Duration::from_mins(10);

/// How long a request may take, from the first byte sent to the last byte read.
///
/// Waiting for a free slot of [`CallLimits`] is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Reads, each page of a list by itself, and the headers of a watch …
    pub read: Duration,
    /// … and at most, because after each time-out it is doubled (D49).
    pub longest_read: Duration,
    /// Applies and deletes. Longer than the API server takes with webhooks that do not answer.
    pub write: Duration,
    /// After how long the server is asked to close a watch; whole seconds.
    pub watch: Duration,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            read: Duration::from_secs(10),
            longest_read: LONGEST_CALL,
            write: LONGEST_CALL,
            watch: Duration::from_secs(80),
        }
    }
}

impl CallTimeouts {
    /// The same for every call, whatever happens.
    pub fn fixed(limit: Duration) -> Self {
        Self {
            read: limit,
            longest_read: limit,
            write: limit,
            ..Self::default()
        }
    }

    /// Whether a read that timed out is given more time: then it is worth asking again.
    pub(super) fn reads_grow(&self) -> bool {
        self.longest_read > self.read
    }
}

/// How long reads may take at present: a read that timed out has twice the time when it is asked
/// again. A longer limit costs nothing, because a dead connection is found apart from it.
#[derive(Debug, Default)]
pub(super) struct ReadLimits {
    longer: Mutex<BTreeMap<ReadKind, LongerLimit>>,
}

/// Reads that are equally slow: the name of the verb and the resource.
type ReadKind = (&'static str, &'static str);

#[derive(Clone, Copy, Debug)]
struct LongerLimit {
    limit: Duration,
    until: Instant,
}

impl ReadLimits {
    pub(super) fn of(
        &self,
        (verb, resource): (Verb, &'static str),
        timeouts: &CallTimeouts,
        now: Instant,
    ) -> Duration {
        let longer = self.longer.lock();
        let longer = longer.get(&(verb.name(), resource));
        longer
            .filter(|longer| now < longer.until)
            .map_or(timeouts.read, |longer| longer.limit)
    }

    /// A read that had this limit timed out. Many that ran at once double it once.
    pub(super) fn timed_out(
        &self,
        (verb, resource): (Verb, &'static str),
        limit: Duration,
        timeouts: &CallTimeouts,
        now: Instant,
    ) {
        let present = self.of((verb, resource), timeouts, now);
        let doubled = limit.saturating_mul(2).min(timeouts.longest_read);
        let limit = present.max(doubled);
        let until = now + REMEMBERED;
        let mut longer = self.longer.lock();
        longer.insert((verb.name(), resource), LongerLimit { limit, until });
    }

    /// A read was answered after this time.
    pub(super) fn answered(
        &self,
        (verb, resource): (Verb, &'static str),
        took: Duration,
        timeouts: &CallTimeouts,
        now: Instant,
    ) {
        if took > timeouts.read
            && let Some(longer) = self.longer.lock().get_mut(&(verb.name(), resource))
        {
            longer.until = now + REMEMBERED;
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

    const PODS: (Verb, &str) = (Verb::List, "pods");

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// (F32, D49)
    #[test]
    fn a_read_that_timed_out_has_twice_the_time_and_at_most_65_seconds() {
        let (limits, timeouts, now) = (
            ReadLimits::default(),
            CallTimeouts::default(),
            Instant::now(),
        );
        for limit in [10, 20, 40, 65, 65] {
            let limit = seconds(limit);
            assert_eq!(limits.of(PODS, &timeouts, now), limit);
            // As many as ran at once.
            for _ in 0..3 {
                limits.timed_out(PODS, limit, &timeouts, now);
            }
        }
        for others in [(Verb::List, "secrets"), (Verb::Get, "pods")] {
            assert_eq!(limits.of(others, &timeouts, now), seconds(10));
        }
        assert_eq!(timeouts.write, seconds(65));
    }

    /// (F32, D49)
    #[test]
    fn a_longer_limit_stays_for_as_long_as_it_is_needed_and_ten_minutes() {
        let (limits, timeouts, start) = (
            ReadLimits::default(),
            CallTimeouts::default(),
            Instant::now(),
        );
        let at = |second| start + seconds(second);
        limits.timed_out(PODS, seconds(10), &timeouts, at(0));
        limits.answered(PODS, seconds(15), &timeouts, at(500));
        limits.answered(PODS, seconds(1), &timeouts, at(900));
        assert_eq!(limits.of(PODS, &timeouts, at(1_099)), seconds(20));
        assert_eq!(limits.of(PODS, &timeouts, at(1_100)), seconds(10));
        limits.timed_out(PODS, seconds(10), &timeouts, at(1_200));
        assert_eq!(limits.of(PODS, &timeouts, at(1_200)), seconds(20));
    }

    #[test]
    fn fixed_limits_are_never_doubled() {
        let (limits, timeouts) = (ReadLimits::default(), CallTimeouts::fixed(seconds(5)));
        let now = Instant::now();
        limits.timed_out(PODS, seconds(5), &timeouts, now);
        assert_eq!(limits.of(PODS, &timeouts, now), seconds(5));
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
