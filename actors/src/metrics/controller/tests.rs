use krane_domain::ids::Controller;
use prometheus::Registry;

use super::{ControllerFamilies, ControllerMetrics};
use crate::metrics::tests::scrape;

/// Each field counts under its own name: every one is raised by another amount.
#[test]
fn every_field_is_scraped_under_its_own_name() {
    let registry = Registry::new();
    let families = ControllerFamilies::register(&registry).expect("registers");
    let metrics = families.of(Controller::Deployments);
    let ControllerMetrics {
        apply_writes,
        apply_skipped,
        apply_deletes,
        drift_detected,
        drift_repaired,
        lane_panics,
        undecodable,
        relists,
        states_oversize,
        stream_connected,
        reports_delivered,
        reports_refused,
        reports_unreachable,
        report_lag,
        resync_duration,
        reconcile: _,
        stream_ends: _,
        controller: _,
    } = &metrics;
    let counters = [
        (apply_writes, "krane_apply_writes_total"),
        (apply_skipped, "krane_apply_skipped_total"),
        (apply_deletes, "krane_apply_deletes_total"),
        (drift_detected, "krane_drift_detected_total"),
        (drift_repaired, "krane_drift_repaired_total"),
        (lane_panics, "krane_lane_panics_total"),
        (undecodable, "krane_watch_undecodable_total"),
        (relists, "krane_watch_relists_total"),
        (states_oversize, "krane_states_oversize_total"),
    ];
    let reports = [
        (reports_delivered, "delivered"),
        (reports_refused, "refused"),
        (reports_unreachable, "unreachable"),
    ];
    let mut lines = vec![
        "krane_stream_connected{controller=\"deployments\"} 1".to_owned(),
        "krane_stream_ends_total{code=\"unavailable\",controller=\"deployments\"} 1".to_owned(),
        "krane_report_lag_seconds_sum{controller=\"deployments\"} 2".to_owned(),
        "krane_resync_duration_seconds_sum{controller=\"deployments\"} 3".to_owned(),
    ];
    stream_connected.set(1);
    metrics.stream_ended("unavailable");
    report_lag.observe(2.0);
    resync_duration.observe(3.0);
    let mut amount = 10;
    for (counter, name) in counters {
        amount += 1;
        counter.inc_by(amount);
        lines.push(format!("{name}{{controller=\"deployments\"}} {amount}"));
    }
    for (counter, result) in reports {
        amount += 1;
        counter.inc_by(amount);
        lines.push(format!(
            "krane_reports_total{{controller=\"deployments\",result=\"{result}\"}} {amount}"
        ));
    }
    let text = scrape(&registry);
    for line in lines {
        assert!(text.contains(&line), "{line} is missing in:\n{text}");
    }
}
