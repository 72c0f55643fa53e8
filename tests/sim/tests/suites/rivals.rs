//! Two processes on one Lease (T9). `KRANE_RIVALS` repeats one seed and shows its trace.

use std::collections::{BTreeMap, BTreeSet};

use krane_testsim::{Rivalry, STRIKES, number, on_all_cores, rivalry};
use parking_lot::Mutex;

use super::defects::is_that_of;

/// Planted defects that only several processes can show.
pub(super) const DEFECTS: [&str; 4] = [
    "lease-outlives-its-window",
    "lease-taken-too-soon",
    "renewal-counts-from-its-answer",
    "writes-without-a-look",
];

/// Seeds that showed one of them before.
const FOUND: [u64; 3] = [1, 3, 21];

/// Seeds of the quick tier.
const QUICK: u64 = 24;

fn words(seed: u64, violation: &str) -> String {
    format!("{violation}\n  KRANE_RIVALS={seed} scripts/sim two_processes")
}

fn repeat(seed: u64) {
    let Rivalry {
        violation, trace, ..
    } = rivalry(seed, None);
    for line in trace {
        println!("{line}");
    }
    assert_eq!(violation, None);
}

#[test]
fn two_processes_on_one_lease_never_write_at_once_and_one_of_them_does_everything() {
    if let Some(seed) = number("KRANE_RIVALS") {
        return repeat(seed);
    }
    let first = number("KRANE_FIRST_SEED").unwrap_or(1);
    // One of these is worth many of one process alone, and takes as long.
    let count = number("KRANE_SEEDS").map_or(QUICK, |seeds| (seeds / 50).max(QUICK));
    let seeds: Vec<u64> = (first..first + count).collect();
    let counts: Mutex<BTreeMap<&str, u64>> = Mutex::default();
    let failures: Mutex<BTreeSet<String>> = Mutex::default();
    let began = std::time::Instant::now();
    on_all_cores(&seeds, |seed| {
        let outcome = rivalry(*seed, None);
        let mut counts = counts.lock();
        for (what, count) in outcome.counts {
            *counts.entry(what).or_default() += count;
        }
        let failure = outcome.violation.map(|text| words(*seed, &text));
        failures.lock().extend(failure);
    });
    let counts = counts.into_inner();
    println!("{count} seeds from {first} in {:.0?}", began.elapsed());
    for (what, count) in &counts {
        println!("  {count:>8}  {what}");
    }
    let failures = failures.into_inner();
    for failure in &failures {
        println!("FAILED {failure}");
    }
    assert!(failures.is_empty(), "see above");
    let met = |what: &&str| counts.get(what).is_some_and(|count| *count > 0);
    if count >= QUICK {
        let came_of_it = ["handovers", "writes beside another holder"];
        let missed: Vec<_> = STRIKES
            .iter()
            .chain(&came_of_it)
            .filter(|it| !met(it))
            .collect();
        assert!(missed.is_empty(), "never met: {missed:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_rivalry() {
    on_all_cores(&[1, 2, 3, 4], |seed| {
        let (first, second) = (rivalry(*seed, None), rivalry(*seed, None));
        assert_eq!(first.hash, second.hash, "KRANE_RIVALS={seed}");
    });
}

#[test]
#[ignore = "scripts/defects runs it, on a copy of the code that has the defects"]
fn every_planted_defect_of_the_lease_is_found() {
    let missed = Mutex::new(Vec::new());
    on_all_cores(&DEFECTS, |defect| {
        // Where it was found before, then all others.
        let mut seeds = FOUND.into_iter().chain(1..=100);
        let found = seeds.find_map(|seed| {
            let text = rivalry(seed, Some(defect)).violation?;
            is_that_of(defect, &text).then_some((seed, text))
        });
        println!("{defect}: {found:?}");
        if found.is_none() {
            missed.lock().push(*defect);
        }
    });
    assert_eq!(missed.into_inner(), [""; 0], "not found");
}
