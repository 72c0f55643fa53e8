//! The RPC port and what every HTTP server of krane shares.

pub mod authorization;
pub mod bind;
pub mod bounds;
pub mod calls;
pub mod connect;
pub mod health;
pub mod port;
pub mod reflection;
mod room;
pub mod scheduler;
pub mod secrets;
pub mod serve;
pub mod tls;
