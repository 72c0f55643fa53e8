//! A controller is broken for ten minutes: the others are as quick as before, and it is not.

use krane_domain::ids::Controller;
use krane_testsim::{Break, isolation};

const SEED: u64 = 7;
/// What the others may take more than undisturbed.
const NOTICED: f64 = 1.5;

#[test]
fn isolation_whatever_breaks_one_controller_the_others_are_as_quick_as_before() {
    let before = isolation(SEED, None).expect("it runs");
    println!("| broken | how | measured | samples | p50 | p99 | p99 undisturbed | ratio |");
    println!("|---|---|---|---|---|---|---|---|");
    for who in Controller::ALL {
        for how in Break::ALL {
            let times = isolation(SEED, Some((who, how))).expect("it runs");
            assert_eq!(times.len(), Controller::ALL.len(), "all are measured");
            for (measured, times) in times {
                let undisturbed = before[&measured].percentile(99);
                let (p50, p99) = (times.percentile(50), times.percentile(99));
                let to = |time: std::time::Duration| time.as_secs_f64() / undisturbed.as_secs_f64();
                let count = times.count();
                println!(
                    "| {who} | {how:?} | {measured} | {count} | {p50:.1?} | {p99:.1?} | \
                     {undisturbed:.1?} | {:.2} |",
                    to(p99)
                );
                assert!(count >= 500, "{count} samples");
                if measured == who {
                    // Most of its own work is late: it is broken all the time, not now and then.
                    assert!(to(p50) > NOTICED, "{who} works in spite of {how:?}");
                } else {
                    assert!(
                        to(p99) <= NOTICED,
                        "{measured} noticed that {who} is broken ({how:?})"
                    );
                }
            }
        }
    }
}
