//! Every worker fails in every way at every one of its first messages.

use krane_testsim::{ActorFault, Extent, Fault, Setup, run, scenarios, setup, words, workers_of};

use super::{Weight, must_hold, sample};

/// Runs in the quick tier.
const QUICK: usize = 32;

/// Messages of each worker that something happens at.
const FIRST: u32 = 12;

/// What a run without faults of its own meets with.
fn learned(undisturbed: &Setup) -> Extent {
    let outcome = run(undisturbed);
    assert_eq!(outcome.violation, None, "{undisturbed:?}");
    outcome.extent
}

#[test]
fn an_actor_may_fail_in_any_way_at_any_message() {
    let mut setups: Vec<(String, Setup)> = Vec::new();
    for scenario in scenarios() {
        let extent = learned(&setup(&scenario, &[]));
        for actor in workers_of(scenario.about) {
            // At a message that never comes nothing happens: that is the run without a fault.
            for message in 0..extent.actors[actor].min(FIRST) {
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

/// What the sweep leaves out is a run that it has made already.
#[test]
fn a_fault_at_a_message_that_never_comes_changes_nothing() {
    let mut compared = 0;
    for scenario in scenarios() {
        let undisturbed = run(&setup(&scenario, &[]));
        for actor in workers_of(scenario.about) {
            let messages = undisturbed.extent.actors[actor];
            if messages < FIRST {
                let fault = Fault::Actor(actor, ActorFault::Panic(messages));
                let outcome = run(&setup(&scenario, &[fault]));
                assert_eq!(
                    outcome.hash, undisturbed.hash,
                    "{} {fault:?}",
                    scenario.name
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "no worker has so few messages");
}
