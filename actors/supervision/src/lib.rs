//! Actors over ractor: workers with bounded mailboxes at addresses that outlive them, one supervisor for all trees, a tree as data, and
//! what every actor publishes about itself.
//!
//! ```text
//! tree (data) + crew (start functions) -> assemble -> root: supervisor, and the watchdog on its loop
//!                                                     supervisor -> Shell<Behaviour> at an Address, behind a Gate
//!                                                     all of them -> Board
//! ```
//!
//! It knows nothing of what the actors do. Restarts follow Erlang's supervisors: budgets of failures, strategies, ordered starts and
//! stops; one that spent its budget at the top is parked instead of given up.

#![cfg_attr(
    test,
    allow(
        clippy::unchecked_time_subtraction,
        reason = "in a test an underflow is a failure"
    )
)]

pub mod actor;
pub mod address;
pub mod alarm;
pub mod cause;
#[cfg(any(test, debug_assertions))]
pub mod fault;
pub mod gate;
pub mod message;
pub mod meter;
pub mod news;
pub mod restart;
pub mod root;
pub mod status;
pub mod supervisor;
#[cfg(any(test, debug_assertions))]
pub mod testing;
pub mod tree;
pub mod watchdog;

/// A moment as the time since the tree's board was made.
pub type Moment = std::time::Duration;
