//! The workloads: wanted, live and reported.

use krane_actors::store::WorkloadSnapshot;
use krane_domain::backlog::{Standing, TroubleKind};
use krane_domain::ids::Controller;
use krane_domain::outbox::Told;
use krane_domain::pod::{PodDigest, PodPhase};
use krane_domain::report::{Gist, Instance, Report};
use serde::Serialize;

use super::controllers::trouble_level;
use super::{Epoch, Level, Sources, Stamp};

/// One workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadView {
    /// The controller it belongs to.
    pub controller: &'static str,
    /// What it is, in a word or two.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The control plane's id.
    pub id: Option<String>,
    /// The version that is wanted.
    pub version: u64,
    /// Where it stands, one of a closed set.
    pub state: &'static str,
    /// How bad that is.
    pub level: Level,
    /// What it waits for, or what is wrong.
    pub why: Option<String>,
    /// What to do.
    pub remedy: Option<String>,
    /// When krane tries again by itself.
    pub next_try: Option<Stamp>,
    /// The same, under its older name.
    pub until: Option<Stamp>,
    /// Pods wanted.
    pub replicas: Option<u32>,
    /// Pods that are ready.
    pub ready: usize,
    /// All live pods.
    pub pod_count: usize,
    /// Pods made from another template than the live one.
    pub outdated: usize,
    /// Whether those are replaced when they are not ready (`deployments.replace_outdated_pods`).
    pub outdated_are_replaced: bool,
    /// Whether its pods run a template that another version or agent rendered, and wait for their
    /// turn to roll (`safety.upgrades`).
    pub waits_to_roll: bool,
    /// At most 50 of the live pods.
    pub pods: Vec<PodView>,
    /// When something was last written for it.
    pub applied_at: Option<Stamp>,
    /// When it was last found to be as wanted.
    pub in_place_since: Option<Stamp>,
    /// What the control plane was told.
    pub report: Option<ReportView>,
}

impl WorkloadView {
    /// Pods that are ready beyond those wanted: on their way out, or of a rollout.
    pub fn surplus(&self) -> usize {
        let wanted = self
            .replicas
            .map(|wanted| usize::try_from(wanted).unwrap_or(usize::MAX));
        wanted.map_or(0, |wanted| self.ready.saturating_sub(wanted))
    }

    /// `2 of 3`; pods on their way out and those of a rollout are told apart from those wanted.
    pub fn ready_of_wanted(&self) -> String {
        let Some(wanted) = self.replicas else {
            return self.ready.to_string();
        };
        match self.surplus() {
            0 => format!("{} of {wanted}", self.ready),
            more => format!("{wanted} of {wanted}, {more} more"),
        }
    }
}

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodView {
    /// Its name.
    pub name: String,
    /// Where it was reported to be reached.
    pub address: Option<String>,
    /// In a word or two.
    pub status: &'static str,
}

/// What the control plane was told, or is to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportView {
    /// Whether the newest report says that the object is gone.
    pub gone: bool,
    /// Instances in it, where it lists them.
    pub instances: Option<usize>,
    /// How it says a sentinel is.
    pub health: Option<&'static str>,
    /// Those that take traffic.
    pub running: usize,
    /// Since when it is true.
    pub since: Stamp,
    /// Whether the control plane took exactly this one.
    pub delivered: bool,
    /// When it last took one.
    pub delivered_at: Option<Stamp>,
    /// How often it refused this one.
    pub refusals: u32,
}

/// All workloads, the worst first, each level in key order.
pub(super) fn view(sources: &Sources) -> Vec<WorkloadView> {
    let mut views: Vec<WorkloadView> = sources
        .stores
        .iter()
        .flat_map(|store| {
            let controller = store.controller();
            let are_replaced = store.rules().replaces_outdated_pods;
            let workloads = store.workloads();
            workloads
                .into_iter()
                .map(move |workload| of(controller, &workload, are_replaced, &sources.epoch))
        })
        .collect();
    views.sort_by_key(|view| std::cmp::Reverse(view.level));
    views
}

const fn kind(controller: Controller) -> &'static str {
    match controller {
        Controller::Deployments => "deployment",
        Controller::Sentinels => "sentinel",
        Controller::Cilium => "network policy",
    }
}

pub(super) fn of(
    controller: Controller,
    workload: &WorkloadSnapshot,
    outdated_are_replaced: bool,
    epoch: &Epoch,
) -> WorkloadView {
    let words = words(workload, epoch);
    WorkloadView {
        controller: controller.name(),
        kind: kind(controller),
        namespace: workload.key.namespace.to_string(),
        name: workload.key.name.to_string(),
        id: workload.id.as_deref().map(str::to_owned),
        version: workload.version,
        state: words.state,
        level: words.level,
        why: words.why,
        remedy: words.remedy,
        next_try: words.next_try,
        until: words.next_try,
        replicas: workload.replicas,
        ready: workload.pods.iter().filter(|pod| is_ready(pod)).count(),
        pod_count: workload.pod_count,
        outdated: workload.outdated,
        outdated_are_replaced,
        waits_to_roll: workload.waits_to_roll,
        pods: pods(workload),
        applied_at: workload.written_at.map(|at| epoch.at(at)),
        in_place_since: words.in_place_since,
        report: workload.told.as_ref().map(|told| report(told, epoch)),
    }
}

