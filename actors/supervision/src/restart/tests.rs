use std::time::Duration;

use proptest::prelude::*;

use super::{Backoff, Budget, Charge, Streak};

const PERIOD: Duration = Duration::from_secs(60);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_failure_after_the_last_allowed_one_spends_the_budget() {
    let mut budget = Budget::new(5, PERIOD);
    let charges: Vec<_> = (0..6).map(|at| budget.charge(seconds(at))).collect();
    assert_eq!(charges[..5], [Charge::Within; 5]);
    assert_eq!(charges[5], Charge::Spent);
}

#[test]
fn a_spent_budget_is_full_again() {
    let mut budget = Budget::new(1, PERIOD);
    assert_eq!(budget.charge(seconds(0)), Charge::Within);
    assert_eq!(budget.charge(seconds(1)), Charge::Spent);
    assert_eq!(budget.charge(seconds(1)), Charge::Within);
}

#[test]
fn failures_older_than_the_period_cost_nothing() {
    let mut budget = Budget::new(5, PERIOD);
    // One failure every 12 s is just what five per minute sustain.
    assert!((0..1_000).all(|n| budget.charge(seconds(12 * n)) == Charge::Within));
}

#[test]
fn pauses_double_up_to_the_cap() {
    let backoff = Backoff::RESTART;
    let pauses: Vec<_> = [0, 1, 2, 8, 9, 40]
        .map(|earlier| backoff.pause(earlier, 0.0))
        .into();
    let expected = [100, 200, 400, 25_600, 30_000, 30_000].map(Duration::from_millis);
    assert_eq!(pauses, expected);
}

#[test]
fn a_minute_of_good_running_starts_the_pauses_over() {
    let mut streak = Streak::default();
    for _ in 0..5 {
        streak.failed(&Backoff::RESTART, Duration::ZERO, 0.0);
    }
    let almost = streak.failed(&Backoff::RESTART, seconds(59), 0.0);
    assert_eq!(almost, Duration::from_millis(3_200));
    let after = streak.failed(&Backoff::RESTART, seconds(60), 0.0);
    assert_eq!(after, Backoff::RESTART.first);
}

proptest! {
    #[test]
    fn restarts_never_exceed_their_rate(
        intensity in 0_usize..8,
        period in 1_u64..100,
        gaps in prop::collection::vec(0_u64..40, 0..200),
    ) {
        let period = seconds(period);
        let mut budget = Budget::new(intensity, period);
        let mut now = Duration::ZERO;
        // Restarts since the budget was last spent: whoever spends it starts over elsewhere.
        let mut granted: Vec<Duration> = Vec::new();
        for gap in gaps {
            now += seconds(gap);
            let recent = granted.iter().filter(|&&at| now.saturating_sub(at) < period).count();
            match budget.charge(now) {
                Charge::Within => {
                    prop_assert!(recent < intensity);
                    granted.push(now);
                }
                Charge::Spent => {
                    prop_assert_eq!(recent, intensity);
                    granted.clear();
                }
            }
        }
    }

    #[test]
    fn a_pause_lies_between_its_floor_and_its_cap(
        earlier in any::<u32>(),
        chance in any::<f64>(),
        spread in 0.0_f64..=1.0,
    ) {
        let backoff = Backoff { spread, ..Backoff::PARK };
        let longest = backoff.pause(earlier, 0.0);
        let pause = backoff.pause(earlier, chance);
        prop_assert!(pause <= longest && longest <= backoff.cap);
        // One nanosecond for rounding.
        prop_assert!(pause + Duration::from_nanos(1) >= longest.mul_f64(1.0 - spread));
    }

    #[test]
    fn pauses_of_a_streak_never_shrink_without_good_running(count in 1_usize..40) {
        let mut streak = Streak::default();
        let pauses: Vec<_> =
            (0..count).map(|_| streak.failed(&Backoff::RESTART, seconds(1), 0.0)).collect();
        prop_assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
