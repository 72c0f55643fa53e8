//! What is read from the stores of the controllers at scrape time.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, MetricFamily, MetricType};
use prometheus::{IntGaugeVec, Opts};

use super::reconcile::QUEUE;
use crate::breaker::BreakerState;
use crate::store::{Store, StoreReadings};

/// One metric: its name, its help, and its value for a controller.
struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    value: fn(&StoreReadings) -> u64,
}

const FAMILIES: [Family; 22] = [
    Family {
        name: "krane_stream_cursor",
        help: "Version the desired-state stream resumes after.",
        kind: MetricType::GAUGE,
        value: |it| it.cursor,
    },
    Family {
        name: "krane_stream_lag_versions",
        help: "Versions received and not yet passed by the cursor.",
        kind: MetricType::GAUGE,
        value: |it| it.lag,
    },
    Family {
        name: "krane_quarantined",
        help: "States that cannot be applied and hold the cursor back.",
        kind: MetricType::GAUGE,
        value: |it| it.quarantined,
    },
    Family {
        name: "krane_misconfigured",
        help: "Objects that permissions, admission or foreign objects hold up.",
        kind: MetricType::GAUGE,
        value: |it| it.misconfigured,
    },
    Family {
        name: "krane_objects_held",
        help: "Objects that a person put on hold.",
        kind: MetricType::GAUGE,
        value: |it| it.on_hold,
    },
    Family {
        name: "krane_backlog",
        help: "Objects with a state that is not applied yet.",
        kind: MetricType::GAUGE,
        value: |it| it.unapplied,
    },
    Family {
        name: "krane_backlog_bytes",
        help: "Bytes of states that are not applied yet.",
        kind: MetricType::GAUGE,
        value: |it| it.unapplied_bytes,
    },
    Family {
        name: "krane_lanes",
        help: "Lanes at work.",
        kind: MetricType::GAUGE,
        value: |it| it.in_flight,
    },
    Family {
        name: "krane_report_backlog",
        help: "Objects whose newest status the control plane does not know yet.",
        kind: MetricType::GAUGE,
        value: |it| it.undelivered_reports,
    },
    Family {
        name: "krane_deletes_held",
        help: "Deletions on not_found that wait for a person.",
        kind: MetricType::GAUGE,
        value: |it| it.held_deletions,
    },
    Family {
        name: "krane_objects_outdated",
        help: "Workloads with pods of an earlier template.",
        kind: MetricType::GAUGE,
        value: |it| it.outdated,
    },
    Family {
        name: "krane_objects_to_upgrade",
        help: "Objects that another version or agent rendered and that wait to be rewritten, or to roll.",
        kind: MetricType::GAUGE,
        value: |it| it.to_upgrade,
    },
    Family {
        name: "krane_objects_name_conflict",
        help: "Workload names that several namespaces use.",
        kind: MetricType::GAUGE,
        value: |it| it.name_conflicts,
    },
    Family {
        name: "krane_breaker_state",
        help: "0 closed, 1 probing, 2 open.",
        kind: MetricType::GAUGE,
        value: |it| match it.breaker {
            BreakerState::Closed => 0,
            BreakerState::Probing => 1,
            BreakerState::Open { .. } => 2,
        },
    },
    Family {
        name: "krane_kinds_missing",
        help: "Kinds the API server does not know at present.",
        kind: MetricType::GAUGE,
        value: |it| it.kinds_missing,
    },
    Family {
        name: "krane_watches_broken",
        help: "Kinds whose watch does not work at present; what is known of them is old.",
        kind: MetricType::GAUGE,
        value: |it| it.broken_watches,
    },
    Family {
        name: "krane_replayed_states_total",
        help: "States received that were known already.",
        kind: MetricType::COUNTER,
        value: |it| it.replayed,
    },
    Family {
        name: "krane_states_stale_total",
        help: "States received that were older than known.",
        kind: MetricType::COUNTER,
        value: |it| it.stale,
    },
    Family {
        name: "krane_states_adopted_total",
        help: "States of a restored control plane, taken in though their version is lower than known.",
        kind: MetricType::COUNTER,
        value: |it| it.adopted,
    },
    Family {
        name: "krane_states_unknown_total",
        help: "Messages received that name no object.",
        kind: MetricType::COUNTER,
        value: |it| it.unknown,
    },
    Family {
        name: "workqueue_depth",
        help: "Keys that wait for a lane.",
        kind: MetricType::GAUGE,
        value: |it| it.ready,
    },
    Family {
        name: "workqueue_adds_total",
        help: "How often a key became ready for a lane.",
        kind: MetricType::COUNTER,
        value: |it| it.adds,
    },
];

impl Family {
    /// Each of them has the controller's name as value.
    fn labels(&self) -> &'static [&'static str] {
        if self.name.starts_with("workqueue_") {
            QUEUE
        } else {
            &["controller"]
        }
    }
}

/// Reads the stores of all controllers at scrape time.
#[derive(Debug)]
pub struct StoreCollector {
    stores: Vec<Arc<Store>>,
    gauges: Vec<IntGaugeVec>,
}

impl StoreCollector {
    /// A collector over these stores.
    pub fn new(stores: Vec<Arc<Store>>) -> Result<Self, prometheus::Error> {
        let gauges = FAMILIES
            .iter()
            .map(|family| IntGaugeVec::new(Opts::new(family.name, family.help), family.labels()))
            .collect::<Result<_, _>>()?;
        Ok(Self { stores, gauges })
    }
}

impl Collector for StoreCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        for store in &self.stores {
            let readings = store.readings();
            let name = store.controller().name();
            for (family, gauge) in FAMILIES.iter().zip(&self.gauges) {
                let value = (family.value)(&readings);
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                let labels = vec![name; family.labels().len()];
                gauge.with_label_values(&labels).set(value);
            }
        }
        let mut collected = Vec::with_capacity(FAMILIES.len());
        for (family, gauge) in FAMILIES.iter().zip(&self.gauges) {
            for mut metrics in gauge.collect() {
                if family.kind == MetricType::COUNTER {
                    as_counter(&mut metrics);
                }
                collected.push(metrics);
            }
        }
        collected
    }
}

/// A total that the store keeps is a counter to whoever scrapes.
fn as_counter(family: &mut MetricFamily) {
    family.set_field_type(MetricType::COUNTER);
    for metric in family.mut_metric() {
        let value = metric.get_gauge().get_value();
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    }
}

#[cfg(test)]
mod tests;
