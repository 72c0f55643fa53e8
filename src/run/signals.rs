//! SIGTERM and SIGINT.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// Signals closer together than this are one wish, said twice.
const SAME_WISH: Duration = Duration::from_secs(1);

/// Listens for the signals that end the process.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    first_at: Option<Instant>,
}

impl Signals {
    /// From here on a signal no longer ends the process by itself.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            first_at: None,
        })
    }

    /// Waits for the first one; its name.
    pub(super) async fn first(&mut self) -> &'static str {
        let (name, _) = self.next().await;
        self.first_at = Some(now());
        name
    }

    /// Waits for another one, at least a second after the first; the exit code it stands for.
    pub(super) async fn second(&mut self) -> u8 {
        loop {
            let (_, code) = self.next().await;
            let is_same = self.first_at.is_some_and(|first| now() - first < SAME_WISH);
            if !is_same {
                return code;
            }
        }
    }

    async fn next(&mut self) -> (&'static str, u8) {
        tokio::select! {
            _ = self.terminate.recv() => ("SIGTERM", 143),
            _ = self.interrupt.recv() => ("SIGINT", 130),
        }
    }
}

fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal as Kind, getpid, kill_process};

    use super::*;

    fn send(kind: Kind) {
        kill_process(getpid(), kind).unwrap();
    }

    /// unkeyed/unkey 1953c75247, PR #4782 (A64): a second signal is the same wish when it comes at
    /// once, and another one when it comes later.
    #[tokio::test]
    async fn a_second_signal_counts_a_second_after_the_first() {
        let mut signals = Signals::listen().unwrap();
        send(Kind::TERM);
        assert_eq!(signals.first().await, "SIGTERM");
        send(Kind::TERM);
        let same = tokio::time::timeout(SAME_WISH, signals.second()).await;
        assert!(same.is_err(), "{same:?}");
        send(Kind::INT);
        assert_eq!(signals.second().await, 130);
        send(Kind::TERM);
        assert_eq!(signals.second().await, 143);
    }
}
