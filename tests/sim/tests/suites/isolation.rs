//! A controller is broken for ten minutes: the others are as quick as before, and it is not.

use std::collections::BTreeMap;
use std::time::Duration;

use krane_domain::ids::Controller;
use krane_testsim::{Break, Times, isolation, on_all_cores};
use parking_lot::Mutex;

const SEED: u64 = 7;
/// What the others may take more than undisturbed.
const NOTICED: f64 = 1.5;

#[test]
fn isolation_whatever_breaks_one_controller_the_others_are_as_quick_as_before() {
    let before = isolation(SEED, None).expect("it runs");
    println!("| broken | how | measured | samples | p50 | p99 | p99 undisturbed | ratio |");
    println!("|---|---|---|---|---|---|---|---|");
    let each = |who| Break::ALL.into_iter().map(move |how| (who, how));
    let broken: Vec<_> = Controller::ALL.into_iter().flat_map(each).collect();
    let all = Mutex::new(Vec::new());
    on_all_cores(&broken, |&(who, how)| {
        let times = isolation(SEED, Some((who, how))).expect("it runs");
        all.lock().push((who, how, times));
    });
    let mut all = all.into_inner();
    all.sort_by_key(|(who, how, _)| broken.iter().position(|each| *each == (*who, *how)));
    for (who, how, times) in all {
        judge(who, how, &times, &before);
    }
}

fn judge(
    who: Controller,
    how: Break,
    times: &BTreeMap<Controller, Times>,
    before: &BTreeMap<Controller, Times>,
) {
    assert_eq!(times.len(), Controller::ALL.len(), "all are measured");
    for (measured, times) in times {
        let undisturbed = before[measured].percentile(99);
        let (p50, p99) = (times.percentile(50), times.percentile(99));
        let to = |time: Duration| time.as_secs_f64() / undisturbed.as_secs_f64();
        let count = times.count();
        println!(
            "| {who} | {how:?} | {measured} | {count} | {p50:.1?} | {p99:.1?} | {undisturbed:.1?} | \
             {:.2} |",
            to(p99)
        );
        assert!(count >= 500, "{count} samples");
        if *measured == who {
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
