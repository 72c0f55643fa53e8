//! The suites over the whole agent in memory. `KRANE_SEEDS` says how many seeds, `KRANE_SWEEP=all`
//! that sweeps leave nothing out, `core` that those of crashes, streams and actors do not; `KRANE_SEED`, with `KRANE_PLAN` if wanted, repeats one seed and
//! shows its trace; so does `KRANE_RIVALS` for two processes on one Lease.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test says what it found, and fails where it meets the unexpected"
)]

mod decrypts;
mod defects;
#[cfg(debug_assertions)]
mod isolation;
mod rivals;
mod seeds;
#[cfg(debug_assertions)]
mod supervision;
mod sweeps;
mod tokens;

use krane_testsim::{Setup, all, number};

/// A run is millions of small JSON values: with glibc's allocator a quarter of it goes there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Which sweeps leave nothing out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// With `KRANE_SWEEP=core` and `all`.
    Core,
    /// With `all` only; a tenth of it with `core`.
    More,
}

/// Every so many of these, unless all are asked for.
fn sample(setups: Vec<(String, Setup)>, quick: usize, weight: Weight) -> Vec<(String, Setup)> {
    let asked = std::env::var("KRANE_SWEEP").unwrap_or_default();
    let step = match (&*asked, weight) {
        ("all", _) | ("core", Weight::Core) => 1,
        ("core", Weight::More) => 10,
        _ => (setups.len() / quick).max(1),
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
