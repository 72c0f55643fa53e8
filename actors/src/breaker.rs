//! Spares a control plane that cannot be reached.
//!
//! Opens after transport failures in a row; an error the server itself answered is a sign of
//! life. While open, one probe goes out after a short random wait; any success closes it.

use std::time::Duration;

use krane_domain::ids::Moment;

/// Transport failures in a row that open the breaker.
const FAILURES: u32 = 5;
/// A probe follows after at least this long …
const PROBE_AFTER: Duration = Duration::from_secs(1);
/// … and at most this much longer.
const PROBE_SPREAD: Duration = Duration::from_secs(4);

/// A circuit breaker. Time is passed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    state: BreakerState,
    failures: u32,
    /// Since when nothing succeeded, if something failed since.
    failing_since: Option<Moment>,
}

/// Whether calls go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// They do.
    Closed,
    /// Not before the next probe.
    Open {
        /// When it may go out.
        probe_at: Moment,
    },
    /// One probe is out.
    Probing,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            state: BreakerState::Closed,
            failures: 0,
            failing_since: None,
        }
    }
}

impl Breaker {
    /// Whether a call may go out now. When open and due, this is the probe.
    pub fn allow(&mut self, now: Moment) -> bool {
        match self.state {
            BreakerState::Closed => true,
            BreakerState::Open { probe_at } if probe_at <= now => {
                self.state = BreakerState::Probing;
                true
            }
            BreakerState::Open { .. } | BreakerState::Probing => false,
        }
    }

    /// The control plane gave a sign of life. Returns how long there had been none, if some call
    /// failed meanwhile.
    pub fn success(&mut self, now: Moment) -> Option<Duration> {
        self.state = BreakerState::Closed;
        self.failures = 0;
        self.failing_since
            .take()
            .map(|since| now.saturating_sub(since))
    }

    /// A call did not get through. `jitter` in 0..1 spreads the probe. Returns whether this
    /// opened a closed breaker.
    pub fn transport_failure(&mut self, now: Moment, jitter: f64) -> bool {
        self.failing_since.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
        let probe_at = now + PROBE_AFTER + PROBE_SPREAD.mul_f64(jitter.clamp(0.0, 1.0));
        match self.state {
            BreakerState::Closed if self.failures < FAILURES => false,
            BreakerState::Closed => {
                self.state = BreakerState::Open { probe_at };
                true
            }
            BreakerState::Probing => {
                self.state = BreakerState::Open { probe_at };
                false
            }
            BreakerState::Open { .. } => false,
        }
    }

    /// A probe was lost without an outcome: another one may go out.
    pub fn abandon_probe(&mut self, now: Moment) {
        if self.state == BreakerState::Probing {
            self.state = BreakerState::Open { probe_at: now };
        }
    }

    /// The state now.
    pub fn state(&self) -> BreakerState {
        self.state
    }

    /// Since when nothing succeeded, if something failed since.
    pub fn failing_since(&self) -> Option<Moment> {
        self.failing_since
    }

    /// When a failed call should be tried again.
    pub fn retry_at(&self, now: Moment, jitter: f64) -> Moment {
        match self.state {
            BreakerState::Open { probe_at } => probe_at,
            BreakerState::Closed | BreakerState::Probing => {
                now + PROBE_AFTER.mul_f64(0.2 + 0.8 * jitter.clamp(0.0, 1.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Breaker, BreakerState};

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn five_transport_failures_in_a_row_open_it_and_one_success_closes_it() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            assert!(!breaker.transport_failure(at(0), 0.5));
        }
        breaker.success(at(0));
        for _ in 0..4 {
            assert!(!breaker.transport_failure(at(1), 0.5));
        }
        assert!(breaker.transport_failure(at(1), 0.5));
        assert!(!breaker.allow(at(1)));
        assert_eq!(breaker.success(at(9)), Some(at(8)));
        assert!(breaker.allow(at(9)));
    }

    #[test]
    fn only_one_probe_goes_out_at_a_time_after_one_to_five_seconds() {
        for jitter in [0.0, 0.3, 1.0] {
            let mut breaker = Breaker::default();
            for _ in 0..5 {
                breaker.transport_failure(at(10), jitter);
            }
            let BreakerState::Open { probe_at } = breaker.state() else {
                panic!("open")
            };
            assert!(probe_at >= at(11) && probe_at <= at(15));
            assert!(breaker.allow(probe_at));
            assert!(!breaker.allow(probe_at), "the probe is out");
            breaker.transport_failure(probe_at, jitter);
            assert!(!breaker.allow(probe_at));
        }
    }
}
