//! What krane decides, as pure functions and values.
//!
//! Desired state becomes objects, live objects become drift, pods become status, received
//! versions become a cursor. Nothing here does I/O, reads a clock, draws a random number or logs:
//! moments are passed in as the time since the process started.

#![cfg_attr(
    test,
    allow(
        clippy::unchecked_time_subtraction,
        reason = "in a test an underflow is a failure"
    )
)]

pub mod backlog;
pub mod brake;
mod canonical;
pub mod cursor;
pub mod desired;
pub mod drift;
pub mod ids;
pub mod invalid;
pub mod kinds;
pub mod labels;
pub mod lease;
mod lenient;
pub mod members;
pub mod object;
pub mod origin;
pub mod outbox;
pub mod plan;
pub mod pod;
mod quantity;
pub mod refusal;
pub mod replay;
pub mod report;
mod rfc3339;
pub mod scheduler;
pub mod secret;
pub mod secrets;
#[cfg(any(test, debug_assertions))]
pub mod testing;
pub mod trace;
pub mod upgrades;
mod variables;
pub mod view;
pub mod words;
