//! krane touches the world here: settings, adapters of the actors' ports, servers, the page, the CLI.

pub mod edge;
