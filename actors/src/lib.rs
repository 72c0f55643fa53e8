//! How krane behaves: a tree of actors over ports.
//!
//! No actor sees a Kubernetes client, a gRPC type, a file or a socket; all of these are behind
//! the traits of [`krane_ports`].

#![cfg_attr(
    test,
    allow(
        clippy::unchecked_time_subtraction,
        reason = "in a test an underflow is a failure"
    )
)]

pub mod agent;
pub mod breaker;
pub mod chance;
pub mod contact;
pub mod controller;
pub mod events;
mod followers;
mod forbidden;
pub mod heartbeat;
pub mod lanes;
pub mod lease;
pub mod metrics;
pub mod notices;
pub mod operator;
pub mod outage;
pub mod reconciler;
mod refusals;
pub mod replay;
pub mod reporter;
pub mod resync;
pub mod scheduler;
pub mod secrets;
pub mod server;
pub mod status;
pub mod store;
pub mod stream;
pub mod tree;
pub mod watch;

#[cfg(test)]
mod testing;
