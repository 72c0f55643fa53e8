//! How krane is doing in one sentence, and what to do about what is wrong.

mod api_server;
mod control_plane;
mod headline;
mod problem;
mod unread;

use krane_domain::words::many;
use krane_settings::UnusableFile;
use serde::Serialize;

use self::headline::Headline;
pub use self::problem::{Problem, ProblemKind};
use super::{
    ActorView, ControllerView, LeaseView, Level, QuarantineView, SecretsView, Stamp, WorkloadView,
};

/// Problems of one sort that are shown one by one.
const SHOWN: usize = 8;
/// Attempts after which something that fails for a passing reason is a problem.
const PATIENCE: u32 = 3;

/// How krane is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthSummary {
    /// The worst there is.
    pub level: Level,
    /// In one sentence.
    pub sentence: String,
    /// What is wrong, the worst first.
    pub problems: Vec<Problem>,
    /// Problems left out because there are too many of their sort.
    pub more: usize,
    /// Whether this process writes or stands by; nothing when no lease is in use.
    pub lease: Option<LeaseView>,
    /// How pods that ask for secrets are proved; nothing without a vault.
    pub secrets: Option<SecretsView>,
}

/// What becomes of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// They are sent.
    On,
    /// They are sent as dry runs.
    Rehearsed,
    /// They are held back, for the configuration says so.
    Off,
    /// They are held back, for a person says so.
    SwitchedOff {
        /// Since when, if that is not forgotten.
        since: Option<Stamp>,
    },
}

pub(super) struct Inputs<'a> {
    pub(super) now: Stamp,
    /// When the last outage of the API server was over.
    pub(super) api_server_back_at: Option<Stamp>,
    pub(super) tree: &'a [ActorView],
    pub(super) controllers: &'a [ControllerView],
    pub(super) workloads: &'a [WorkloadView],
    pub(super) is_stopping: bool,
    pub(super) is_live: bool,
    pub(super) writing: Writing,
    pub(super) lease: Option<LeaseView>,
    pub(super) secrets: Option<SecretsView>,
    /// Files that cannot be used, and since when.
    pub(super) files: &'a [(Stamp, UnusableFile)],
}

impl Inputs<'_> {
    fn is_standby(&self) -> bool {
        self.lease.as_ref().is_some_and(LeaseView::is_standby)
    }
}

pub(super) fn summary(inputs: &Inputs<'_>) -> HealthSummary {
    let mut findings = Findings::default();
    if !inputs.is_live {
        findings.headline.say(Level::Bad, "the root is stuck");
        findings.add(Problem {
            what: "The root's own loop does not turn".to_owned(),
            remedy: "the liveness probe restarts this process; report a defect with its log"
                .to_owned(),
            part: "tree",
            ..Problem::of(ProblemKind::RootStuck, Level::Bad)
        });
    }
    actors(inputs.tree, &mut findings);
    let (now, back_at) = (inputs.now, inputs.api_server_back_at);
    let is_away = api_server::look(inputs.controllers, now, back_at, &mut findings);
    if !inputs.is_standby() {
        let listed: Vec<_> = inputs.controllers.iter().filter(|it| it.listed).collect();
        control_plane::look(&listed, inputs.now, &mut findings);
    }
    if !is_away {
        unread::look(inputs.controllers, inputs.tree, &mut findings);
    }
    for controller in inputs.controllers {
        troubles(controller, is_away, &mut findings);
    }
    reports(inputs.workloads, &mut findings);
    if let Some(lease) = &inputs.lease {
        election(lease, &mut findings);
    }
    files(inputs.files, &mut findings);
    writes(inputs.writing, &mut findings);
    findings
        .problems
        .sort_by_key(|it| std::cmp::Reverse(it.level));
    let (level, sentence) = match findings.headline.sentence() {
        // It says all at once what goes on, and that is this.
        _ if inputs.is_stopping => (Level::Busy, "krane is stopping".to_owned()),
        Some(wrong) => wrong,
        None => calm(inputs),
    };
    HealthSummary {
        level,
        sentence,
        problems: findings.problems,
        more: findings.more,
        lease: inputs.lease.clone(),
        secrets: inputs.secrets.clone(),
    }
}

