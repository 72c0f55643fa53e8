//! Tests on a real cluster.

mod cluster_contract;
mod control_plane;
mod first;

use krane_testharness::{Outcome, World};

/// The binary under test, built with the fault hooks.
const KRANE: &str = env!("CARGO_BIN_EXE_krane");

/// A world on the cluster that all tests of this binary share.
async fn world() -> Outcome<World> {
    World::shared(KRANE).await
}
