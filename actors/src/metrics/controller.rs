//! What one controller counts, and what is read from its store at scrape time.

use std::sync::Arc;

use krane_domain::backlog::TroubleKind;
use krane_domain::ids::Controller;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

use crate::breaker::BreakerState;
use crate::store::Store;

/// The metric families all controllers share, labelled by controller.
#[derive(Clone, Debug)]
pub struct ControllerFamilies {
    counters: Vec<IntCounterVec>,
    stream_connected: IntGaugeVec,
    stream_ends: IntCounterVec,
    reports: IntCounterVec,
    report_lag: HistogramVec,
    resync_duration: HistogramVec,
}

const COUNTERS: [(&str, &str); 9] = [
    (
        "krane_apply_writes_total",
        "Objects written to the cluster.",
    ),
    (
        "krane_apply_skipped_total",
        "Objects compared and found as wanted, so not written.",
    ),
    (
        "krane_apply_deletes_total",
        "Objects deleted from the cluster.",
    ),
    (
        "krane_drift_detected_total",
        "Objects that were in place and were changed by others.",
    ),
    (
        "krane_drift_repaired_total",
        "Changes by others that were undone.",
    ),
    ("krane_lane_panics_total", "Panics confined to one object."),
    (
        "krane_watch_undecodable_total",
        "Objects in lists and watches that made no sense.",
    ),
    (
        "krane_watch_relists_total",
        "Complete lists taken after the first.",
    ),
    (
        "krane_states_oversize_total",
        "Messages of the control plane over the size limit.",
    ),
];

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
        let mut counters = Vec::with_capacity(COUNTERS.len());
        for (name, help) in COUNTERS {
            counters.push(counter(name, help, &["controller"])?);
        }
        let stream_connected = IntGaugeVec::new(
            Opts::new(
                "krane_stream_connected",
                "Whether the desired-state stream is open.",
            ),
            &["controller"],
        )?;
        registry.register(Box::new(stream_connected.clone()))?;
        Ok(Self {
            counters,
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
        })
    }

    /// What one controller counts with.
    pub fn of(&self, controller: Controller) -> ControllerMetrics {
        let name = controller.name();
        let mut counters = self
            .counters
            .iter()
            .map(|family| family.with_label_values(&[name]));
        let mut next = || counters.next().unwrap_or_else(detached);
        ControllerMetrics {
            apply_writes: next(),
            apply_skipped: next(),
            apply_deletes: next(),
            drift_detected: next(),
            drift_repaired: next(),
            lane_panics: next(),
            undecodable: next(),
            relists: next(),
            states_oversize: next(),
            stream_connected: self.stream_connected.with_label_values(&[name]),
            stream_ends: self.stream_ends.clone(),
            reports_delivered: self.reports.with_label_values(&[name, "delivered"]),
            reports_refused: self.reports.with_label_values(&[name, "refused"]),
            reports_unreachable: self.reports.with_label_values(&[name, "unreachable"]),
            report_lag: self.report_lag.with_label_values(&[name]),
            resync_duration: self.resync_duration.with_label_values(&[name]),
            controller,
        }
    }
}

