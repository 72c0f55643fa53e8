//! How krane behaves: a tree of actors over ports.
//!
//! No actor sees a Kubernetes client, a gRPC type, a file or a socket; all of these are behind
//! the traits of [`ports`].

pub mod actor;
pub mod address;
pub mod cause;
#[cfg(any(test, feature = "fault-hooks"))]
pub mod fault;
pub mod gate;
pub mod metrics;
pub mod ports;
pub mod status;
pub mod supervisor;
pub mod breaker;
pub mod heartbeat;
pub mod lanes;
pub mod reconciler;
pub mod reporter;
pub mod resync;
pub mod store;
pub mod stream;
pub mod watch;
pub mod controller;
#[cfg(test)]
mod testing;
pub mod agent;
