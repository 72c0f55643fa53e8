//! Calls of the scheduler (D32): what the RPC port asks for, and what it is answered.
//!
//! A call becomes a message to the reconciler of its kind and is answered once its lane has ended.
//! From then on its object is looked after like any other; nothing here remembers it.

mod desk;

pub use crate::followers::MOST_FOLLOWERS;
pub use desk::{CALL_DEADLINE, Desk, Front};
