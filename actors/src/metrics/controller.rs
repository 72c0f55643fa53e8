//! What one controller counts as it happens.

use krane_domain::ids::Controller;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

use super::reconcile::{ReconcileFamilies, ReconcileMetrics};

/// The metric families all controllers share, labelled by controller.
#[derive(Clone, Debug)]
pub struct ControllerFamilies {
    apply_writes: IntCounterVec,
    apply_skipped: IntCounterVec,
    apply_deletes: IntCounterVec,
    drift_detected: IntCounterVec,
    drift_repaired: IntCounterVec,
    lane_panics: IntCounterVec,
    undecodable: IntCounterVec,
    relists: IntCounterVec,
    states_oversize: IntCounterVec,
    stream_connected: IntGaugeVec,
    stream_ends: IntCounterVec,
    reports: IntCounterVec,
    report_lag: HistogramVec,
    resync_duration: HistogramVec,
    reconcile: ReconcileFamilies,
}

impl ControllerFamilies {
    /// Registers the families.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let family = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, prometheus::Error>(family)
        };
        let histogram = |name: &str, help: &str, buckets: Vec<f64>| {
            let options = HistogramOpts::new(name, help).buckets(buckets);
            let family = HistogramVec::new(options, &["controller"])?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, prometheus::Error>(family)
        };
        let of_controller = |name: &str, help: &str| counter(name, help, &["controller"]);
        let stream_connected = IntGaugeVec::new(
            Opts::new(
                "krane_stream_connected",
                "Whether the desired-state stream is open.",
            ),
            &["controller"],
        )?;
        registry.register(Box::new(stream_connected.clone()))?;
        Ok(Self {
            apply_writes: of_controller(
                "krane_apply_writes_total",
                "Objects written to the cluster.",
            )?,
            apply_skipped: of_controller(
                "krane_apply_skipped_total",
                "Objects compared and found as wanted, so not written.",
            )?,
            apply_deletes: of_controller(
                "krane_apply_deletes_total",
                "Objects deleted from the cluster.",
            )?,
            drift_detected: of_controller(
                "krane_drift_detected_total",
                "Objects that were in place and were changed by others.",
            )?,
            drift_repaired: of_controller(
                "krane_drift_repaired_total",
                "Changes by others that were undone.",
            )?,
            lane_panics: of_controller(
                "krane_lane_panics_total",
                "Panics confined to one object.",
            )?,
            undecodable: of_controller(
                "krane_watch_undecodable_total",
                "Objects in lists and watches that made no sense.",
            )?,
            relists: of_controller(
                "krane_watch_relists_total",
                "Complete lists taken after the first.",
            )?,
            states_oversize: of_controller(
                "krane_states_oversize_total",
                "Messages of the control plane over the size limit.",
            )?,
            stream_connected,
            stream_ends: counter(
                "krane_stream_ends_total",
                "Ends of the desired-state stream, by gRPC code.",
                &["controller", "code"],
            )?,
            reports: counter(
                "krane_reports_total",
                "Reports sent to the control plane, by result.",
                &["controller", "result"],
            )?,
            report_lag: histogram(
                "krane_report_lag_seconds",
                "From a change seen in the cluster to its report taken by the control plane.",
                vec![
                    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
                ],
            )?,
            resync_duration: histogram(
                "krane_resync_duration_seconds",
                "Duration of a pass over all objects.",
                vec![0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0],
            )?,
            reconcile: ReconcileFamilies::register(registry)?,
        })
    }

    /// What one controller counts with.
    pub fn of(&self, controller: Controller) -> ControllerMetrics {
        let name = controller.name();
        let of = |family: &IntCounterVec| family.with_label_values(&[name]);
        ControllerMetrics {
            apply_writes: of(&self.apply_writes),
            apply_skipped: of(&self.apply_skipped),
            apply_deletes: of(&self.apply_deletes),
            drift_detected: of(&self.drift_detected),
            drift_repaired: of(&self.drift_repaired),
            lane_panics: of(&self.lane_panics),
            undecodable: of(&self.undecodable),
            relists: of(&self.relists),
            states_oversize: of(&self.states_oversize),
            stream_connected: self.stream_connected.with_label_values(&[name]),
            stream_ends: self.stream_ends.clone(),
            reports_delivered: self.reports.with_label_values(&[name, "delivered"]),
            reports_refused: self.reports.with_label_values(&[name, "refused"]),
            reports_unreachable: self.reports.with_label_values(&[name, "unreachable"]),
            report_lag: self.report_lag.with_label_values(&[name]),
            resync_duration: self.resync_duration.with_label_values(&[name]),
            reconcile: self.reconcile.of(controller),
            controller,
        }
    }
}

/// What one controller counts with.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "each is the family of the same name, described at registration"
)]
pub struct ControllerMetrics {
    pub apply_writes: IntCounter,
    pub apply_skipped: IntCounter,
    pub apply_deletes: IntCounter,
    pub drift_detected: IntCounter,
    pub drift_repaired: IntCounter,
    pub lane_panics: IntCounter,
    pub undecodable: IntCounter,
    pub relists: IntCounter,
    pub states_oversize: IntCounter,
    pub stream_connected: IntGauge,
    pub reports_delivered: IntCounter,
    pub reports_refused: IntCounter,
    pub reports_unreachable: IntCounter,
    pub report_lag: Histogram,
    pub resync_duration: Histogram,
    pub reconcile: ReconcileMetrics,
    stream_ends: IntCounterVec,
    controller: Controller,
}

impl ControllerMetrics {
    /// The stream ended with this gRPC code.
    pub fn stream_ended(&self, code: &'static str) {
        self.stream_ends
            .with_label_values(&[self.controller.name(), code])
            .inc();
    }
}

#[cfg(test)]
mod tests;
