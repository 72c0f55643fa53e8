//! Integration tests.

mod cluster_edge;
mod control_plane;
mod health;
mod settings;
mod tidy;
