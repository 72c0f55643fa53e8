//! What a lane says of an object that it cannot change.

use std::time::Duration;

use krane_domain::backlog::{Trouble, TroubleKind};

pub(super) fn not_ours(what: &str) -> Trouble {
    Trouble::new(
        TroubleKind::Misconfigured,
        format!(
            "{what} exists without the label app.kubernetes.io/managed-by=krane and is left alone"
        ),
    )
    .remedy("delete it or give it that label")
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

pub(super) fn held(what: &str, until: u64, seconds: u64) -> Trouble {
    let left = until.saturating_sub(seconds);
    let mut trouble = Trouble::new(
        TroubleKind::Held,
        format!("{what} is on hold for another {left} s"),
    )
    .remedy("remove the annotation krane.unkey.com/hold to end it now");
    trouble.retry_after = Some(Duration::from_secs(left.clamp(1, 60)));
    trouble
}
