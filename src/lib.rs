//! krane touches the world here: settings, adapters of the actors' ports, servers, the page, the CLI.

pub mod admin;
mod authorization;
pub mod cli;
mod codes;
#[cfg(feature = "demo")]
pub mod demo;
pub mod edge;
pub mod observe;
pub mod preflight;
pub mod render;
pub mod rpc;
pub mod run;
pub mod settings;
pub mod telemetry;
pub mod version;
mod words;
