//! Waiting for what the control plane is told.

use std::{
    fmt,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use super::{ControlPlane, Seen};

/// What a test waited for did not come. Its `Debug` is its `Display`, for `unwrap`.
pub struct TimedOut {
    what: String,
    waited: Duration,
    seen: Seen,
}

impl ControlPlane {
    /// Waits until `look` finds what it looks for in what was seen.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut(&Seen) -> Option<T>,
    ) -> Result<T, TimedOut> {
        let mut changes = self.shared.changes();
        let found = timeout(limit, async {
            loop {
                changes.borrow_and_update();
                if let Some(found) = self.look(&mut look) {
                    return Some(found);
                }
                changes.changed().await.ok()?;
            }
        });
        match found.await {
            Ok(Some(found)) => Ok(found),
            Ok(None) | Err(_) => Err(TimedOut {
                what: what.to_owned(),
                waited: limit,
                seen: self.look(Seen::clone),
            }),
        }
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, waited, seen } = self;
        writeln!(
            f,
            "not seen within {waited:?}: {what}; the newest of {} requests:",
            seen.requests.len()
        )?;
        let now = Instant::now();
        for request in seen.requests.iter().rev().take(12).rev() {
            let ago = now.duration_since(request.at);
            writeln!(
                f,
                "  {ago:?} ago {:?} {:?}: {:?}",
                request.method,
                request.asked,
                request.code()
            )?;
        }
        Ok(())
    }
}

impl fmt::Debug for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for TimedOut {}
