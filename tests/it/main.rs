//! Integration tests.

mod cluster_edge;
mod control_plane;
