//! What one lane does: brings one key about, in the cluster.
//!
//! A lane decides with pure functions and acts through the cluster port, one object after the
//! other. It holds no state of its own: whatever it finds out is in the store or in its outcome.

mod budget;
mod outdated;
mod place;
mod primary;
mod remove;
mod repair;
mod settle;
mod shared;
mod words;
mod write;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use budget::OWN_TIME;
use futures::FutureExt;
use krane_domain::backlog::{Outcome, Task, Trouble, TroubleKind};
use krane_domain::desired::{Change, State};
use krane_domain::ids::{Moment, ObjectKey, SharedKey, WorkKey};
use krane_domain::kinds::{self, Desired};
use krane_domain::object::{LiveObject, ObjectRef};
use krane_domain::plan::Plan;
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Clock, Cluster, Deletion, PasswordSource, WEBHOOKS};

use self::budget::{Budget, Overrun};
use self::repair::Repair;
use self::shared::Need;
use crate::events::Happening;
use crate::lease::Leadership;
use crate::metrics::ControllerMetrics;
use crate::status::StatusBoard;
use crate::store::Store;

/// The HTTP status of a request that the API server gave up.
const GATEWAY_TIMEOUT: u16 = 504;

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
    /// Whether this lane writes also what only looks older (D44).
    pub writes_older: bool,
    /// Counters.
    pub metrics: ControllerMetrics,
}

impl LaneContext {
    /// The same for the lane of this task, which begins in this term.
    pub(crate) fn of(&self, task: &Task, term: u64) -> Self {
        Self {
            term,
            writes_older: task.writes_older,
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
    /// Whether what differs only looks older and was left for its turn.
    pub(crate) is_deferred: bool,
    /// Whether a pod template was kept as another renderer made it.
    pub(crate) keeps_template: bool,
}

/// Runs a lane to its end. Panics and overruns end as quarantine of this key alone.
pub async fn run(task: Task, mut context: LaneContext) -> Outcome {
    let timer = context.metrics.reconcile.begin(task.waited);
    let budget = Arc::new(Budget::new(context.cluster));
    context.cluster = Arc::clone(&budget) as Arc<dyn Cluster>;
    let outcome = run_confined(&task, &context, &budget).await;
    timer.end(&outcome);
    if let Some(took) = budget.longest_call() {
        context.store.note_longest_call(&task.key, took);
    }
    outcome
}

async fn run_confined(task: &Task, context: &LaneContext, budget: &Budget) -> Outcome {
    let key = task.key.clone();
    let work = AssertUnwindSafe(work(task, context)).catch_unwind();
    match budget.limit(work).await {
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
        Err(Overrun(limit)) => {
            context.metrics.reconcile.timeouts.inc();
            let trouble = Trouble::new(
                TroubleKind::Quarantined,
                format!(
                    "applying {key} took longer than {} s and was cut off",
                    limit.as_secs()
                ),
            );
            let remedy = format!("check the API server's latency and webhooks: {WEBHOOKS}");
            Outcome::Trouble(trouble.remedy(remedy))
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
        (
            Outcome::Done { .. }
            | Outcome::Blocked(_)
            | Outcome::Deferred { .. }
            | Outcome::Trouble(_),
            _,
        ) => {}
    }
}

async fn workload(
    key: &ObjectKey,
    state: &State,
    was_settled: bool,
    context: &LaneContext,
) -> Result<Outcome, Stop> {
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
    let plan = Plan {
        desired,
        rules,
        unseen: &context.store.unseen(),
    };
    if let Some(resource) = plan.blocked_by() {
        return Err(words::unknown(&desired.reference().to_string(), resource).into());
    }
    let (mut missing, mut older) = (BTreeSet::new(), BTreeSet::new());
    for shared in plan.shared() {
        match shared::need(&shared, context) {
            Need::InPlace => {}
            Need::OnlyOlder => {
                older.insert(shared);
            }
            Need::Missing => {
                missing.insert(shared);
            }
        }
    }
    if !missing.is_empty() {
        return Err(Stop::Blocked(missing));
    }
    let repair = Repair::workload(was_settled);
    let mut is_deferred = !older.is_empty() && !context.writes_older;
    let (mut wrote, mut repaired) = (false, None);
    let mut note = |settlement: &Settlement| {
        wrote |= settlement.wrote;
        is_deferred |= settlement.is_deferred;
        repaired = repaired.or(settlement.repaired);
    };
    // First: what is not needed any more may work against what is wanted now.
    for reference in plan.unneeded() {
        note(&remove::unneeded(&reference, desired.key(), repair, context).await?);
    }
    let primary = primary::bring_about(plan, repair, context).await?;
    note(&primary);
    // Once more: of a workload that was out of sight nobody knew what belongs to it.
    for reference in plan.unneeded() {
        note(&remove::unneeded(&reference, desired.key(), repair, context).await?);
    }
    let owner = primary.live.iter();
    for rendered in owner.flat_map(|owner| plan.dependants(owner)) {
        note(&settle::settle(&rendered, repair, context).await?);
    }
    if is_deferred {
        return Ok(Outcome::Deferred { wrote });
    }
    // The workload counts on them as they are, and the state on what krane renders now (D44).
    if !older.is_empty() {
        return Err(Stop::Blocked(older));
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

async fn delete(key: &ObjectKey, context: &LaneContext) -> Result<Outcome, Stop> {
    let controller = context.store.controller();
    if let Some(resource) = context.store.delete_blocked_by(key) {
        return Err(words::unknown(&format!("deleting {key}"), resource).into());
    }
    let found = context.store.objects_to_delete(key);
    let all = || found.parts.iter().chain(&found.workload);
    let id = all().find_map(|live| kinds::question_id(controller, live));
    let wrote = all().next().is_some();
    // Whoever holds a part with a finalizer holds up that part alone.
    for part in &found.parts {
        write::delete(part, context).await?;
    }
    if let Some(live) = &found.workload
        && write::delete(live, context).await? == Deletion::Begun
    {
        return Err(words::still_there(&live.reference.to_string()).into());
    }
    let now = context.board.now();
    context.store.note_workload_deleted(key, id, now);
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
    if context.leadership.term(context.board.now()) != Some(context.term) {
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

/// Errors unless writing an object of this kind is allowed: what krane may not list it neither writes
/// nor deletes (D38b).
pub(crate) fn writing_of(reference: &ObjectRef, context: &LaneContext) -> Result<(), Stop> {
    let resource = reference.resource;
    if context.store.is_kind_forbidden(resource) {
        return Err(words::unknown(&reference.to_string(), resource).into());
    }
    writing(context)
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

/// The same for a write. The API server gives up one that webhooks keep waiting, too, and does not
/// say for what.
pub(crate) fn write_refused(what: &str, refusal: &Refusal) -> Trouble {
    let trouble = refused(what, refusal);
    if refusal.code != GATEWAY_TIMEOUT {
        return trouble;
    }
    trouble.remedy(format!(
        "it is retried; the likely cause is an admission webhook that does not answer: {WEBHOOKS}"
    ))
}
