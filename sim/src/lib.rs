//! The world in memory: what krane's ports lead to when there is no cluster and no control plane.

mod bell;
pub mod cluster;
pub mod control_plane;
pub mod hooks;
pub mod vault;
