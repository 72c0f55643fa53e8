//! How quickly pods get their secrets. Figures for people; the machine decides them.

use krane_testsim::{Load, decrypt_load};

const PODS: u64 = 200;
const RATE: u64 = 1_000;
const SECONDS: u64 = 4;

fn told(what: &str, measured: &Load) {
    println!(
        "{what}: {} answers in {:.1?}, {} refused, p50 {:.1?}, p99 {:.1?}",
        measured.times.count(),
        measured.took,
        measured.refused,
        measured.times.percentile(50),
        measured.times.percentile(99)
    );
}

/// A machine that stands still for half a second makes a queue that is longer than krane keeps.
fn is_rare(measured: &Load) -> bool {
    measured.refused * 20 <= measured.times.count()
}

#[test]
fn a_thousand_decrypts_in_a_second_of_twenty_variables_each_are_answered_and_a_flood_is_not() {
    let calm = decrypt_load(PODS, RATE, SECONDS, false).expect("it runs");
    told("1,000 requests per second by 200 pods", &calm);
    assert!(is_rare(&calm), "each of these is within its allowance");
    let flooded = decrypt_load(PODS, RATE, SECONDS, true).expect("it runs");
    told("the same beside a pod that never stops asking", &flooded);
    assert!(is_rare(&flooded), "the flood is refused, and nobody else");
    let ratio =
        flooded.times.percentile(99).as_secs_f64() / calm.times.percentile(99).as_secs_f64();
    println!("p99 beside the flood: {ratio:.2} times that without it");
}
