//! How krane behaves: a tree of actors over ports.
//!
//! No actor sees a Kubernetes client, a gRPC type, a file or a socket; all of these are behind
//! the traits of [`ports`].

pub mod actor;
pub mod address;
pub mod gate;
pub mod metrics;
pub mod ports;
pub mod status;
