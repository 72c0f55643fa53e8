//! Where krane meets the world: the traits through which its actors reach it and are reached, and the types that pass.
//!
//! Each has a real adapter (`edge/`, `server/`, `telemetry/`) and one in memory (`sim/`). Nothing here decides or does anything.

mod cluster;
mod control_plane;
mod events;
mod lease;
mod process;
mod scheduler;
mod secrets;
mod traces;

pub use cluster::{Cluster, Deletion, Item, LONGEST_CALL, Listed, WEBHOOKS, WatchEnd, WatchEvent};
pub use control_plane::{
    Answer, ControlPlane, Question, RpcFailure, RpcFailureKind, StreamEnd, StreamEvent,
};
pub use events::{EventSink, Notice, Reason};
pub use lease::{LeaseFailure, Leases, WriteAccess, WritePermit};
pub use process::{Clock, PasswordSource, Server};
pub use scheduler::{SchedulerDesk, Watching};
pub use secrets::{
    DecryptRequest, Identities, Refused, SecretsDesk, Vault, VaultFailure, VaultFailureKind,
};
pub use traces::{StateSpan, Traces};
