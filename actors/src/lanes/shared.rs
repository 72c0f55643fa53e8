//! Objects that several workloads need: namespace, isolation policy, pull secret.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::backlog::{Outcome, Trouble, TroubleKind};
use krane_domain::drift::{self, Decision};
use krane_domain::ids::SharedKey;
use krane_domain::kinds;
use krane_domain::object::Rendered;
use krane_domain::upgrades::is_older_rendering;

use super::repair::Repair;
use super::settle;
use super::words;
use super::write::delete;
use super::{LaneContext, Settlement, Stop, refused};

/// A policy without members is kept this long: its environment may come back.
const MEMBERLESS: Duration = Duration::from_secs(600);

/// What a shared object is to a workload that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// As it is rendered, or as good as that.
    InPlace,
    /// The workload may count on it, and it still has to be written (D44).
    OnlyOlder,
    /// It has to be put in place first.
    Missing,
}

/// Whether a workload may count on this object.
pub(super) fn need(shared: &SharedKey, context: &LaneContext) -> Need {
    let rules = context.store.rules();
    let need = |is_in_place| {
        if is_in_place {
            Need::InPlace
        } else {
            Need::Missing
        }
    };
    if is_unknown(shared, context) {
        return need(kinds::can_do_without(shared, rules));
    }
    if let SharedKey::Namespace(namespace) = shared
        && context.store.is_foreign_namespace(namespace)
    {
        return Need::InPlace;
    }
    let Some(rendered) = render(shared, context) else {
        return Need::InPlace;
    };
    let found = context.store.shared_object(&rendered.reference);
    if found.is_kind_missing && found.live.is_none() {
        return need(kinds::can_do_without(shared, rules));
    }
    match drift::decide(
        &rendered,
        found.live.as_deref(),
        found.fuse.as_ref(),
        context.clock.unix_seconds(),
    ) {
        Decision::InPlace => Need::InPlace,
        Decision::Held { .. } => need(found.live.is_some()),
        Decision::Update { differences, .. }
            if found
                .live
                .is_some_and(|live| is_older_rendering(&live, &differences)) =>
        {
            Need::OnlyOlder
        }
        // A policy that would only lose ports is safe to count on.
        Decision::Update { .. } => need(is_only_narrower(shared, &rendered, context)),
        Decision::Create
        | Decision::Adopt { .. }
        | Decision::Terminating
        | Decision::NotOurs
        | Decision::Recreate { .. }
        | Decision::Refuse(_) => Need::Missing,
    }
}

/// Whether krane may not list the kind of this object.
fn is_unknown(shared: &SharedKey, context: &LaneContext) -> bool {
    let resource = kinds::shared_reference(shared).resource;
    context.store.is_kind_forbidden(resource)
}

/// Brings a shared object about, or removes it when nobody has needed it for long enough.
pub(super) async fn bring_about(
    shared: &SharedKey,
    was_settled: bool,
    context: &LaneContext,
) -> Result<Outcome, Stop> {
    if is_unknown(shared, context) {
        let resource = kinds::shared_reference(shared).resource;
        return Err(words::unknown(&shared.to_string(), resource).into());
    }
    let Some(rendered) = render(shared, context) else {
        return retire(shared, context).await;
    };
    context.store.forget_memberless(shared);
    let mut is_free = false;
    if let SharedKey::Namespace(namespace) = shared {
        match found_namespace(namespace, context).await? {
            Found::Foreign => return Ok(Outcome::NOTHING_TO_DO),
            Found::Nothing => is_free = true,
            Found::Ours => {}
        }
    } else {
        let namespace = SharedKey::Namespace(Arc::clone(shared.namespace()));
        if need(&namespace, context) == Need::Missing {
            return Err(Stop::Blocked([namespace].into()));
        }
    }
    if is_only_narrower(shared, &rendered, context) && !is_replayed(context) {
        let mut trouble = Trouble::new(
            TroubleKind::Waiting,
            format!("{shared} keeps ports that nobody seems to need"),
        )
        .remedy("they go once the replay of desired states is over");
        trouble.retry_after = Some(crate::store::QUIET);
        return Err(trouble.into());
    }
    let Settlement {
        wrote,
        repaired,
        live,
        is_deferred,
        keeps_template: _,
    } = settle::settle_from(&rendered, Repair::shared(was_settled), is_free, context).await?;
    if is_deferred {
        return Ok(Outcome::Deferred { wrote });
    }
    Ok(Outcome::Done {
        live: live.map(|live| live.fingerprint),
        wrote,
        repaired,
    })
}

