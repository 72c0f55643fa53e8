//! What one lane does: brings one key about, in the cluster.
//!
//! A lane decides with pure functions and acts through the cluster port, one object after the
//! other. It holds no state of its own: whatever it finds out is in the store or in its outcome.

mod outdated;
mod place;
mod remove;
mod repair;
mod settle;
mod shared;
mod words;
mod write;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use krane_domain::backlog::{Outcome, Task, Trouble, TroubleKind};
use krane_domain::desired::{Change, State};
use krane_domain::ids::{Moment, ObjectKey, SharedKey, WorkKey};
use krane_domain::kinds::{self, Desired};
use krane_domain::object::{LiveObject, Rendered};
use krane_domain::planted::{Bug, is_planted};
use krane_domain::refusal::{Refusal, RefusalClass};

use self::repair::Repair;
use crate::events::Happening;
use crate::lease::Leadership;
use crate::metrics::ControllerMetrics;
use crate::ports::{Clock, Cluster, Deletion, PasswordSource};
use crate::status::StatusBoard;
use crate::store::Store;

/// A lane that takes longer is cut off, and its state quarantined.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// What lanes work with. Cheap to clone.
#[derive(Clone)]
pub struct LaneContext {
    /// What the controller knows.
    pub store: Arc<Store>,
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// The registry's password as it is now, if there is a registry.
    pub registry_password: Option<PasswordSource>,
    /// Wall clock, for holds.
    pub clock: Arc<dyn Clock>,
    /// The tree's clock.
    pub board: StatusBoard,
    /// Whether writes are allowed at all (`safety.writes`).
    pub writes: Arc<AtomicBool>,
    /// Whether this process is the one that writes …
    pub leadership: Leadership,
    /// … and the term in which this was decided to be written.
    pub term: u64,
    /// Counters.
    pub metrics: ControllerMetrics,
}

impl LaneContext {
    /// The same for lanes that begin in this term.
    pub(crate) fn of_term(&self, term: u64) -> Self {
        Self {
            term,
            ..self.clone()
        }
    }

    /// Remembers that something happened just now.
    pub(crate) fn record(&self, what: Happening) {
        self.board.record(Some(self.store.controller()), what);
    }
}

/// Why a lane stops short of its goal.
pub(crate) enum Stop {
    /// Shared objects first.
    Blocked(BTreeSet<SharedKey>),
    /// Trouble.
    Trouble(Trouble),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// What bringing about one object took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settlement {
    /// Whether something was written.
    pub(crate) wrote: bool,
    /// What of an object that was in place had been changed, as a number.
    pub(crate) repaired: Option<u64>,
    /// The live object.
    pub(crate) live: Option<Arc<LiveObject>>,
}

/// Runs a lane to its end. Panics and overruns end as quarantine of this key alone.
pub async fn run(task: Task, context: LaneContext) -> Outcome {
    let timer = context.metrics.reconcile.begin(task.waited);
    let outcome = run_confined(&task, &context).await;
    timer.end(&outcome);
    outcome
}

async fn run_confined(task: &Task, context: &LaneContext) -> Outcome {
    let key = task.key.clone();
    let work = AssertUnwindSafe(work(task, context)).catch_unwind();
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(Ok(Ok(outcome))) => outcome,
        Ok(Ok(Err(Stop::Blocked(on)))) => Outcome::Blocked(on),
        Ok(Ok(Err(Stop::Trouble(trouble)))) => Outcome::Trouble(trouble),
        Ok(Err(_panic)) => {
            context.metrics.lane_panics.inc();
            context.metrics.reconcile.panics.inc();
            let trouble = Trouble::new(
                TroubleKind::Quarantined,
                format!("applying {key} made krane panic, nothing else is affected"),
            );
            Outcome::Trouble(trouble.remedy(
                "report this as a defect with the log line of the panic, or send a corrected state",
            ))
        }
        Err(_elapsed) => {
            context.metrics.reconcile.timeouts.inc();
            let trouble = Trouble::new(
                TroubleKind::Quarantined,
                format!(
                    "applying {key} took longer than {} s and was cut off",
                    DEADLINE.as_secs()
                ),
            );
            Outcome::Trouble(trouble.remedy("look at the API server's latency and webhooks"))
        }
    }
}

