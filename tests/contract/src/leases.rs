//! What every Lease does, whoever keeps it.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::lease::{Claim, Failure};
use krane_ports::Leases;

fn claim(holder: Option<&str>, transitions: u32, is_new: bool) -> Claim {
    Claim {
        holder: holder.map(Arc::from),
        duration: Duration::from_secs(15),
        transitions,
        is_new,
    }
}

/// Whoever renews meets the version it knows, or nothing happens.
pub async fn a_lease_is_made_once_and_changed_only_in_the_version_that_was_seen(
    leases: &dyn Leases,
) {
    assert_eq!(leases.read().await.unwrap(), None);
    let conflict = leases.update("1", &claim(Some("a"), 0, true)).await;
    assert_eq!(
        conflict.unwrap_err().kind,
        Failure::Conflict,
        "there is none"
    );

    let made = leases.create(&claim(Some("a"), 0, true)).await.unwrap();
    assert_eq!(made.holder.as_deref(), Some("a"));
    assert_eq!(made.duration, Some(Duration::from_secs(15)));
    assert!(made.acquired_at.is_some_and(|at| at > 1_700_000_000));
    let again = leases.create(&claim(Some("b"), 0, true)).await;
    assert_eq!(again.unwrap_err().kind, Failure::Conflict);
    assert_eq!(leases.read().await.unwrap().as_ref(), Some(&made));

    let renewed = leases
        .update(&made.version, &claim(Some("a"), 0, false))
        .await
        .unwrap();
    assert_ne!(
        renewed.version, made.version,
        "a candidate sees that it was renewed"
    );
    assert_eq!(renewed.acquired_at, made.acquired_at);
    assert_eq!(renewed.uid, made.uid);
    let late = leases
        .update(&made.version, &claim(Some("b"), 1, true))
        .await;
    assert_eq!(late.unwrap_err().kind, Failure::Conflict);

    let freed = leases
        .update(&renewed.version, &claim(None, 0, true))
        .await
        .unwrap();
    assert_eq!(freed.holder, None);
    let taken = leases
        .update(&freed.version, &claim(Some("b"), 1, true))
        .await
        .unwrap();
    assert_eq!((taken.holder.as_deref(), taken.transitions), (Some("b"), 1));
    assert_eq!(leases.read().await.unwrap().as_ref(), Some(&taken));
}
