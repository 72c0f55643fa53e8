//! The page and its API, in process: what they show, to whom, and what they never show.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod access;
mod act;
mod api;
mod demo;
mod listing;
mod object;
mod page;
mod world;
