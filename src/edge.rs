//! The adapters of the actors' ports: everything that speaks to another process.

pub mod cluster;
pub mod control_plane;
pub mod reach;
pub mod vault;
pub mod wire;
