//! How long things took.

use std::time::Duration;

/// Times, in order of length.
#[derive(Clone, Debug)]
pub struct Times(Vec<Duration>);

impl Times {
    /// These, in whatever order they come.
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that so many percent of them did not exceed.
    pub fn percentile(&self, percent: usize) -> Duration {
        let index = self.0.len() * percent / 100;
        let last = self.0.len().saturating_sub(1);
        self.0.get(index.min(last)).copied().unwrap_or_default()
    }
}
