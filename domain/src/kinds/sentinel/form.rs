//! The forms that the pod templates of sentinels have had.

use crate::kinds::ProbePaths;

/// What a template of some time looks like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Which ids are labels of the pods.
    pub(super) labels: Labels,
    /// Secrets whose keys are variables, and whether a pod may start without.
    pub(super) secrets: &'static [(&'static str, bool)],
    /// What the configuration holds.
    pub(super) config: Config,
    /// Whether pods are found by others of their environment.
    pub(super) has_gossip: bool,
    /// Whether metrics have a port of their own.
    pub(super) has_metrics: bool,
    /// Where probes ask; by the rules when absent.
    pub(super) probe_paths: Option<ProbePaths>,
    /// Whether CPU and memory are limited.
    pub(super) has_resources: bool,
}

/// Which ids are labels of the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// Workspace, environment, sentinel and component.
    Few,
    /// Also project and app.
    Ids,
    /// Also who manages them.
    All,
}

/// What the configuration of a sentinel holds; later ones hold more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Config {
    /// None: one variable for each setting.
    Variables,
    /// Ids, database, clickhouse, redis.
    Plain,
    /// Also tracing, metrics and profiling.
    Tracing,
    /// Also every size and port.
    Complete,
}

const SECRETS: &[(&str, bool)] = &[
    ("database", false),
    ("otel", true),
    ("redis", true),
    ("pprof", true),
];

/// What is rendered anew.
pub(super) const CURRENT: Form = Form {
    labels: Labels::All,
    secrets: SECRETS,
    config: Config::Complete,
    has_gossip: true,
    has_metrics: true,
    probe_paths: None,
    has_resources: true,
};

/// What may still run, youngest first. A new [`CURRENT`] that renders differently puts the one
/// before it at the front.
pub(super) const EARLIER: [Form; 5] = [
    Form {
        labels: Labels::Ids,
        probe_paths: Some(ProbePaths::Split),
        ..CURRENT
    },
    APRIL,
    MARCH_LATE,
    Form {
        secrets: SECRETS.split_at(3).0,
        config: Config::Plain,
        has_metrics: false,
        ..MARCH_LATE
    },
    Form {
        secrets: SECRETS.split_at(2).0,
        config: Config::Variables,
        has_gossip: false,
        has_metrics: false,
        ..MARCH_LATE
    },
];

const APRIL: Form = Form {
    labels: Labels::Few,
    probe_paths: Some(ProbePaths::Split),
    ..CURRENT
};

const MARCH_LATE: Form = Form {
    labels: Labels::Few,
    config: Config::Tracing,
    probe_paths: Some(ProbePaths::Legacy),
    has_resources: false,
    ..CURRENT
};
