//! From what was wanted to what the control plane was told: when, and why not yet.

use std::fmt::Write as _;

use krane_actors::store::WorkloadExplanation;
use krane_domain::backlog::{Stages, Standing, TroubleKind};
use serde::Serialize;

use super::super::events::brief;
use super::super::{Epoch, Level, Stamp, WorkloadView};
use super::PartView;
use super::verdict::{YOUNG, is_young};

/// One link of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainStep {
    /// Which, one of a closed set.
    pub step: &'static str,
    /// When it was done, or since when it is waited for.
    pub at: Option<Stamp>,
    /// How bad that is.
    pub level: Level,
    /// One sentence.
    pub text: String,
    /// When krane tries again by itself.
    pub next_try: Option<Stamp>,
    /// The same, under its older name.
    pub until: Option<Stamp>,
}

impl ChainStep {
    const fn new(step: &'static str, level: Level, text: String) -> Self {
        Self {
            step,
            at: None,
            level,
            text,
            next_try: None,
            until: None,
        }
    }

    const fn tried_again(&mut self, at: Option<Stamp>) {
        self.next_try = at;
        self.until = at;
    }

    const fn at(mut self, at: Option<Stamp>) -> Self {
        self.at = at;
        self
    }
}

pub(super) fn of(
    explained: &WorkloadExplanation,
    workload: &WorkloadView,
    objects: &[PartView],
    epoch: &Epoch,
) -> Vec<ChainStep> {
    let stages = explained.workload.stages;
    let stages = stages.filter(|stages| stages.version == workload.version);
    let mut steps = vec![wanted(workload).at(stages.map(|it| epoch.at(it.received)))];
    steps.extend(needs(objects));
    let standing = &explained.workload.standing;
    let mut written = applied(standing, workload, epoch);
    if matches!(standing, Standing::InPlace { .. }) {
        written.text += &stages.map(took_to_apply).unwrap_or_default();
    }
    steps.push(written);
    if workload.replicas.is_some() || workload.pod_count > 0 {
        steps.push(pods(workload));
    }
    let mut told = reported(workload);
    if let (Some(step), Some(stages)) = (&mut told, stages) {
        step.text += &took_to_report(stages);
    }
    steps.extend(told);
    steps
}

/// How long the version waited for a lane, and how long the lane took.
fn took_to_apply(stages: Stages) -> String {
    let Some(started) = stages.started else {
        return String::new();
    };
    let waited = brief(started.saturating_sub(stages.received));
    stages.applied.map_or_else(String::new, |applied| {
        let took = brief(applied.saturating_sub(started));
        format!("; waited {waited}, took {took}")
    })
}

/// How long after that the control plane knew.
fn took_to_report(stages: Stages) -> String {
    let times = stages.applied.zip(stages.reported);
    times.map_or_else(String::new, |(applied, reported)| {
        let lag = brief(reported.saturating_sub(applied));
        format!("; for the first time {lag} after that")
    })
}

fn wanted(workload: &WorkloadView) -> ChainStep {
    let text = match workload.version {
        0 => "wanted, by an answer or a call".to_owned(),
        version => format!("version {version} wanted"),
    };
    ChainStep::new("wanted", Level::Good, text)
}

fn needs(objects: &[PartView]) -> Option<ChainStep> {
    let needed: Vec<&PartView> = objects.iter().filter(|it| it.role == "shared").collect();
    let worst = needed.iter().max_by_key(|part| part.level)?;
    let text = if worst.level == Level::Good {
        let names: Vec<&str> = needed.iter().map(|it| it.object.as_str()).collect();
        format!("{} in place", names.join(", "))
    } else {
        let why = worst.why.as_deref().map(|why| format!(": {why}"));
        format!(
            "{} is {}{}",
            worst.object,
            worst.state,
            why.unwrap_or_default()
        )
    };
    let mut step = ChainStep::new("needed", worst.level, text);
    step.tried_again(worst.next_try);
    Some(step)
}

fn applied(standing: &Standing, workload: &WorkloadView, epoch: &Epoch) -> ChainStep {
    let level = workload.level;
    let why = || workload.why.clone().unwrap_or_default();
    let step = |text| ChainStep::new("applied", level, text);
    match standing {
        Standing::InPlace { .. } => match (workload.applied_at, workload.in_place_since) {
            (Some(at), _) => step("written".to_owned()).at(Some(at)),
            (None, since) => step("found as wanted, nothing was written".to_owned()).at(since),
        },
        Standing::Queued { since } => {
            step("waits for a free lane".to_owned()).at(Some(epoch.at(*since)))
        }
        Standing::Applying => step("being written now".to_owned()),
        Standing::Blocked(_) => step(format!("waits: {}", why())),
        Standing::Contested { until } => {
            let mut contested = step(format!("written, and undone by somebody: {}", why()));
            contested.tried_again(Some(epoch.at(*until)));
            contested.at(workload.applied_at)
        }
        Standing::Trouble(trouble) => {
            let problem = &trouble.trouble.problem;
            let text = match (trouble.trouble.kind, trouble.attempts) {
                (TroubleKind::Held | TroubleKind::Waiting, _) => problem.clone(),
                (
                    TroubleKind::Quarantined | TroubleKind::Misconfigured | TroubleKind::Transient,
                    1,
                ) => format!("1 try failed: {problem}"),
                (
                    TroubleKind::Quarantined | TroubleKind::Misconfigured | TroubleKind::Transient,
                    many,
                ) => format!("{many} tries failed: {problem}"),
            };
            let mut failing = step(text);
            failing.tried_again(Some(epoch.at(trouble.retry_at)));
            failing.at(Some(epoch.at(trouble.since)))
        }
    }
}

fn pods(workload: &WorkloadView) -> ChainStep {
    let wanted = workload.replicas.map(u64::from).unwrap_or_default();
    let ready = u64::try_from(workload.ready).unwrap_or(u64::MAX);
    let level = if ready >= wanted {
        Level::Good
    } else {
        Level::Busy
    };
    let mut text = format!("{} pods ready", workload.ready_of_wanted());
    if workload.outdated > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, ", {} of an older template", workload.outdated);
    }
    ChainStep::new("pods", level, text)
}

fn reported(workload: &WorkloadView) -> Option<ChainStep> {
    let report = workload.report.as_ref()?;
    let what = match (report.gone, report.health, report.instances) {
        (true, _, _) => "that it is gone".to_owned(),
        (false, Some(health), _) => format!("{health}, {} available", report.running),
        (false, None, Some(all)) => format!("{} of {all} running", report.running),
        (false, None, None) => format!("{} running", report.running),
    };
    Some(match (report.delivered, report.refusals) {
        (true, _) if is_young(workload) => {
            let text = format!("told the control plane: {what}; {YOUNG}");
            ChainStep::new("reported", Level::Busy, text).at(report.delivered_at)
        }
        (true, _) => {
            let text = format!("told the control plane: {what}");
            ChainStep::new("reported", Level::Good, text).at(report.delivered_at)
        }
        (false, 0) => {
            let text = format!("on its way to the control plane: {what}");
            ChainStep::new("reported", Level::Busy, text).at(Some(report.since))
        }
        (false, refusals) => {
            let text = format!("refused {refusals} times by the control plane: {what}");
            ChainStep::new("reported", Level::Warn, text).at(Some(report.since))
        }
    })
}
