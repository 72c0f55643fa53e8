//! Time in the simulated cluster: tokio's clock, so that a paused one drives it, from a fixed date.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// 2026-01-01T00:00:00Z
const BEGINNING: i64 = 1_767_225_600;

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(super) fn now() -> Instant {
        Instant::now()
    }

    /// The time of day in whole seconds, as objects carry it.
    pub(super) fn timestamp(&self) -> String {
        self.timestamp_in(Duration::ZERO)
    }

    pub(super) fn timestamp_in(&self, later: Duration) -> String {
        let seconds = (Self::now() - self.start + later).as_secs();
        let seconds = BEGINNING.saturating_add_unsigned(seconds);
        Timestamp::from_second(seconds).map_or_else(|_| String::new(), |time| time.to_string())
    }

    /// The time of day in seconds since the Unix epoch.
    pub(super) fn unix_seconds(&self) -> u64 {
        let seconds = (Self::now() - self.start).as_secs();
        BEGINNING.unsigned_abs() + seconds
    }

    /// When a timestamp is over, on tokio's clock.
    pub(super) fn instant(&self, timestamp: &str) -> Option<Instant> {
        let seconds = timestamp.parse::<Timestamp>().ok()?.as_second() - BEGINNING;
        Some(self.start + Duration::from_secs(u64::try_from(seconds).ok()?))
    }
}