#[derive(Default)]
struct Findings {
    headline: Headline,
    problems: Vec<Problem>,
    more: usize,
}

impl Findings {
    fn add(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

/// What there is to say when nothing is wrong.
fn calm(inputs: &Inputs<'_>) -> (Level, String) {
    if inputs.tree.iter().any(|actor| actor.level == Level::Busy) {
        return (Level::Busy, "krane is starting".to_owned());
    }
    if let Some(words) = api_server::broken_just_now(inputs.controllers) {
        return (Level::Busy, words);
    }
    if let Some(lease) = inputs.lease.as_ref().filter(|it| it.is_standby()) {
        let text = match &lease.holder {
            Some(holder) => format!("Standing by: {holder} holds the lease"),
            None => "Standing by: nobody is known to hold the lease".to_owned(),
        };
        return (Level::Good, text);
    }
    let wanted = inputs.workloads.len();
    let on_the_way = inputs.workloads.iter();
    let on_the_way = on_the_way.filter(|it| it.level != Level::Good).count();
    if on_the_way > 0 {
        let text = format!("{on_the_way} of {} on the way", many(wanted, "workload"));
        return (Level::Busy, text);
    }
    (Level::Good, "Everything wanted is in place".to_owned())
}

fn actors(tree: &[ActorView], findings: &mut Findings) {
    let mut restarting = 0;
    for actor in tree.iter().filter(|actor| actor.starts_at.is_some()) {
        let is_unprepared = actor
            .last_error
            .as_ref()
            .is_some_and(|error| error.kind == "preparation");
        if is_unprepared {
            // The controller's own finding says it better.
            continue;
        }
        let name = place(actor);
        let why = actor.last_error.as_ref().map(|error| error.text.clone());
        let remedy = if actor.parked {
            findings
                .headline
                .say(Level::Bad, format!("{name} is parked"));
            "it comes back by itself with fresh state; if it is parked again, report a defect with \
             the last error"
        } else {
            restarting += 1;
            "it starts again by itself"
        };
        let kind = if actor.parked {
            ProblemKind::ActorParked
        } else {
            ProblemKind::ActorRestarting
        };
        findings.add(Problem {
            what: if actor.parked {
                format!("{} is parked after too many failures", upper_first(&name))
            } else {
                format!("{} is restarting", upper_first(&name))
            },
            why,
            remedy: remedy.to_owned(),
            // Every try begins the state anew: since when it fails is not known.
            since: actor.parked.then_some(actor.since),
            next_try: actor.starts_at,
            name: Some(actor.path.clone()),
            code: actor.last_error.as_ref().map(|error| error.kind.to_owned()),
            part: "tree",
            ..Problem::of(kind, actor.level).about(actor.controller)
        });
    }
    findings
        .headline
        .count(Level::Warn, restarting, "actor", "restarting");
}

fn writes(writing: Writing, findings: &mut Findings) {
    let (what, why, remedy, since) = match writing {
        Writing::On => return,
        Writing::Rehearsed => {
            let words = "observe mode: nothing is written";
            return findings.headline.say(Level::Warn, words);
        }
        Writing::Off => (
            "Writes are switched off",
            "safety.writes is \"off\"",
            "set safety.writes to \"on\" to go on",
            None,
        ),
        Writing::SwitchedOff { since } => (
            "A person switched writes off",
            "`krane writes off`",
            "`krane writes on` ends it, and so does a restart",
            since,
        ),
    };
    findings
        .headline
        .say(Level::Warn, "writes are switched off");
    findings.add(Problem {
        what: what.to_owned(),
        why: Some(format!("{why}: krane only looks and reports")),
        remedy: remedy.to_owned(),
        since,
        ..Problem::of(ProblemKind::WritesOff, Level::Warn)
    });
}

fn election(lease: &LeaseView, findings: &mut Findings) {
    let Some(trouble) = &lease.trouble else {
        return;
    };
    findings
        .headline
        .say(Level::Warn, "the lease cannot be reached");
    findings.add(Problem {
        what: "The Lease cannot be read or written".to_owned(),
        why: Some(trouble.clone()),
        remedy:
            "check the API server and krane's Role for leases in its own namespace; without the \
                 lease this process does not write"
                .to_owned(),
        ..Problem::of(ProblemKind::LeaseUnreachable, Level::Warn)
    });
}

fn files(files: &[(Stamp, UnusableFile)], findings: &mut Findings) {
    let headline = &mut findings.headline;
    headline.count(Level::Warn, files.len(), "file", "unusable");
    for (since, file) in files {
        findings.add(Problem {
            what: format!("The file of {} cannot be used", file.key),
            why: Some(format!("{} {}", file.path.display(), file.reason)),
            remedy: "check that the file is mounted, readable and complete; until then krane uses \
                     the content that it read last"
                .to_owned(),
            since: Some(*since),
            name: Some(file.key.to_owned()),
            ..Problem::of(ProblemKind::FileUnusable, Level::Warn)
        });
    }
}

fn place(actor: &ActorView) -> String {
    match actor.controller {
        Some(controller) if controller == actor.name => format!("controller {controller}"),
        Some(controller) => format!("{} of {controller}", actor.name),
        None => actor.name.to_owned(),
    }
}

fn troubles(controller: &ControllerView, is_api_server_away: bool, findings: &mut Findings) {
    let of_kinds = |kinds: &[&str]| -> Vec<&QuarantineView> {
        let all = controller.quarantine.iter();
        all.filter(|it| kinds.contains(&it.kind)).collect()
    };
    let aside = of_kinds(&["quarantined"]);
    let count = aside.len();
    findings
        .headline
        .count(Level::Bad, count, "state", "set aside");
    let forbidden = of_kinds(&["misconfigured"]);
    let count = forbidden.len();
    findings
        .headline
        .count(Level::Bad, count, "object", "blocked by the cluster");
    let mut retried = of_kinds(&["retrying"]);
    // What fails because nobody answers is no trouble of its own.
    retried.retain(|it| it.attempts >= PATIENCE && !is_api_server_away);
    let count = retried.len();
    findings
        .headline
        .count(Level::Warn, count, "object", "retried");
    let held = of_kinds(&["held"]);
    let count = held.len();
    findings
        .headline
        .count(Level::Warn, count, "object", "on hold");
    let groups = [
        (ProblemKind::Quarantined, aside),
        (ProblemKind::Misconfigured, forbidden),
        (ProblemKind::Retrying, retried),
        (ProblemKind::Held, held),
    ];
    for (kind, group) in groups {
        findings.more += group.len().saturating_sub(SHOWN);
        for trouble in group.into_iter().take(SHOWN) {
            findings.add(Problem {
                what: match trouble.version {
                    Some(version) => format!("{}, version {version}", trouble.object),
                    None => trouble.object.clone(),
                },
                why: Some(trouble.reason.clone()),
                remedy: trouble
                    .remedy
                    .clone()
                    .unwrap_or_else(|| "it is retried".to_owned()),
                since: Some(trouble.since),
                next_try: Some(trouble.next_try),
                name: Some(trouble.object.clone()),
                code: trouble.code.clone(),
                ..Problem::of(kind, trouble.level).about(Some(controller.name))
            });
        }
    }
    let deletes = controller.deletes_held.len();
    if deletes > 0 {
        findings
            .headline
            .count(Level::Bad, deletes, "delete", "held");
        findings.add(Problem {
            what: format!(
                "The control plane does not know {} any more",
                many(deletes, "object")
            ),
            why: Some("that is too many at once, so none of them is deleted".to_owned()),
            remedy: "find out whether the control plane lost them; if they are really unwanted, \
                     have it send delete states, or let them go with krane allow-deletes"
                .to_owned(),
            ..Problem::of(ProblemKind::DeletesHeld, Level::Bad).about(Some(controller.name))
        });
    }
}

fn reports(workloads: &[WorkloadView], findings: &mut Findings) {
    let refused = workloads.iter().filter(|workload| {
        let report = workload.report.as_ref();
        report.is_some_and(|report| report.refusals > 0)
    });
    let refused = refused.count();
    if refused > 0 {
        findings
            .headline
            .count(Level::Warn, refused, "report", "refused");
        findings.add(Problem {
            what: format!("The control plane refuses {}", many(refused, "report")),
            remedy: "look at the control plane's log; krane sends them again".to_owned(),
            part: "workloads",
            ..Problem::of(ProblemKind::ReportsRefused, Level::Warn)
        });
    }
}

fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
