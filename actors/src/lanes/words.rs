//! What a lane says of an object that it cannot change.

use std::time::Duration;

use krane_domain::backlog::{Trouble, TroubleKind};
use krane_domain::object::Resource;

use crate::forbidden::permission;

/// What the API server answered the list, as an HTTP status.
const FORBIDDEN: u16 = 403;

pub(super) fn not_ours(what: &str) -> Trouble {
    Trouble::new(
        TroubleKind::Misconfigured,
        format!(
            "{what} exists without the label app.kubernetes.io/managed-by=krane and is left alone"
        ),
    )
    .remedy("delete it or give it that label")
}

/// krane may not list this kind, which `what` needs (D38b).
pub(super) fn unknown(what: &str, resource: Resource) -> Trouble {
    let kinds = resource.plural();
    let mut trouble = Trouble::new(
        TroubleKind::Misconfigured,
        format!("{what} needs {kinds}, which krane may not list"),
    )
    .remedy(format!(
        "allow krane's ServiceAccount to {}; krane looks again every 20 s",
        permission(resource)
    ));
    trouble.code = Some(FORBIDDEN);
    trouble
}

/// A moment of today or tomorrow, by which people set their watches.
fn clock(unix_seconds: u64) -> String {
    let (hours, minutes, seconds) = (
        unix_seconds / 3_600 % 24,
        unix_seconds / 60 % 60,
        unix_seconds % 60,
    );
    format!("{hours:02}:{minutes:02}:{seconds:02} UTC")
}

/// It is not wanted any more, and goes when whoever holds it lets it.
pub(super) fn still_there(what: &str) -> Trouble {
    Trouble::new(TroubleKind::Waiting, format!("{what} is being deleted"))
        .remedy("if it stays, look at its metadata.finalizers: whoever set them has to remove them")
}

/// Something of that name is on its way out.
pub(super) fn being_deleted(what: &str) -> Trouble {
    Trouble::new(TroubleKind::Waiting, format!("{what} is being deleted"))
        .remedy("it is made again when it is gone")
}

/// How a hold is ended. What has no namespace is held by its annotation alone.
fn release(what: &str) -> String {
    let annotation = "the annotation krane.unkey.com/hold";
    match what.rsplit(' ').next() {
        Some(workload) if workload.contains('/') => {
            format!("krane hold {workload} --release ends it, and so does removing {annotation}")
        }
        Some(_) | None => format!("removing {annotation} ends it"),
    }
}

pub(super) fn held(what: &str, until: u64, seconds: u64) -> Trouble {
    let left = until.saturating_sub(seconds);
    let mut trouble = Trouble::new(
        TroubleKind::Held,
        format!("{what} is on hold until {}", clock(until)),
    )
    .remedy(release(what));
    trouble.retry_after = Some(Duration::from_secs(left.clamp(1, 60)));
    trouble
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn a_hold_is_ended_by_a_command_that_can_be_typed_as_it_stands() {
        let remedy = release("ReplicaSet shop/web");
        assert!(
            remedy.starts_with("krane hold shop/web --release ends it"),
            "{remedy}"
        );
        let remedy = release("Namespace shop");
        assert!(remedy.starts_with("removing the annotation"), "{remedy}");
    }
}
