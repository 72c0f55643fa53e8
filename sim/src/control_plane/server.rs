//! A control plane that does what a test tells it: a real gRPC server of `ctrl.v1.ClusterService` on 127.0.0.1, over a
//! store in memory.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use krane_sim::control_plane::{ControlPlane, samples};
//!
//! let control = ControlPlane::start("a-token").await?;
//! let version = control.push(samples::apply(samples::deployment("ws1", "web")));
//! // … run krane against control.url() …
//! let limit = Duration::from_secs(10);
//! control.wait_for("web runs", limit, |seen| seen.running("web").then_some(())).await?;
//! # Ok(())
//! # }
//! ```
//!
//! - Like a connect-go server it sends the headers of a stream with the stream's first message, not before.
//! - Like the Go control plane it keeps one row per object, the newest, unless [`ControlPlane::keep_history`] says
//!   otherwise, and refuses requests without the bearer token or with an incomplete region.
//! - Everything that reaches it is recorded: [`Seen`].

mod check;
mod error;
mod faults;
mod kind;
mod row;
mod running;
pub mod samples;
mod script;
mod seen;
mod service;
mod shared;
mod state;
mod store;
mod unary;
mod valve;
mod wait;
mod watch;

pub use error::Error;
pub use kind::{Kind, Method};
pub use running::ControlPlane;
pub use script::Backup;
pub use seen::{Asked, Delivered, Instance, Report, Request, Seen, Status};
pub use state::State;
pub use store::Answer;
pub use tonic::Code;
pub use wait::TimedOut;

/// The region this control plane answers for; it accepts every complete one.
pub const REGION: &str = "us-east-1";
/// The platform of [`REGION`].
pub const PLATFORM: &str = "aws";