async fn work(task: &Task, context: &LaneContext) -> Result<Outcome, Stop> {
    match (&task.key, &task.state) {
        (WorkKey::Shared(shared), _) => {
            shared::bring_about(shared, task.was_settled, context).await
        }
        (WorkKey::Workload(key), Some(state)) => {
            let began = context.board.now();
            let outcome = workload(key, state, task.was_settled, context).await?;
            tell_done(key, state, began, &outcome, context);
            Ok(outcome)
        }
        (WorkKey::Workload(_), None) => Ok(Outcome::NOTHING_TO_DO),
    }
}

/// One line for each state that was brought about; looking again and finding all well is none.
fn tell_done(
    key: &ObjectKey,
    state: &State,
    began: Moment,
    outcome: &Outcome,
    context: &LaneContext,
) {
    let version = state.version;
    let took = context.board.now().saturating_sub(began);
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let key = key.clone();
    match (outcome, &state.change) {
        (Outcome::Done { wrote: true, .. }, Ok(Change::Apply(_))) => {
            tracing::info!(%key, version, duration_ms, "applied");
            context.record(Happening::Applied { key, version, took });
        }
        (Outcome::Done { wrote: true, .. }, Ok(Change::Delete)) => {
            tracing::info!(%key, version, duration_ms, "deleted");
            context.record(Happening::Deleted { key, version });
        }
        (Outcome::Done { .. } | Outcome::Blocked(_) | Outcome::Trouble(_), _) => {}
    }
}

async fn workload(
    key: &ObjectKey,
    state: &State,
    was_settled: bool,
    context: &LaneContext,
) -> Result<Outcome, Stop> {
    fault_hook(key).await;
    match &state.change {
        Err(invalid) => {
            let what = format!("the desired state of {key} is invalid");
            Err(Trouble::invalid(what, invalid).into())
        }
        Ok(Change::Delete) => delete(key, context).await,
        Ok(Change::Apply(desired)) => apply(desired, was_settled, context).await,
    }
}

async fn apply(
    desired: &Desired,
    was_settled: bool,
    context: &LaneContext,
) -> Result<Outcome, Stop> {
    let rules = context.store.rules();
    let missing: BTreeSet<SharedKey> = desired
        .needs(rules)
        .into_iter()
        .filter(|shared| !shared::is_in_place(shared, context))
        .filter(|shared| {
            let is_policy = matches!(shared, SharedKey::IsolationPolicy { .. });
            !is_policy || !is_planted(Bug::PolicyAfterWorkload)
        })
        .collect();
    if !missing.is_empty() {
        return Err(Stop::Blocked(missing));
    }
    let repair = Repair::workload(was_settled);
    let (mut wrote, mut repaired) = (false, None);
    let mut note = |settlement: &Settlement| {
        wrote |= settlement.wrote;
        repaired = repaired.or(settlement.repaired);
    };
    // First: what is not needed any more may work against what is wanted now.
    for reference in desired.unneeded() {
        note(&remove::unneeded(&reference, desired.key(), repair, context).await?);
    }
    let wanted = |live: Option<&LiveObject>| Cow::Owned(desired.render(rules, live));
    let primary = settle::settle_as(&desired.reference(), &wanted, repair, false, context).await?;
    note(&primary);
    // Once more: of a workload that was out of sight nobody knew what belongs to it.
    for reference in desired.unneeded() {
        note(&remove::unneeded(&reference, desired.key(), repair, context).await?);
    }
    for rendered in primary
        .live
        .iter()
        .flat_map(|owner| desired.dependants(rules, owner))
    {
        if can_do_without(&rendered, context) {
            continue;
        }
        note(&settle::settle(&rendered, repair, context).await?);
    }
    if rules.replaces_outdated_pods {
        outdated::replace_one(desired.key(), context).await?;
    }
    Ok(Outcome::Done {
        live: primary.live.map(|live| live.fingerprint),
        wrote,
        repaired,
    })
}

/// Whether an object beside a workload may be missing because the cluster does not know its kind
/// (D18).
fn can_do_without(rendered: &Rendered, context: &LaneContext) -> bool {
    let resource = rendered.reference.resource;
    kinds::may_lack(resource, context.store.rules())
        && context
            .store
            .with(|memory| memory.kinds_missing.contains(&resource))
}

