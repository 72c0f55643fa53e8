//! Every worker fails in every way at every one of its first messages.

use krane_testsim::{ActorFault, Fault, Setup, scenarios, setup, words, workers_of};

use super::{Weight, must_hold, sample};

/// Runs in the quick tier.
const QUICK: usize = 32;

#[test]
fn an_actor_may_fail_in_any_way_at_any_message() {
    let mut setups: Vec<(String, Setup)> = Vec::new();
    for scenario in scenarios() {
        for actor in workers_of(scenario.about) {
            for message in 0..12 {
                for what in [
                    ActorFault::Panic(message),
                    ActorFault::PanicAfter(message),
                    ActorFault::Fail(message),
                    ActorFault::Hang(message),
                ] {
                    let fault = Fault::Actor(actor, what);
                    setups.push((words(&scenario), setup(&scenario, &[fault])));
                }
            }
        }
    }
    must_hold(&sample(setups, QUICK, Weight::Core));
}
