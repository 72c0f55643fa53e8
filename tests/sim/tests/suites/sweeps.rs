//! One fault at every place of every scenario.

use krane_testsim::{
    CallFault, EventFault, Extent, Fault, MessageFault, Setup, run, scenarios, setup, words,
};

use super::{Weight, must_hold, sample};

/// Runs of a sweep in the quick tier.
const QUICK: usize = 24;

/// Every scenario with each of these faults, one at a time; how many there are is learned first.
fn sweep(faults: impl Fn(Extent) -> Vec<Fault>) -> Vec<(String, Setup)> {
    let mut setups = Vec::new();
    for scenario in scenarios() {
        let learned = run(&setup(&scenario, &[]));
        assert_eq!(learned.violation, None, "{}", scenario.name);
        for fault in faults(learned.extent) {
            setups.push((words(&scenario), setup(&scenario, &[fault])));
        }
    }
    setups
}

#[test]
fn a_crash_before_or_after_any_call_leaves_nothing_undone() {
    let setups = sweep(|extent| {
        let mut faults = Vec::new();
        for what in [CallFault::CrashBefore, CallFault::CrashAfter] {
            faults.extend((0..extent.cluster).map(|call| Fault::Cluster(call, what)));
            faults.extend((0..extent.control).map(|call| Fault::Control(call, what)));
        }
        faults
    });
    must_hold(&sample(setups, QUICK, Weight::Core));
}

#[test]
fn any_call_may_fail_in_any_way() {
    let setups = sweep(|extent| {
        let mut faults = Vec::new();
        let ways = (0..8).map(CallFault::Refuse).chain([
            CallFault::LoseAnswer,
            CallFault::Hang,
            CallFault::Late(16_000),
            CallFault::DelayBefore(5_000),
            CallFault::DelayAfter(5_000),
        ]);
        for what in ways {
            faults.extend((0..extent.cluster).map(|call| Fault::Cluster(call, what)));
            faults.extend((0..extent.control).map(|call| Fault::Control(call, what)));
        }
        faults
    });
    must_hold(&sample(setups, QUICK, Weight::More));
}

#[test]
fn anything_may_happen_to_any_message_of_a_stream() {
    let setups = sweep(|extent| {
        let mut faults = Vec::new();
        for what in [
            MessageFault::Cut,
            MessageFault::CutCleanly,
            MessageFault::Delay(7_000),
            MessageFault::Repeat,
            MessageFault::Swap,
            MessageFault::Silence,
        ] {
            let messages = 0..extent.messages;
            faults.extend(messages.map(|message| Fault::Message(message, what)));
        }
        faults
    });
    must_hold(&sample(setups, QUICK, Weight::Core));
}

#[test]
fn anything_may_happen_to_any_event_of_a_watch() {
    let setups = sweep(|extent| {
        let mut faults = Vec::new();
        for what in [
            EventFault::Gap(0),
            EventFault::Gap(1),
            EventFault::Gap(2),
            EventFault::Delay(7_000),
            EventFault::Repeat,
            EventFault::Swap,
            EventFault::Break,
            EventFault::Silence,
        ] {
            let events = 0..extent.events;
            faults.extend(events.map(|event| Fault::Event(event, what)));
        }
        faults
    });
    must_hold(&sample(setups, QUICK, Weight::More));
}