async fn delete(key: &ObjectKey, context: &LaneContext) -> Result<Outcome, Stop> {
    let controller = context.store.controller();
    let (parts, live) = context.store.with(|memory| {
        let parts = controller.deleted_first(key);
        let parts = parts
            .iter()
            .filter_map(|part| memory.view.get(part).cloned());
        let parts: Vec<_> = parts.filter(|part| !part.is_terminating).collect();
        (parts, memory.view.workload(key).cloned())
    });
    let all = || parts.iter().chain(&live);
    let id = all().find_map(|live| kinds::question_id(controller, live));
    let wrote = all().next().is_some();
    // Whoever holds a part with a finalizer holds up that part alone.
    for part in &parts {
        write::delete(part, context).await?;
    }
    if let Some(live) = &live
        && write::delete(live, context).await? == Deletion::Begun
    {
        return Err(words::still_there(&live.reference.to_string()).into());
    }
    let now = context.board.now();
    context.store.with(|memory| {
        if controller.has_reports()
            && memory.view.workload(key).is_none()
            && !memory.is_of_the_scheduler(key)
            && memory.told_namespaces(&key.name).next().is_none()
        {
            memory.outbox.observe_gone(key, id, now);
        }
        memory.observe([key.clone()]);
    });
    Ok(Outcome::Done {
        live: None,
        wrote,
        repaired: None,
    })
}

/// Errors unless writing is allowed.
pub(crate) fn writing(context: &LaneContext) -> Result<(), Stop> {
    if context.store.is_halted() {
        return Err(Trouble::new(TroubleKind::Waiting, "krane is stopping").into());
    }
    let is_its_term = context.leadership.term(context.board.now()) == Some(context.term);
    if !is_its_term && !is_planted(Bug::WritesWithoutALook) {
        return Err(standby().into());
    }
    if context.writes.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(Trouble::new(
        TroubleKind::Waiting,
        "writes are switched off (safety.writes = \"off\")",
    )
    .remedy("switch them on to go on")
    .into())
}

/// Why nothing is written by a process that does not hold the lease.
fn standby() -> Trouble {
    Trouble::new(
        TroubleKind::Waiting,
        "standby: another krane holds the lease",
    )
    .remedy("it goes on when this process holds it")
}

/// What a refusal means for the key that met it.
pub(crate) fn refused(what: &str, refusal: &Refusal) -> Trouble {
    let (kind, remedy) = match refusal.class {
        RefusalClass::Permanent => (
            TroubleKind::Quarantined,
            "it is retried rarely; a corrected state replaces it at once",
        ),
        RefusalClass::Transient | RefusalClass::Reevaluate | RefusalClass::Unauthenticated => {
            (TroubleKind::Transient, "it is retried")
        }
        RefusalClass::Configuration => (
            TroubleKind::Misconfigured,
            "check krane's ClusterRole, quotas and admission webhooks",
        ),
        RefusalClass::NamespaceMissing => (TroubleKind::Transient, "the namespace is made first"),
        RefusalClass::NamespaceTerminating => (
            TroubleKind::Waiting,
            "it goes on when the namespace is gone",
        ),
        RefusalClass::KindMissing => (
            TroubleKind::Waiting,
            "the API server does not know this kind; install its CRD",
        ),
    };
    let mut trouble = Trouble::new(kind, format!("{what}: {refusal}")).remedy(remedy);
    trouble.retry_after = refusal.retry_after;
    trouble.code = Some(refusal.code);
    trouble
}

/// Makes lanes of specially named objects misbehave, in builds made for tests only.
#[cfg(feature = "fault-hooks")]
async fn fault_hook(key: &ObjectKey) {
    assert!(!key.name.starts_with("fault-panic"), "fault hook");
    if key.name.starts_with("fault-hang") {
        std::future::pending::<()>().await;
    }
}

#[cfg(not(feature = "fault-hooks"))]
#[expect(
    clippy::unused_async,
    reason = "it has the shape of the hook that may wait"
)]
async fn fault_hook(_key: &ObjectKey) {}
