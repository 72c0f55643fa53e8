//! What a controller knows, when its process may write again (D22).

use krane_domain::ids::Moment;
use krane_domain::members::Members;
use krane_domain::upgrades::Rolls;

use super::{Memory, Store, StreamMemory};

impl Store {
    /// Whoever works in this term comes here first. When another process may have written since
    /// the last one, what was wanted then may be old: it is read anew from version 0, as by a new
    /// process. The view of the cluster is kept, it was followed all along. In the same term as
    /// before nobody else wrote, and everything goes on at the cursor (D3).
    pub fn enter_term(&self, term: u64, now: Moment) {
        self.with(|memory| memory.enter_term(term, now));
    }
}

impl Memory {
    fn enter_term(&mut self, term: u64, now: Moment) {
        if self.term.replace(term).is_none_or(|before| before == term) {
            return;
        }
        self.backlog.begin_anew(now);
        self.wanted = Members::default();
        self.brake.begin_anew();
        self.foreign_namespaces.clear();
        self.memberless.clear();
        self.last_resync = None;
        self.rolls = Rolls::default();
        let StreamMemory {
            unknown,
            stale,
            replayed,
            received,
            adopted,
            ..
        } = self.stream;
        // Counters go on.
        self.stream = StreamMemory {
            unknown,
            stale,
            replayed,
            received,
            adopted,
            ..StreamMemory::default()
        };
    }
}
