//! The suites over the whole agent in memory. `KRANE_SEEDS` says how many seeds, `KRANE_SWEEP=all`
//! that sweeps leave nothing out; `KRANE_SEED`, with `KRANE_PLAN` if wanted, repeats one seed and
//! shows its trace.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test says what it found, and fails where it meets the unexpected"
)]

#[cfg(feature = "hooks")]
mod bugs;
mod seeds;
#[cfg(feature = "hooks")]
mod supervision;
mod sweeps;

use krane_testsim::{Setup, all, number};

/// Every so many of these, unless everything is asked for.
fn sample(setups: Vec<(String, Setup)>, quick: usize) -> Vec<(String, Setup)> {
    let is_all = std::env::var("KRANE_SWEEP").is_ok_and(|sweep| sweep == "all");
    let step = if is_all {
        1
    } else {
        (setups.len() / quick).max(1)
    };
    // Another part of them with every seed to begin with.
    let offset = usize::try_from(number("KRANE_FIRST_SEED").unwrap_or(0)).unwrap_or(0) % step;
    setups.into_iter().skip(offset).step_by(step).collect()
}

fn must_hold(setups: &[(String, Setup)]) {
    let summary = all(setups);
    println!("{summary}");
    assert!(summary.failures.is_empty(), "see above");
}
