//! The control plane in memory: [`SimControlPlane`] is the port itself, on whatever clock tokio
//! has; with the feature `server`, `ControlPlane` is a real gRPC server to speak to.

pub mod memory;
#[cfg(feature = "server")]
#[expect(
    clippy::disallowed_methods,
    reason = "a server of the outside world, on the real clock"
)]
mod server;

pub use memory::SimControlPlane;
#[cfg(feature = "server")]
pub use server::{
    Answer, Asked, Backup, Code, ControlPlane, Delivered, Error, Instance, Kind, Method, PLATFORM,
    REGION, Report, Request, Seen, State, Status, TimedOut, samples,
};
