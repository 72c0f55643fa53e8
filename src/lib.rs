//! krane touches the world here: settings, adapters of the actors' ports, servers, the page, the CLI.

pub mod cli;
pub mod observe;
pub mod preflight;
pub mod render;
pub mod run;
pub mod version;
