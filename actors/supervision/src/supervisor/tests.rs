//! One test at least for each rule of the supervisor, over real actors on a paused clock.

mod budget;
mod failures;
mod fuzz;
mod mailbox;
mod order;
mod preparation;
mod silence;
mod stopping;
mod threads;
mod undead;
