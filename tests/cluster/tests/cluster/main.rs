//! The test cluster itself, for real. The first run builds it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod api;
mod lifetime;
mod pods;
mod support;
