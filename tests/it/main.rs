//! Integration tests.

mod admin;
mod cluster_edge;
mod control_plane;
mod control_plane_contract;
mod health;
mod settings;
mod tidy;
