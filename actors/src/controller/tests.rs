//! A whole controller over a small cluster and a small control plane, on a paused clock.

mod autoscaling;
mod harness;
mod isolation;
mod kinds;
mod load;
mod outages;
mod outdated;
mod registry;
mod replay;
mod reports;
mod resync;
mod states;
mod upgrades;
