//! The RPC port and what every HTTP server of krane shares.

pub mod bind;
pub mod health;
pub mod scheduler;
pub mod serve;
pub mod tls;
