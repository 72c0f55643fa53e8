//! What is measured of a store at scrape time.

use krane_domain::backlog::TroubleKind;

use super::Store;
use crate::breaker::BreakerState;

/// Everything that is exported about one controller's store, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreReadings {
    /// Version the stream resumes after.
    pub(crate) cursor: u64,
    /// Versions received and not yet passed by the cursor.
    pub(crate) lag: u64,
    /// Keys that cannot be applied and hold the cursor back.
    pub(crate) quarantined: u64,
    /// Keys that wait for an operator or administrator.
    pub(crate) misconfigured: u64,
    /// Keys that an operator put on hold.
    pub(crate) on_hold: u64,
    /// Objects with a state that is not applied yet.
    pub(crate) unapplied: u64,
    /// Bytes of these states.
    pub(crate) unapplied_bytes: u64,
    /// Keys being reconciled.
    pub(crate) in_flight: u64,
    /// Keys that wait to be reconciled.
    pub(crate) ready: u64,
    /// How often a key became ready, since the start.
    pub(crate) adds: u64,
    /// Objects whose newest report is not delivered.
    pub(crate) undelivered_reports: u64,
    /// Deletions on `not_found` that wait for an operator.
    pub(crate) held_deletions: u64,
    /// Workloads with pods of an earlier template.
    pub(crate) outdated: u64,
    /// Keys of which something waits only because another renderer made it (D44).
    pub(crate) to_upgrade: u64,
    /// Workload names that several namespaces use.
    pub(crate) name_conflicts: u64,
    /// Whether requests to the control plane go out.
    pub(crate) breaker: BreakerState,
    /// Kinds the API server does not know.
    pub(crate) kinds_missing: u64,
    /// Kinds whose watch does not work.
    pub(crate) broken_watches: u64,
    /// States received that were known, since the start.
    pub(crate) replayed: u64,
    /// States received that were older than known, since the start.
    pub(crate) stale: u64,
    /// States of a restored control plane taken in, since the start.
    pub(crate) adopted: u64,
    /// Messages received that name no object, since the start.
    pub(crate) unknown: u64,
}

impl Store {
    /// Reads everything that is exported, under one lock.
    pub(crate) fn readings(&self) -> StoreReadings {
        self.with(|memory| {
            let backlog = &memory.backlog;
            let in_trouble = |kind: TroubleKind| {
                let entries = backlog.in_trouble();
                entries.filter(|entry| entry.trouble.kind == kind).count() as u64
            };
            StoreReadings {
                cursor: backlog.cursor(),
                lag: backlog.highest().saturating_sub(backlog.cursor()),
                quarantined: in_trouble(TroubleKind::Quarantined),
                misconfigured: in_trouble(TroubleKind::Misconfigured),
                on_hold: in_trouble(TroubleKind::Held),
                unapplied: backlog.unapplied() as u64,
                unapplied_bytes: backlog.bytes() as u64,
                in_flight: backlog.in_flight() as u64,
                ready: backlog.ready() as u64,
                adds: backlog.adds(),
                undelivered_reports: memory.outbox.undelivered() as u64,
                held_deletions: memory.brake.held().len() as u64,
                outdated: memory.outdated.len() as u64,
                to_upgrade: memory.to_upgrade() as u64,
                name_conflicts: memory.view.name_conflicts() as u64,
                breaker: memory.breaker.state(),
                kinds_missing: memory.kinds_missing.len() as u64,
                broken_watches: memory.broken_watches.len() as u64,
                replayed: memory.stream.replayed,
                stale: memory.stream.stale,
                adopted: memory.stream.adopted,
                unknown: memory.stream.unknown,
            }
        })
    }
}
