//! Tests on a real cluster.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests of real processes have real clocks, and print what they measure"
)]

mod autoscaling;
mod backup;
mod chart;
mod cluster_contract;
mod control_plane;
mod crash;
mod drift;
mod events;
mod faults;
mod first;
mod hostile;
mod isolation;
mod lease;
mod lifecycle;
mod observe;
mod outages;
mod pods;
mod poison;
mod policies;
mod registry;
mod scheduler;
mod secrets;
mod secrets_caller;
mod sentinels;
mod shutdown;
mod slow;
mod states;
mod steady;
mod told;
mod upgrades;

use std::path::{Path, PathBuf};

use krane_testharness::{Outcome, World};

/// The binary under test.
const KRANE: &str = env!("CARGO_BIN_EXE_krane");

/// The binary whose writes go wrong, beside it; `scripts/e2e` builds both.
fn faulty() -> PathBuf {
    Path::new(KRANE).with_file_name("krane-faulty")
}

/// A world on the cluster that all tests of this binary share.
async fn world() -> Outcome<World> {
    World::shared(KRANE).await
}
