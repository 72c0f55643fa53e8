use std::collections::BTreeSet;
use std::time::Duration;

use krane_domain::backlog::{Outcome, Trouble, TroubleKind};
use krane_domain::ids::Controller;
use prometheus::Registry;

use super::{ReconcileFamilies, ReconcileMetrics};
use crate::metrics::tests::scrape;

const SECOND: Duration = Duration::from_secs(1);

fn setting() -> (Registry, ReconcileMetrics) {
    let registry = Registry::new();
    let families = ReconcileFamilies::register(&registry).expect("registers");
    for controller in Controller::ALL {
        families.of(controller);
    }
    (registry, families.of(Controller::Sentinels))
}

fn assert_has(registry: &Registry, lines: &[&str]) {
    let text = scrape(registry);
    for line in lines {
        let line = line
            .replace("{q}", "{controller=\"sentinels\",name=\"sentinels\"}")
            .replace("{}", "{controller=\"sentinels\"}");
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
}

fn trouble(kind: TroubleKind) -> Outcome {
    Outcome::Trouble(Trouble::new(kind, "as the test wants it"))
}

/// Who reconciles here is counted as who reconciles with controller-runtime.
#[tokio::test(start_paused = true)]
async fn each_end_of_a_lane_counts_as_what_it_is_to_controller_runtime() {
    let (registry, metrics) = setting();
    let ends = [
        (Outcome::NOTHING_TO_DO, 1),
        (Outcome::Blocked(BTreeSet::new()), 2),
        (trouble(TroubleKind::Waiting), 3),
        (trouble(TroubleKind::Held), 4),
        (trouble(TroubleKind::Transient), 5),
        (trouble(TroubleKind::Misconfigured), 6),
        (trouble(TroubleKind::Quarantined), 7),
    ];
    for (outcome, times) in ends {
        for _ in 0..times {
            metrics.begin(SECOND).end(&outcome);
        }
    }
    let result = |result: &str, times: u32| {
        format!(
            "controller_runtime_reconcile_total{{controller=\"sentinels\",result=\"{result}\"}} {times}"
        )
    };
    assert_has(
        &registry,
        &[
            &result("success", 1),
            &result("requeue", 2),
            &result("requeue_after", 7),
            &result("error", 18),
            "controller_runtime_reconcile_errors_total{} 18",
            "controller_runtime_terminal_reconcile_errors_total{} 7",
            "controller_runtime_reconcile_time_seconds_count{} 28",
            "workqueue_retries_total{q} 18",
            "workqueue_work_duration_seconds_count{q} 28",
            "workqueue_queue_duration_seconds_sum{q} 28",
            "controller_runtime_active_workers{} 0",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn lanes_at_work_are_seen_while_they_work_and_not_when_they_were_dropped() {
    let (registry, metrics) = setting();
    metrics.most.set(8);
    let first = metrics.begin(Duration::ZERO);
    tokio::time::advance(2 * SECOND).await;
    let second = metrics.begin(Duration::ZERO);
    tokio::time::advance(SECOND).await;
    assert_has(
        &registry,
        &[
            "controller_runtime_max_concurrent_reconciles{} 8",
            "controller_runtime_active_workers{} 2",
            "workqueue_unfinished_work_seconds{q} 4",
            "workqueue_longest_running_processor_seconds{q} 3",
        ],
    );
    drop(first);
    assert_has(
        &registry,
        &[
            "controller_runtime_active_workers{} 1",
            "workqueue_longest_running_processor_seconds{q} 1",
            "controller_runtime_reconcile_time_seconds_count{} 0",
        ],
    );
    second.end(&Outcome::NOTHING_TO_DO);
    assert_has(
        &registry,
        &[
            "controller_runtime_active_workers{} 0",
            "workqueue_unfinished_work_seconds{q} 0",
            "controller_runtime_reconcile_time_seconds_sum{} 1",
        ],
    );
}

/// A lane takes milliseconds; what it costs to count it must not be seen beside that.
#[test]
fn counting_a_lane_costs_next_to_nothing() {
    const LANES: u32 = 20_000;
    let (_, metrics) = setting();
    let began = tokio::time::Instant::now();
    for _ in 0..LANES {
        metrics.begin(SECOND).end(&Outcome::NOTHING_TO_DO);
    }
    let each = began.elapsed() / LANES;
    println!("{each:?} to count a lane");
    assert!(each < Duration::from_micros(100), "{each:?}");
}