/// Never reached: the list of names and the list of fields have one length, see the test.
#[expect(clippy::expect_used, reason = "constant, valid name")]
fn detached() -> IntCounter {
    IntCounter::new("krane_detached_total", "Not registered.").expect("the name must be valid")
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

/// Reads the stores of all controllers at scrape time.
#[derive(Debug)]
pub struct StoreCollector {
    stores: Vec<Arc<Store>>,
    gauges: Vec<IntGaugeVec>,
}

const GAUGES: [(&str, &str); 14] = [
    (
        "krane_stream_cursor",
        "Version the desired-state stream resumes after.",
    ),
    (
        "krane_stream_lag_versions",
        "Versions received and not yet passed by the cursor.",
    ),
    (
        "krane_quarantined",
        "States that cannot be applied and hold the cursor back.",
    ),
    (
        "krane_misconfigured",
        "Objects that permissions, admission or foreign objects hold up.",
    ),
    ("krane_objects_held", "Objects that a person put on hold."),
    (
        "krane_backlog",
        "Objects with a state that is not applied yet.",
    ),
    (
        "krane_backlog_bytes",
        "Bytes of states that are not applied yet.",
    ),
    ("krane_lanes", "Lanes at work."),
    (
        "krane_report_backlog",
        "Objects whose newest status the control plane does not know yet.",
    ),
    (
        "krane_deletes_held",
        "Deletions on not_found that wait for a person.",
    ),
    (
        "krane_objects_outdated",
        "Workloads with pods of an earlier template.",
    ),
    (
        "krane_objects_name_conflict",
        "Workload names that several namespaces use.",
    ),
    ("krane_breaker_state", "0 closed, 1 probing, 2 open."),
    (
        "krane_kinds_missing",
        "Kinds the API server does not know at present.",
    ),
];

const TOTALS: [(&str, &str); 4] = [
    (
        "krane_replayed_states_total",
        "States received that were known already.",
    ),
    (
        "krane_states_stale_total",
        "States received that were older than known.",
    ),
    (
        "krane_states_adopted_total",
        "States of a restored control plane, taken in though their version is lower than known.",
    ),
    (
        "krane_states_unknown_total",
        "Messages received that name no object.",
    ),
];

impl StoreCollector {
    /// A collector over these stores.
    pub fn new(stores: Vec<Arc<Store>>) -> Result<Self, prometheus::Error> {
        let gauges = GAUGES
            .iter()
            .chain(&TOTALS)
            .map(|(name, help)| IntGaugeVec::new(Opts::new(*name, *help), &["controller"]))
            .collect::<Result<_, _>>()?;
        Ok(Self { stores, gauges })
    }

    fn read(store: &Store) -> [i64; GAUGES.len() + TOTALS.len()] {
        store.with(|memory| {
            let backlog = &memory.backlog;
            let of_kind = |kind: TroubleKind| {
                backlog
                    .in_trouble()
                    .filter(|entry| entry.trouble.kind == kind)
                    .count() as u64
            };
            [
                backlog.cursor(),
                backlog.highest().saturating_sub(backlog.cursor()),
                of_kind(TroubleKind::Quarantined),
                of_kind(TroubleKind::Misconfigured),
                of_kind(TroubleKind::Held),
                backlog.unapplied() as u64,
                backlog.bytes() as u64,
                backlog.in_flight() as u64,
                memory.outbox.undelivered() as u64,
                memory.brake.held().len() as u64,
                memory.outdated.len() as u64,
                memory.view.name_conflicts() as u64,
                match memory.breaker.state() {
                    BreakerState::Closed => 0,
                    BreakerState::Probing => 1,
                    BreakerState::Open { .. } => 2,
                },
                memory.kinds_missing.len() as u64,
                memory.stream.replayed,
                memory.stream.stale,
                memory.stream.adopted,
                memory.stream.unknown,
            ]
            .map(|value| i64::try_from(value).unwrap_or(i64::MAX))
        })
    }
}

impl Collector for StoreCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        for store in &self.stores {
            let name = store.controller().name();
            for (gauge, value) in self.gauges.iter().zip(Self::read(store)) {
                gauge.with_label_values(&[name]).set(value);
            }
        }
        let mut families: Vec<MetricFamily> =
            self.gauges.iter().flat_map(Collector::collect).collect();
        for family in &mut families {
            if TOTALS.iter().any(|(name, _)| *name == family.name()) {
                as_counter(family);
            }
        }
        families
    }
}

/// A total that the store keeps is a counter to whoever scrapes.
fn as_counter(family: &mut MetricFamily) {
    family.set_field_type(prometheus::proto::MetricType::COUNTER);
    for metric in family.mut_metric() {
        let value = metric.get_gauge().get_value();
        let mut counter = prometheus::proto::Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use krane_domain::ids::Controller;
    use krane_domain::kinds::Rules;
    use prometheus::{Encoder, Registry, TextEncoder};

    use super::{ControllerFamilies, StoreCollector};
    use crate::chance::Chance;
    use crate::store::Store;

    #[test]
    fn every_family_is_scraped_under_its_own_name_and_none_is_detached() {
        let registry = Registry::new();
        let families = ControllerFamilies::register(&registry).expect("registers");
        let metrics = families.of(Controller::Deployments);
        metrics.states_oversize.inc();
        metrics.stream_ended("unavailable");
        let store = Arc::new(Store::new(
            Controller::Deployments,
            Rules::default(),
            1,
            Chance::new(1),
        ));
        let collector = StoreCollector::new(vec![store]).expect("valid names");
        registry.register(Box::new(collector)).expect("registers");
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&registry.gather(), &mut text)
            .expect("encodes");
        let text = String::from_utf8(text).expect("text");
        for line in [
            "krane_states_oversize_total{controller=\"deployments\"} 1",
            "krane_stream_ends_total{code=\"unavailable\",controller=\"deployments\"} 1",
            "# TYPE krane_replayed_states_total counter",
            "krane_replayed_states_total{controller=\"deployments\"} 0",
            "krane_stream_cursor{controller=\"deployments\"} 0",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
    }
}
