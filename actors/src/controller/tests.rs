//! A whole controller over a small cluster and a small control plane, on a paused clock.

mod amnesia;
mod autoscaling;
mod backup;
mod confusion;
mod every_kind;
mod finalizers;
mod forbidden;
mod harness;
mod isolation;
mod kinds;
mod limits;
mod load;
mod outages;
mod outdated;
mod registry;
mod replay;
mod reports;
mod restored;
mod resync;
mod scheduler;
mod stages;
mod states;
mod traces;
mod unopened;
mod upgrades;
