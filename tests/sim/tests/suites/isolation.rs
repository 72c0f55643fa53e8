//! A controller is broken for ten minutes: the others are as quick as before.

use krane_domain::ids::Controller;
use krane_testsim::{Break, isolation};

const SEED: u64 = 7;

#[test]
fn isolation_whatever_breaks_one_controller_the_others_are_as_quick_as_before() {
    let before = isolation(SEED, None).expect("it runs");
    println!("| broken | how | measured | samples | p50 | p99 | p99 undisturbed | ratio |");
    println!("|---|---|---|---|---|---|---|---|");
    for who in Controller::ALL {
        for how in Break::ALL {
            let times = isolation(SEED, Some((who, how))).expect("it runs");
            assert_eq!(times.len(), 2, "the two others work");
            for (other, times) in times {
                let undisturbed = before[&other].percentile(99);
                let (p50, p99) = (times.percentile(50), times.percentile(99));
                let ratio = p99.as_secs_f64() / undisturbed.as_secs_f64();
                let count = times.count();
                println!(
                    "| {who} | {how:?} | {other} | {count} | {p50:.1?} | {p99:.1?} | \
                     {undisturbed:.1?} | {ratio:.2} |"
                );
                assert!(count >= 500, "{count} samples");
                assert!(
                    ratio <= 1.5,
                    "{other} noticed that {who} is broken ({how:?})"
                );
            }
        }
    }
}
