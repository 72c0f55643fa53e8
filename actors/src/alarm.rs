//! Wakes an actor when something is due.

use std::time::Duration;

use krane_domain::ids::Moment;

use crate::actor::{Context, Message};

/// The next moment at which an actor wakes itself.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    rings_at: Option<Moment>,
}

impl Alarm {
    /// Sends `message` at this moment, unless an alarm rings before it anyway.
    pub(crate) fn set<M: Message>(&mut self, at: Moment, context: &Context<M>, message: M) {
        if let Some(delay) = self.delay(at, context.board.now()) {
            context.later(delay, message);
        }
    }

    /// After how long to ring; `None` when it rings before `at` anyway.
    ///
    /// A moment that has passed rings at once: time goes on between the look at what is due and
    /// this one, and what became due in between must not be slept over.
    fn delay(&mut self, at: Moment, now: Moment) -> Option<Duration> {
        if self.rings_at.is_some_and(|rings_at| rings_at <= at) {
            return None;
        }
        self.rings_at = Some(at);
        Some(at.saturating_sub(now))
    }

    /// Its message arrived.
    pub(crate) fn rang(&mut self) {
        self.rings_at = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Alarm;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_became_due_since_it_was_looked_at_rings_at_once() {
        assert_eq!(Alarm::default().delay(at(9), at(10)), Some(Duration::ZERO));
    }

    #[test]
    fn only_an_earlier_moment_rings_again() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.delay(at(20), at(10)), Some(at(10)));
        assert_eq!(alarm.delay(at(30), at(10)), None, "20 rings before");
        assert_eq!(alarm.delay(at(15), at(10)), Some(at(5)));
        alarm.rang();
        assert_eq!(alarm.delay(at(30), at(15)), Some(at(15)));
    }
}