fn render(shared: &SharedKey, context: &LaneContext) -> Option<Rendered> {
    let members = context.store.members_of(shared);
    let rules = context.store.rules();
    match (shared, &context.registry_password) {
        (SharedKey::PullSecret(_), Some(password)) => {
            kinds::render_shared(shared, &members, &rules.with_password(password()))
        }
        (
            SharedKey::PullSecret(_) | SharedKey::Namespace(_) | SharedKey::IsolationPolicy { .. },
            _,
        ) => kinds::render_shared(shared, &members, rules),
    }
}

/// What has the name of a namespace.
enum Found {
    /// One that somebody else made: it is used and not labelled.
    Foreign,
    /// One of ours.
    Ours,
    /// Nothing, a moment ago.
    Nothing,
}

async fn found_namespace(namespace: &Arc<str>, context: &LaneContext) -> Result<Found, Stop> {
    let reference = kinds::shared_reference(&SharedKey::Namespace(Arc::clone(namespace)));
    if context.store.is_live(&reference) {
        return Ok(Found::Ours);
    }
    let found = context
        .cluster
        .metadata(&reference)
        .await
        .map_err(|refusal| refused(&format!("reading {reference}"), &refusal))?;
    match found {
        Some(metadata) if metadata.is_terminating => {
            Err(words::being_deleted(&reference.to_string()).into())
        }
        Some(metadata) if !metadata.is_ours() && !context.store.was_ours(&metadata.uid) => {
            context.store.note_foreign_namespace(namespace);
            Ok(Found::Foreign)
        }
        Some(_) => Ok(Found::Ours),
        None => Ok(Found::Nothing),
    }
}

/// Nobody needs the object. A policy goes after a while; namespaces and secrets stay.
async fn retire(shared: &SharedKey, context: &LaneContext) -> Result<Outcome, Stop> {
    let reference = kinds::shared_reference(shared);
    let live = context.store.live_object(&reference);
    let (SharedKey::IsolationPolicy { .. }, Some(live)) = (shared, live) else {
        context.store.forget_memberless(shared);
        return Ok(Outcome::NOTHING_TO_DO);
    };
    let now = context.board.now();
    let since = context.store.note_memberless(shared, now);
    let due = since + MEMBERLESS;
    if due > now || !is_replayed(context) {
        let left = due.saturating_sub(now).max(Duration::from_secs(10));
        let mut trouble = Trouble::new(
            TroubleKind::Waiting,
            format!("no workload needs {shared} any more"),
        )
        .remedy("nothing: it is removed at its next try");
        trouble.retry_after = Some(left);
        return Err(trouble.into());
    }
    delete(&live, context).await?;
    context.store.forget_memberless(shared);
    Ok(Outcome::NOTHING_TO_DO)
}

fn is_replayed(context: &LaneContext) -> bool {
    let now = context.board.now();
    context.store.is_replayed(now)
}

/// Whether the live policy lets through everything the rendered one does, and more: then only
/// ports of workloads that no longer exist would go.
fn is_only_narrower(shared: &SharedKey, rendered: &Rendered, context: &LaneContext) -> bool {
    if !matches!(shared, SharedKey::IsolationPolicy { .. }) {
        return false;
    }
    let live = context.store.live_object(&rendered.reference);
    live.is_some_and(|live| kinds::only_loses_ports(rendered, &live))
}
