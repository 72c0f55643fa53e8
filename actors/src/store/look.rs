//! What others ask a controller's store: probes, the page, a rehearsal, the demo.

use std::collections::BTreeSet;
use std::sync::Arc;

use krane_domain::backlog::{InTrouble, Standing};
use krane_domain::ids::{Moment, ObjectKey, SharedKey, WorkKey};
use krane_domain::object::Resource;

use super::{ResyncSummary, Store};
use crate::breaker::BreakerState;

/// What a probe looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Whether the first complete lists are done.
    pub is_listed: bool,
    /// Whether the desired-state stream is open.
    pub is_open: bool,
    /// Whether no kind is unknown at present.
    pub is_seeing: bool,
    /// Guards reports and questions.
    pub breaker: BreakerState,
}

/// How far a controller is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Versions received and not applied.
    pub versions: u64,
    /// Objects with a state that was not brought about yet.
    pub unapplied: usize,
    /// Objects whose newest report is not delivered.
    pub undelivered: usize,
}

/// What a controller has looked at, and what it does not get past.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// Whether the first complete lists are done.
    pub is_listed: bool,
    /// Kinds whose watch does not work at present.
    pub broken_watches: Vec<Resource>,
    /// Whether the desired-state stream is open.
    pub is_open: bool,
    /// Whether it has replayed everything.
    pub is_replayed: bool,
    /// The last pass over all objects.
    pub last_resync: Option<ResyncSummary>,
    /// Objects that wait for a lane, are in one, or were not looked at.
    pub on_their_way: usize,
    /// Objects whose pod template waits for its first turn to roll.
    pub waiting_to_roll: usize,
    /// All keys in trouble.
    pub troubles: Vec<InTrouble>,
    /// Keys that wait, each with what they wait for.
    pub blocked: Vec<(WorkKey, Vec<SharedKey>)>,
    /// Objects whose deletion is held.
    pub held: BTreeSet<ObjectKey>,
}

impl Store {
    /// What a probe looks at.
    pub fn connection(&self) -> Connection {
        self.with(|memory| Connection {
            is_listed: memory.is_listed,
            is_open: memory.stream.opened_at.is_some(),
            is_seeing: memory.view.unknown().is_empty(),
            breaker: memory.breaker.state(),
        })
    }

    /// How far it is behind.
    pub fn lag(&self) -> Lag {
        self.with(|memory| Lag {
            versions: memory
                .backlog
                .highest()
                .saturating_sub(memory.backlog.cursor()),
            unapplied: memory.backlog.unapplied(),
            undelivered: memory.outbox.undelivered(),
        })
    }

    /// The version up to which every state was brought about.
    pub fn cursor(&self) -> u64 {
        self.with(|memory| memory.backlog.cursor())
    }

    /// Why pods of this workload cannot start, in the kubelet's words.
    pub fn config_error(&self, key: &ObjectKey) -> Option<Arc<str>> {
        self.with(|memory| memory.config_errors.get(key).cloned())
    }

    /// All keys in trouble.
    pub fn in_trouble(&self) -> Vec<InTrouble> {
        self.with(|memory| memory.backlog.in_trouble().collect())
    }

    /// What is wrong with a key.
    pub fn trouble_of(&self, key: &WorkKey) -> Option<InTrouble> {
        self.with(|memory| memory.backlog.trouble_of(key))
    }

    /// What was looked at by now, and what stands in the way.
    pub fn outlook(&self, now: Moment) -> Outlook {
        self.with(|memory| {
            let is_replayed = memory.is_replayed(now);
            let backlog = &memory.backlog;
            let moving = backlog.ready() + backlog.in_flight();
            let unapplied = backlog.states().filter(|state| {
                let work = WorkKey::Workload(state.key.clone());
                match backlog.standing(&work) {
                    None | Some(Standing::Queued { .. } | Standing::Applying) => true,
                    Some(
                        Standing::InPlace { .. }
                        | Standing::Blocked(_)
                        | Standing::Contested { .. }
                        | Standing::Trouble(_),
                    ) => false,
                }
            });
            Outlook {
                is_listed: memory.is_listed,
                broken_watches: memory.broken_watches.keys().copied().collect(),
                is_open: memory.stream.opened_at.is_some(),
                is_replayed,
                last_resync: memory.last_resync.clone(),
                on_their_way: moving.max(unapplied.count()),
                waiting_to_roll: memory.rolls.untried(),
                troubles: backlog.in_trouble().collect(),
                blocked: backlog
                    .blocked()
                    .map(|(key, on)| (key.clone(), on.iter().cloned().collect()))
                    .collect(),
                held: memory.brake.held().clone(),
            }
        })
    }
}
