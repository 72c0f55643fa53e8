//! How long messages of one actor wait and take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Times of one actor's messages, over all incarnations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How long the last message waited in the mailbox.
    pub last_wait: Duration,
    /// How long the last handler ran.
    pub last_handle: Duration,
    /// How long messages waited on average since the process began.
    pub mean_wait: Duration,
    /// How long handlers ran on average since the process began.
    pub mean_handle: Duration,
}

/// The same as it is written: one writer at a time, no lock.
#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    messages: AtomicU64,
    last_wait: AtomicU64,
    last_handle: AtomicU64,
    waited: AtomicU64,
    handled: AtomicU64,
}

impl Stopwatch {
    pub(super) fn note(&self, wait: Duration, handle: Duration) {
        let (wait, handle) = (nanos(wait), nanos(handle));
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.last_wait.store(wait, Ordering::Relaxed);
        self.last_handle.store(handle, Ordering::Relaxed);
        self.waited.fetch_add(wait, Ordering::Relaxed);
        self.handled.fetch_add(handle, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Timing {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let messages = read(&self.messages).max(1);
        Timing {
            last_wait: Duration::from_nanos(read(&self.last_wait)),
            last_handle: Duration::from_nanos(read(&self.last_handle)),
            mean_wait: Duration::from_nanos(read(&self.waited) / messages),
            mean_handle: Duration::from_nanos(read(&self.handled) / messages),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Stopwatch, Timing};

    #[test]
    fn the_last_message_and_all_of_them_are_told_apart() {
        let (watch, second) = (Stopwatch::default(), Duration::from_secs(1));
        assert_eq!(watch.read(), Timing::default(), "before the first message");
        watch.note(second, 3 * second);
        watch.note(3 * second, second);
        let expected = Timing {
            last_wait: 3 * second,
            last_handle: second,
            mean_wait: 2 * second,
            mean_handle: 2 * second,
        };
        assert_eq!(watch.read(), expected);
    }

    /// Every message of every actor pays for it.
    #[test]
    fn noting_a_message_costs_next_to_nothing() {
        const MESSAGES: u32 = 100_000;
        let watch = Stopwatch::default();
        let began = tokio::time::Instant::now();
        for _ in 0..MESSAGES {
            watch.note(Duration::from_millis(1), Duration::from_millis(2));
        }
        let each = began.elapsed() / MESSAGES;
        println!("{each:?} to note a message");
        assert!(each < Duration::from_micros(20), "{each:?}");
    }
}
