//! Moments of the process as points in time.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use krane_domain::ids::Moment;
use serde::{Serialize, Serializer};

/// The wall clock at moment zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(Timestamp);

/// A point in time; in JSON as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(Timestamp);

impl Epoch {
    /// Moment zero, when it is `unix_seconds` at moment `now`.
    #[must_use]
    pub fn new(unix_seconds: u64, now: Moment) -> Self {
        Self::of(Duration::from_secs(unix_seconds), now)
    }

    /// Moment zero, when it is `unix_time` since the Unix epoch at moment `now`.
    #[must_use]
    pub fn of(unix_time: Duration, now: Moment) -> Self {
        let wall = Timestamp::from_duration(signed(unix_time)).unwrap_or_default();
        Self(wall.checked_sub(signed(now)).unwrap_or_default())
    }

    /// The point in time of a moment.
    #[must_use]
    pub fn at(&self, moment: Moment) -> Stamp {
        Stamp(self.0.checked_add(signed(moment)).unwrap_or(self.0))
    }
}

impl Stamp {
    /// A point in time that somebody else wrote, if it is one.
    #[must_use]
    pub fn of_unix_seconds(seconds: u64) -> Option<Self> {
        let seconds = i64::try_from(seconds).ok()?;
        Timestamp::from_second(seconds).ok().map(Self)
    }

    /// Seconds since the Unix epoch.
    #[must_use]
    pub fn unix_seconds(&self) -> u64 {
        u64::try_from(self.0.as_second()).unwrap_or_default()
    }

    /// From `earlier` to this; zero when it is not earlier.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Duration {
        let passed = self.0.duration_since(earlier.0);
        Duration::try_from(passed).unwrap_or_default()
    }

    /// Only the time of day, in UTC.
    #[must_use]
    pub fn clock(&self) -> String {
        self.0.strftime("%H:%M:%S").to_string()
    }
}

impl From<Timestamp> for Stamp {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Epoch;

    #[test]
    fn a_moment_is_told_in_milliseconds_of_the_wall_clock() {
        let epoch = Epoch::new(1_800_000_000, Duration::from_secs(10));
        let stamp = epoch.at(Duration::from_millis(12_345));
        assert_eq!(stamp.to_string(), "2027-01-15T08:00:02.345Z");
        assert_eq!(stamp.clock(), "08:00:02");
        // Lines of the log and of everybody else tell parts of a second, too.
        let within = Epoch::of(Duration::from_millis(1_800_000_000_700), Duration::ZERO);
        assert_eq!(within.at(Duration::from_millis(300)).clock(), "08:00:01");
        let earlier = epoch.at(Duration::from_secs(2));
        assert_eq!(stamp.since(&earlier), Duration::from_millis(10_345));
        assert_eq!(earlier.since(&stamp), Duration::ZERO);
    }
}
