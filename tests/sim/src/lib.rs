//! The real agent, whole, in a world in memory: one thread, a paused clock, a seed, and a list of
//! what goes wrong. Invariants are judged at every call and every event; when the chaos is over,
//! everything wanted must come true and stay.

#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::struct_excessive_bools,
    reason = "the judges pick out what they are about, and keep what they saw"
)]

mod assembly;
mod incarnation;
#[cfg(debug_assertions)]
mod isolation;
mod judge;
mod kinds;
mod ledger;
mod plan;
mod planted;
mod ports;
mod quiet;
mod rivals;
mod run;
mod scenario;
mod script;
mod shared;
mod shrink;
mod suite;
mod times;
mod tokens;
mod wishes;
mod world;

#[cfg(debug_assertions)]
pub use isolation::{Break, isolation};
pub use plan::{
    ACTORS, ActorFault, CallFault, EventFault, Fault, Intensity, MessageFault, Plan, WORKERS,
    WorldFault, at_random, workers_of,
};
pub use rivals::{Rivalry, STRIKES, rivalry};
pub use run::{Outcome, Setup, run};
pub use scenario::{Scenario, scenario_asked_for, scenarios, setup, words};
pub use script::{POLICIES, SENTINELS, Script, Step, Variant};
pub use shared::Extent;
pub use suite::{Summary, all, number, on_all_cores, plan_asked_for, seeded};
pub use times::Times;
pub use tokens::{Load, decrypt_load, token_table};
