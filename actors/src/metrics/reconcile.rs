//! Lanes and what waits for them, under the names that controller-runtime made known.
//!
//! A lane is a reconcile and the backlog's ready keys are its workqueue. Its stages are krane's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krane_domain::backlog::{Outcome, TroubleKind};
use krane_domain::ids::Controller;
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};
use tokio::time::Instant;

/// Labels of a workqueue; both are the controller's name.
pub(super) const QUEUE: &[&str] = &["name", "controller"];

const RECONCILE_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];
const QUEUE_SECONDS: &[f64] = &[
    0.000_1, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1000.0,
];

/// The families of all controllers.
#[derive(Clone, Debug)]
pub(super) struct ReconcileFamilies {
    results: IntCounterVec,
    errors: IntCounterVec,
    terminal_errors: IntCounterVec,
    panics: IntCounterVec,
    timeouts: IntCounterVec,
    seconds: HistogramVec,
    most: IntGaugeVec,
    retries: IntCounterVec,
    queue_seconds: HistogramVec,
    work_seconds: HistogramVec,
    stages: HistogramVec,
    running: Vec<(Controller, Running)>,
}

impl ReconcileFamilies {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let family = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, prometheus::Error>(family)
        };
        let histogram = |name: &str, help: &str, labels: &[&str], buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            let family = HistogramVec::new(options, labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok::<_, prometheus::Error>(family)
        };
        let most = IntGaugeVec::new(
            Opts::new(
                "controller_runtime_max_concurrent_reconciles",
                "Lanes that may be at work at once.",
            ),
            &["controller"],
        )?;
        registry.register(Box::new(most.clone()))?;
        let running = Controller::ALL.map(|controller| (controller, Running::default()));
        registry.register(Box::new(RunningCollector::new(running.to_vec())?))?;
        Ok(Self {
            results: counter(
                "controller_runtime_reconcile_total",
                "Lanes that ended: success, error, requeue (waits for shared objects), requeue_after (waits for a moment, and nothing is wrong).",
                &["controller", "result"],
            )?,
            errors: counter(
                "controller_runtime_reconcile_errors_total",
                "Lanes that ended with an error.",
                &["controller"],
            )?,
            terminal_errors: counter(
                "controller_runtime_terminal_reconcile_errors_total",
                "Lanes that ended with their state in quarantine; it is tried again, rarely.",
                &["controller"],
            )?,
            panics: counter(
                "controller_runtime_reconcile_panics_total",
                "Lanes that panicked.",
                &["controller"],
            )?,
            timeouts: counter(
                "controller_runtime_reconcile_timeouts_total",
                "Lanes that were cut off at their deadline.",
                &["controller"],
            )?,
            seconds: histogram(
                "controller_runtime_reconcile_time_seconds",
                "Duration of lanes, without the time before.",
                &["controller"],
                RECONCILE_SECONDS,
            )?,
            most,
            retries: counter(
                "workqueue_retries_total",
                "Lanes that ended with an error, so that their key waits for another attempt.",
                QUEUE,
            )?,
            queue_seconds: histogram(
                "workqueue_queue_duration_seconds",
                "Time keys were ready before a lane took them.",
                QUEUE,
                QUEUE_SECONDS,
            )?,
            work_seconds: histogram(
                "workqueue_work_duration_seconds",
                "Time lanes worked on keys.",
                QUEUE,
                QUEUE_SECONDS,
            )?,
            stages: histogram(
                "krane_stage_seconds",
                "Where the time of desired versions goes: received_to_started, started_to_applied, applied_to_reported.",
                &["controller", "stage"],
                QUEUE_SECONDS,
            )?,
            running: running.to_vec(),
        })
    }

    pub(super) fn of(&self, controller: Controller) -> ReconcileMetrics {
        let name = controller.name();
        let result = |result| self.results.with_label_values(&[name, result]);
        let stage = |stage| self.stages.with_label_values(&[name, stage]);
        let counter = |family: &IntCounterVec| family.with_label_values(&[name]);
        let running = self.running.iter().find(|(of, _)| *of == controller);
        ReconcileMetrics {
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: counter(&self.errors),
            terminal_errors: counter(&self.terminal_errors),
            panics: counter(&self.panics),
            timeouts: counter(&self.timeouts),
            seconds: self.seconds.with_label_values(&[name]),
            most: self.most.with_label_values(&[name]),
            retries: self.retries.with_label_values(&[name, name]),
            queue_seconds: self.queue_seconds.with_label_values(&[name, name]),
            work_seconds: self.work_seconds.with_label_values(&[name, name]),
            received_to_started: stage("received_to_started"),
            started_to_applied: stage("started_to_applied"),
            applied_to_reported: stage("applied_to_reported"),
            running: running.map(|(_, it)| it.clone()).unwrap_or_default(),
        }
    }
}

