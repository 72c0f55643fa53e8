//! The real krane binary, run as a process against a real cluster and a scripted control plane.
//!
//! ```no_run
//! # async fn example() -> krane_testharness::Outcome {
//! use krane_testharness::{World, limits::LONG};
//! use krane_sim::control_plane::samples;
//!
//! let world = World::shared("target/debug/krane").await?;
//! let web = samples::deployment(&world.namespace(1), "web");
//! world.control.push(samples::apply(web.clone()));
//! let agent = world.agent().start().await?;
//! world.settles("web runs", &[web], &[], LONG).await?;
//! agent.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! - krane has the rights of the chart and no others: the token of its ServiceAccount, the rules of
//!   `charts/krane/files/rbac.yaml`, under `charts/krane/files/admission-policy.yaml`.
//! - Whoever holds a [`World`] on the shared cluster has that cluster alone, swept of what krane made before.
//! - No agent outlives the test process, and none ends without its log being searched for the secrets it was given.

mod agent;
mod api;
pub mod attack;
mod chart;
mod collector;
mod connect_go;
pub mod edits;
mod failure;
pub mod free_ports;
mod http_get;
pub mod limits;
mod live;
mod log;
mod machine;
mod metrics;
mod outputs;
mod proxy;
mod settled;
pub mod story;
mod sweep;
mod wait;
mod world;

pub use agent::{Agent, AgentBuilder, KEEP_VARIABLE};
pub use api::Api;
pub use chart::Chart;
pub use collector::Collector;
pub use connect_go::ConnectGo;
pub use failure::{Failure, Outcome};
pub use live::{Live, address_of};
pub use log::{Log, LogLine};
pub use machine::Quiet;
pub use metrics::Metrics;
pub use proxy::{Action, Call, Proxy, Recorded};
pub use rustix::process::Signal;
pub use wait::eventually;
pub use world::{CANARY, World};
