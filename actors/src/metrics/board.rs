//! The published statuses as metrics, read when they are scraped.

use std::sync::Arc;

use krane_supervision::status::{Activity, ActorStatus, StatusCell};
use prometheus::Opts;
use prometheus::core::{Collector, Desc, Describer};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use crate::metrics::label;
use crate::status::StatusBoard;

/// One metric: its name, its help, and its value for an actor that has it.
struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    value: fn(&ActorStatus, &StatusCell) -> Option<f64>,
}

const FAMILIES: [Family; 8] = [
    Family {
        name: "krane_actor_up",
        help: "Whether the actor takes messages, or the supervisor's children were all started.",
        kind: MetricType::GAUGE,
        value: |status, _| Some(f64::from(u8::from(status.activity.is_up()))),
    },
    Family {
        name: "krane_actor_restarts_total",
        help: "Starts after the first.",
        kind: MetricType::COUNTER,
        value: |status, _| Some(number(status.restarts)),
    },
    Family {
        name: "krane_actor_parked",
        help: "Whether the actor spent its restart budget and waits to come back.",
        kind: MetricType::GAUGE,
        value: |status, _| {
            let is_parked = matches!(status.activity, Activity::Parked { .. });
            Some(f64::from(u8::from(is_parked)))
        },
    },
    Family {
        name: "krane_actor_mailbox_depth",
        help: "Messages waiting or being handled.",
        kind: MetricType::GAUGE,
        value: |_, cell| Some(count(cell.gate()?.depth())),
    },
    Family {
        name: "krane_actor_mailbox_high_water",
        help: "The most messages that were ever waiting or being handled at once.",
        kind: MetricType::GAUGE,
        value: |_, cell| Some(count(cell.gate()?.high_water())),
    },
    Family {
        name: "krane_actor_mailbox_capacity",
        help: "Messages from outside that may wait at once.",
        kind: MetricType::GAUGE,
        value: |_, cell| Some(count(cell.gate()?.capacity())),
    },
    Family {
        name: "krane_actor_panics_total",
        help: "Panics.",
        kind: MetricType::COUNTER,
        value: |status, _| Some(number(status.panics)),
    },
    Family {
        name: "krane_actor_hangs_total",
        help: "Handlers that ran too long, so that the watchdog killed the actor.",
        kind: MetricType::COUNTER,
        value: |status, _| Some(number(status.hangs)),
    },
];

/// Reads a board at every scrape.
#[derive(Debug)]
pub struct BoardCollector {
    board: StatusBoard,
    descriptions: Vec<Desc>,
}

impl BoardCollector {
    /// A collector for this board.
    pub fn new(board: StatusBoard) -> Result<Self, prometheus::Error> {
        let describe = |family: &Family| {
            Opts::new(family.name, family.help)
                .variable_labels(vec!["controller".to_owned(), "actor".to_owned()])
                .describe()
        };
        let descriptions = FAMILIES.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self {
            board,
            descriptions,
        })
    }
}

impl Collector for BoardCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // One reading for all families, so that they agree.
        let actors: Vec<_> = self
            .board
            .all()
            .into_iter()
            .map(|(path, cell)| (labels(&path, &cell), cell.read(), cell))
            .collect();
        FAMILIES
            .iter()
            .map(|family| collect(family, &actors))
            .collect()
    }
}

type Actor = (Vec<LabelPair>, Arc<ActorStatus>, Arc<StatusCell>);

fn collect(family: &Family, actors: &[Actor]) -> MetricFamily {
    let metrics = actors.iter().filter_map(|(labels, status, cell)| {
        let value = (family.value)(status, cell)?;
        let mut metric = Metric::from_label(labels.clone());
        if family.kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        Some(metric)
    });
    let mut collected = MetricFamily::default();
    collected.set_name(family.name.to_owned());
    collected.set_help(family.help.to_owned());
    collected.set_field_type(family.kind);
    collected.set_metric(metrics.collect());
    collected
}

fn labels(path: &str, cell: &StatusCell) -> Vec<LabelPair> {
    let group = cell.facts().and_then(|facts| facts.group);
    let values = [
        ("actor", label(path)),
        ("controller", group.unwrap_or_default()),
    ];
    let pair = |(name, value): (&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value.to_owned());
        pair
    };
    values.into_iter().map(pair).collect()
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn number(value: u64) -> f64 {
    value as f64
}

fn count(value: usize) -> f64 {
    number(value as u64)
}
