//! Tests on a real cluster.

mod cluster_contract;
mod control_plane;