/// What a workload waits for whose pods run what is desired, in another form.
pub(super) const WAITS_TO_ROLL: &str = "its pods run a template that another version of krane or \
     another agent rendered; they roll when its turn comes, one sentinel at a time (safety.upgrades)";

struct Words {
    state: &'static str,
    level: Level,
    why: Option<String>,
    remedy: Option<String>,
    next_try: Option<Stamp>,
    in_place_since: Option<Stamp>,
}

impl Words {
    const fn new(state: &'static str, level: Level) -> Self {
        Self {
            state,
            level,
            why: None,
            remedy: None,
            next_try: None,
            in_place_since: None,
        }
    }
}

fn words(workload: &WorkloadSnapshot, epoch: &Epoch) -> Words {
    match &workload.standing {
        Standing::InPlace { since } => {
            let mut words = if workload.is_held {
                let mut held = Words::new("deletion held", Level::Bad);
                held.why = Some("the control plane does not know it any more".to_owned());
                held
            } else {
                match &workload.config_error {
                    None => {
                        let mut words = Words::new("in place", Level::Good);
                        words.why = workload.waits_to_roll.then(|| WAITS_TO_ROLL.to_owned());
                        words
                    }
                    Some(error) => {
                        let mut cannot = Words::new("cannot start", Level::Warn);
                        cannot.why = Some(format!("in the kubelet's words: {error}"));
                        cannot
                    }
                }
            };
            words.in_place_since = Some(epoch.at(*since));
            words
        }
        Standing::Queued { .. } => Words::new("queued", Level::Busy),
        Standing::Applying if workload.is_unwanted => Words::new("deleting", Level::Busy),
        Standing::Applying => Words::new("applying", Level::Busy),
        Standing::Blocked(on) => {
            let names: Vec<String> = on.iter().map(ToString::to_string).collect();
            let mut words = Words::new("waiting", Level::Busy);
            words.why = Some(format!("needs {} first", names.join(" and ")));
            words
        }
        Standing::Contested { until } => {
            let mut words = Words::new("contested", Level::Warn);
            words.why = Some("somebody keeps undoing what krane writes".to_owned());
            words.remedy = Some("find out who writes the same fields".to_owned());
            words.next_try = Some(epoch.at(*until));
            words
        }
        Standing::Trouble(trouble) => {
            let kind = trouble.trouble.kind;
            let mut words = Words::new(kind.name(), trouble_level(kind));
            words.why = Some(trouble.trouble.problem.clone());
            words.remedy.clone_from(&trouble.trouble.remedy);
            words.next_try = Some(epoch.at(trouble.retry_at));
            if kind == TroubleKind::Waiting && workload.is_unwanted {
                words.state = "deleting";
            }
            words
        }
    }
}

fn pods(workload: &WorkloadSnapshot) -> Vec<PodView> {
    let instances: &[Instance] = match workload.told.as_ref().map(|told| &told.wanted) {
        Some(Report::Instances { key, instances }) if *key == workload.key => instances,
        Some(Report::Instances { .. } | Report::Health { .. } | Report::Gone { .. }) | None => &[],
    };
    let address = |pod: &PodDigest| {
        let mut named = instances.iter();
        let named = named.find(|instance| instance.pod == pod.name)?;
        Some(named.address.clone())
    };
    workload
        .pods
        .iter()
        .map(|pod| PodView {
            name: pod.name.to_string(),
            address: address(pod),
            status: pod_status(pod),
        })
        .collect()
}

fn is_ready(pod: &PodDigest) -> bool {
    pod.is_ready && !pod.is_terminating
}

fn pod_status(pod: &PodDigest) -> &'static str {
    if pod.is_terminating {
        return "terminating";
    }
    match pod.phase {
        PodPhase::Running if pod.is_ready => "ready",
        PodPhase::Running => "running, not ready",
        PodPhase::Pending => "pending",
        PodPhase::Succeeded => "ended",
        PodPhase::Failed => "failed",
        PodPhase::Unknown => "unknown",
    }
}

fn report(told: &Told, epoch: &Epoch) -> ReportView {
    let gist = told.wanted.gist();
    let (running, instances, health) = match gist {
        Gist::Instances { running, all } => (running, Some(all), None),
        Gist::Health { available, health } => {
            let available = usize::try_from(available).unwrap_or(usize::MAX);
            (available, None, Some(health.name()))
        }
        Gist::Gone => (0, None, None),
    };
    ReportView {
        gone: gist == Gist::Gone,
        instances,
        health,
        running,
        since: epoch.at(told.since),
        delivered: told.is_delivered,
        delivered_at: told.delivered_at.map(|at| epoch.at(at)),
        refusals: told.refusals,
    }
}
