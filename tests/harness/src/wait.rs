//! Waiting for a state.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::{Failure, Outcome};

const PERIOD: Duration = Duration::from_millis(25);
const LONGEST_PERIOD: Duration = Duration::from_millis(250);

/// Asks until the answer is good. The last bad one is in the failure.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, String>,
) -> Outcome<T> {
    let started = Instant::now();
    let mut period = PERIOD;
    loop {
        let last = match ask().await {
            Ok(found) => return Ok(found),
            Err(last) => last,
        };
        if started.elapsed() > limit {
            return Err(Failure::new(format!(
                "{what}: not within {limit:?}; last: {last}"
            )));
        }
        sleep(period).await;
        period = (period * 5 / 4).min(LONGEST_PERIOD);
    }
}
