//! The cluster in memory does what a real one does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod backup;
mod contract;
mod deployments;
mod edits;
mod leases;
mod life;
