//! What operators look at: metrics, the page and its API.

pub mod actions;
pub mod metrics;
