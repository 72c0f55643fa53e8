//! Integration tests.

mod admin;
mod allow_deletes;
mod attacks;
mod cases;
mod check;
mod cluster_edge;
mod control_plane;
mod control_plane_contract;
mod errors;
mod health;
mod log;
mod observe;
mod rights;
mod rpc;
mod settings;
mod tidy;
mod vault;
