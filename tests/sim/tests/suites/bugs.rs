//! T15: each planted defect is found, and soon.

use krane_domain::planted::Bug;
use krane_testsim::{CallFault, Fault, Setup, run, scenarios, seeded, setup};

/// Within so many seeds.
const SEEDS: u64 = 400;

/// How the suites find it: the run and what it says.
fn found(bug: Bug) -> Option<(String, String)> {
    let swept = scenarios().into_iter().flat_map(|scenario| {
        let delays = (0..40).map(|call| Fault::Control(call, CallFault::DelayAfter(5_000)));
        let faults = std::iter::once(None).chain(delays.map(Some));
        faults
            .map(|fault| {
                let words = format!("{}: {fault:?}", scenario.0);
                (words, setup(&scenario, fault.as_slice()))
            })
            .collect::<Vec<_>>()
    });
    let seeds = (1..=SEEDS).map(|seed| (format!("KRANE_SEED={seed}"), seeded(seed)));
    let mut all = seeds.chain(swept);
    all.find_map(|(words, setup)| {
        let planted = Setup {
            bug: Some(bug),
            ..setup.clone()
        };
        let text = run(&planted).violation?;
        let sound = run(&setup).violation;
        assert_eq!(sound, None, "{words} fails without a defect");
        Some((words, text))
    })
}

#[test]
fn every_planted_defect_is_found() {
    let mut missed = Vec::new();
    std::thread::scope(|scope| {
        let halves = Bug::ALL.chunks(Bug::ALL.len().div_ceil(2));
        let threads: Vec<_> = halves
            .map(|bugs| scope.spawn(|| bugs.iter().map(|bug| (*bug, found(*bug))).collect()))
            .collect();
        for thread in threads {
            let results: Vec<(Bug, Option<(String, String)>)> = thread.join().expect("joins");
            for (bug, result) in results {
                println!("{bug:?}: {result:?}");
                if result.is_none() {
                    missed.push(bug);
                }
            }
        }
    });
    assert_eq!(missed, [], "nobody noticed");
}
