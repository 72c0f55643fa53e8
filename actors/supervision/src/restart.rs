//! When something that failed may run again: a budget of failures and a growing, capped pause.
//!
//! The budget is charged at the moment of the failure, before any pause. Charged at the restart,
//! a pause longer than the period would let a crash loop go on for ever.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Moment;

#[cfg(test)]
mod tests;

/// At most `intensity` failures within any `period`.
#[derive(Clone, Debug)]
pub struct Budget {
    intensity: usize,
    period: Duration,
    failures: VecDeque<Moment>,
}

/// What a failure did to a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// There is room for another restart.
    Within,
    /// The budget is spent, and full again for whoever starts over.
    Spent,
}

impl Budget {
    /// A full budget. An intensity of zero is spent by the first failure.
    pub fn new(intensity: usize, period: Duration) -> Self {
        Self {
            intensity,
            period,
            failures: VecDeque::new(),
        }
    }

    /// Charges one failure at `now`. Moments never go back.
    pub fn charge(&mut self, now: Moment) -> Charge {
        while self
            .failures
            .front()
            .is_some_and(|&at| now.saturating_sub(at) >= self.period)
        {
            self.failures.pop_front();
        }
        if self.failures.len() >= self.intensity {
            self.failures.clear();
            return Charge::Spent;
        }
        self.failures.push_back(now);
        Charge::Within
    }
}

/// How pauses grow from failure to failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The longest first pause.
    pub first: Duration,
    /// No pause is longer.
    pub cap: Duration,
    /// The share of a pause that chance may take away: 1 spreads over the whole of it.
    pub spread: f64,
    /// After this time without a failure, pauses start over.
    pub reset_after: Duration,
}

impl Backoff {
    /// For restarts: 100 ms doubling to 30 s, spread over all of it.
    pub const RESTART: Self = Self {
        first: Duration::from_millis(100),
        cap: Duration::from_secs(30),
        spread: 1.0,
        reset_after: Duration::from_mins(1),
    };

    /// For what spent its budget: 30 s doubling to 10 min, at least half of it.
    pub const PARK: Self = Self {
        first: Duration::from_secs(30),
        cap: Duration::from_mins(10),
        spread: 0.5,
        reset_after: Duration::from_mins(20),
    };

    /// For a server that spent its budget: 5 s doubling to 15 s, at least half of it. Health,
    /// metrics and the page are what an operator has.
    pub const PARK_SERVER: Self = Self {
        first: Duration::from_secs(5),
        cap: Duration::from_secs(15),
        spread: 0.5,
        reset_after: Duration::from_mins(5),
    };

    /// The pause after `earlier` failures in a row; `chance` is a number in [0, 1).
    pub fn pause(&self, earlier: u32, chance: f64) -> Duration {
        let doubled = 2_u32
            .checked_pow(earlier)
            .map_or(self.cap, |by| self.first.saturating_mul(by));
        let longest = doubled.min(self.cap);
        let chance = if chance.is_finite() {
            chance.clamp(0.0, 1.0)
        } else {
            0.0
        };
        longest.mul_f64(1.0 - self.spread.clamp(0.0, 1.0) * chance)
    }
}

/// The failures in a row of one child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streak {
    failures: u32,
}

impl Streak {
    /// Adds a failure after `up_for` of good running and says how long to pause.
    pub fn failed(&mut self, backoff: &Backoff, up_for: Duration, chance: f64) -> Duration {
        if up_for >= backoff.reset_after {
            self.failures = 0;
        }
        let pause = backoff.pause(self.failures, chance);
        self.failures = self.failures.saturating_add(1);
        pause
    }
}
