//! The control plane, asked as krane asks it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::unnecessary_wraps,
    reason = "helpers of tests may fail them and return what the messages want"
)]

mod connections;
mod streams;
mod support;
mod unary;