/// What the lanes of one controller count with.
#[derive(Clone, Debug)]
pub struct ReconcileMetrics {
    success: IntCounter,
    error: IntCounter,
    requeue: IntCounter,
    requeue_after: IntCounter,
    errors: IntCounter,
    terminal_errors: IntCounter,
    /// Lanes that panicked.
    pub panics: IntCounter,
    /// Lanes that were cut off.
    pub timeouts: IntCounter,
    seconds: Histogram,
    /// Lanes that may be at work at once.
    pub most: IntGauge,
    retries: IntCounter,
    queue_seconds: Histogram,
    work_seconds: Histogram,
    /// From a version's arrival to its first lane.
    pub received_to_started: Histogram,
    /// From its first lane to its being in place.
    pub started_to_applied: Histogram,
    /// From its being in place to the report that tells of it.
    pub applied_to_reported: Histogram,
    running: Running,
}

impl ReconcileMetrics {
    /// A lane takes a key that was ready for this long.
    pub fn begin(&self, waited: Duration) -> LaneTimer<'_> {
        self.queue_seconds.observe(waited.as_secs_f64());
        LaneTimer {
            metrics: self,
            began: Instant::now(),
            number: self.running.begin(),
        }
    }
}

/// One lane at work; dropped half-way it counts for nothing.
#[derive(Debug)]
pub struct LaneTimer<'a> {
    metrics: &'a ReconcileMetrics,
    began: Instant,
    number: u64,
}

impl LaneTimer<'_> {
    /// It ended like this.
    pub fn end(self, outcome: &Outcome) {
        let metrics = self.metrics;
        let took = self.began.elapsed().as_secs_f64();
        metrics.seconds.observe(took);
        metrics.work_seconds.observe(took);
        let kind = match outcome {
            Outcome::Done { .. } => return metrics.success.inc(),
            Outcome::Blocked(_) | Outcome::Deferred { .. } => return metrics.requeue.inc(),
            Outcome::Trouble(trouble) => trouble.kind,
        };
        match kind {
            TroubleKind::Held | TroubleKind::Waiting => metrics.requeue_after.inc(),
            TroubleKind::Quarantined | TroubleKind::Misconfigured | TroubleKind::Transient => {
                metrics.error.inc();
                metrics.errors.inc();
                metrics.retries.inc();
                if kind == TroubleKind::Quarantined {
                    metrics.terminal_errors.inc();
                }
            }
        }
    }
}

impl Drop for LaneTimer<'_> {
    fn drop(&mut self) {
        self.metrics.running.end(self.number);
    }
}

/// When each lane at work began.
#[derive(Clone, Debug, Default)]
struct Running(Arc<Mutex<Lanes>>);

#[derive(Debug, Default)]
struct Lanes {
    last: u64,
    began: BTreeMap<u64, Instant>,
}

impl Running {
    fn begin(&self) -> u64 {
        let mut lanes = self.0.lock();
        lanes.last += 1;
        let number = lanes.last;
        lanes.began.insert(number, Instant::now());
        number
    }

    fn end(&self, number: u64) {
        self.0.lock().began.remove(&number);
    }

    /// How long each lane has been at work, the oldest first.
    fn ages(&self) -> Vec<Duration> {
        let lanes = self.0.lock();
        lanes.began.values().map(Instant::elapsed).collect()
    }
}

/// Looks at the lanes at work at every scrape.
#[derive(Debug)]
struct RunningCollector {
    running: Vec<(Controller, Running)>,
    workers: IntGaugeVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
}

impl RunningCollector {
    fn new(running: Vec<(Controller, Running)>) -> Result<Self, prometheus::Error> {
        let workers = Opts::new("controller_runtime_active_workers", "Lanes at work.");
        let unfinished = Opts::new(
            "workqueue_unfinished_work_seconds",
            "Time that lanes at work have worked so far, all together.",
        );
        let longest = Opts::new(
            "workqueue_longest_running_processor_seconds",
            "Time that the oldest lane at work has worked so far.",
        );
        Ok(Self {
            running,
            workers: IntGaugeVec::new(workers, &["controller"])?,
            unfinished: GaugeVec::new(unfinished, QUEUE)?,
            longest: GaugeVec::new(longest, QUEUE)?,
        })
    }
}

impl Collector for RunningCollector {
    fn desc(&self) -> Vec<&Desc> {
        let mut all = self.workers.desc();
        all.extend(self.unfinished.desc());
        all.extend(self.longest.desc());
        all
    }

    fn collect(&self) -> Vec<MetricFamily> {
        for (controller, running) in &self.running {
            let (name, ages) = (controller.name(), running.ages());
            let workers = i64::try_from(ages.len()).unwrap_or(i64::MAX);
            self.workers.with_label_values(&[name]).set(workers);
            let all: Duration = ages.iter().sum();
            let queue = [name, name];
            self.unfinished
                .with_label_values(&queue)
                .set(all.as_secs_f64());
            let longest = ages.first().copied().unwrap_or_default();
            self.longest
                .with_label_values(&queue)
                .set(longest.as_secs_f64());
        }
        let mut families = self.workers.collect();
        families.extend(self.unfinished.collect());
        families.extend(self.longest.collect());
        families
    }
}

#[cfg(test)]
mod tests;
