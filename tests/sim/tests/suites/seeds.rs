//! Everything at random.

use krane_testsim::{
    Fault, Setup, all, number, on_all_cores, plan_asked_for, run, scenario_asked_for, seeded,
};

/// Seeds of the quick tier.
const QUICK: u64 = 24;
/// So many seeds meet every kind of fault often.
const MANY: u64 = 5_000;
const OFTEN: u64 = 100;

#[test]
fn whatever_goes_wrong_nothing_forbidden_happens_and_all_comes_true_in_the_end() {
    if let Some(setup) = scenario_asked_for().or_else(|| number("KRANE_SEED").map(seeded)) {
        return repeat(setup);
    }
    let first = number("KRANE_FIRST_SEED").unwrap_or(1);
    let count = number("KRANE_SEEDS").unwrap_or(QUICK);
    let setups: Vec<(String, Setup)> = (first..first + count)
        .map(|seed| (format!("KRANE_SEED={seed}"), seeded(seed)))
        .collect();
    let summary = all(&setups);
    println!("{summary}");
    assert!(summary.failures.is_empty(), "see above");
    if count >= MANY {
        let rare: Vec<String> = Fault::kinds_at_random()
            .into_iter()
            .filter(|kind| summary.counts.get(kind).is_none_or(|count| *count < OFTEN))
            .collect();
        assert!(rare.is_empty(), "struck less than {OFTEN} times: {rare:?}");
    }
}

fn repeat(mut setup: Setup) {
    if let Some(plan) = plan_asked_for() {
        setup.plan = plan.expect("KRANE_PLAN is a plan");
    }
    setup.is_loud = true;
    println!("{}", setup.plan.to_text());
    let outcome = run(&setup);
    for line in &outcome.trace {
        println!("{line}");
    }
    assert_eq!(outcome.violation, None);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let count = number("KRANE_SEEDS").map_or(6, |seeds| (seeds / 10).max(6));
    let seeds: Vec<u64> = (1..=count).collect();
    on_all_cores(&seeds, |seed| {
        let setup = seeded(*seed);
        let (first, second) = (run(&setup), run(&setup));
        assert_eq!(first.hash, second.hash, "KRANE_SEED={seed}");
        assert_eq!(first.violation, second.violation);
    });
    println!("{count} seeds run twice");
}
