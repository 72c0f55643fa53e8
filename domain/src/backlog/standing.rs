//! Where an object stands, as operators see it.

use std::collections::BTreeSet;

use super::{Backlog, InTrouble, Phase};
use crate::ids::{Moment, ObjectKey, SharedKey, WorkKey};

/// Where a key is between being wanted and being in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As wanted when last looked at.
    InPlace {
        /// When that was.
        since: Moment,
    },
    /// Waits for a lane.
    Queued {
        /// Since when.
        since: Moment,
    },
    /// A lane works on it.
    Applying,
    /// Waits for shared objects.
    Blocked(BTreeSet<SharedKey>),
    /// Somebody keeps undoing what krane writes, so the next repair waits.
    Contested {
        /// Until when.
        until: Moment,
    },
    /// It fails, or is held.
    Trouble(Box<InTrouble>),
}

impl Backlog {
    /// Where a key stands; nothing when nothing is known of it.
    pub fn standing(&self, key: &WorkKey) -> Option<Standing> {
        let entry = self.entries.get(key)?;
        if let Some(trouble) = entry.in_trouble(key) {
            return Some(Standing::Trouble(Box::new(trouble)));
        }
        let settled = entry.settled.as_ref().map(|settled| settled.at);
        Some(match (&entry.phase, settled) {
            (Phase::Blocked(on), _) => Standing::Blocked(on.clone()),
            (Phase::Waiting { until }, _) => Standing::Contested { until: *until },
            // Looking again at what was in place is no news until it finds a difference.
            (Phase::Idle | Phase::Ready { .. } | Phase::InFlight, Some(since)) => {
                Standing::InPlace { since }
            }
            (Phase::Ready { since, .. }, None) => Standing::Queued { since: *since },
            (Phase::InFlight, None) => Standing::Applying,
            (Phase::Idle, None) => return None,
        })
    }

    /// Workloads that wait for shared objects, and for which.
    pub fn blocked(&self) -> impl Iterator<Item = (&WorkKey, &BTreeSet<SharedKey>)> {
        self.entries
            .iter()
            .filter_map(|(key, entry)| match &entry.phase {
                Phase::Blocked(on) => Some((key, on)),
                Phase::Idle | Phase::Ready { .. } | Phase::InFlight | Phase::Waiting { .. } => None,
            })
    }

    /// When something was last written or deleted for this object.
    pub fn written_at(&self, key: &ObjectKey) -> Option<Moment> {
        self.entries
            .get(&WorkKey::Workload(key.clone()))?
            .written_at
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Standing;
    use crate::backlog::{Backlog, Outcome, Trouble, TroubleKind};
    use crate::desired::{Change, State};
    use crate::ids::{Moment, ObjectKey, SharedKey, WorkKey};

    const NOW: Moment = Duration::from_secs(10);

    #[test]
    fn a_key_stands_where_its_last_lane_left_it() {
        let key = ObjectKey::new("ns", "d1");
        let work = WorkKey::Workload(key.clone());
        let mut backlog = Backlog::default();
        assert_eq!(backlog.standing(&work), None);
        let state = State {
            key: key.clone(),
            version: 1,
            change: Ok(Change::Delete),
            size: 1,
        };
        backlog.receive(state, NOW);
        let standing = backlog.standing(&work);
        assert_eq!(standing, Some(Standing::Queued { since: NOW }));
        backlog.next(NOW).expect("a task");
        assert_eq!(backlog.standing(&work), Some(Standing::Applying));
        let namespace = SharedKey::Namespace("ns".into());
        let blocked = Outcome::Blocked([namespace.clone()].into());
        backlog.finish(&work, blocked, NOW, 0.5);
        let on = [namespace.clone()].into();
        assert_eq!(backlog.standing(&work), Some(Standing::Blocked(on)));
        backlog.unblock(&namespace, NOW);
        backlog.next(NOW).expect("a task");
        let trouble = Trouble::new(TroubleKind::Transient, "no answer");
        backlog.finish(&work, Outcome::Trouble(trouble), NOW, 0.5);
        assert!(matches!(
            backlog.standing(&work),
            Some(Standing::Trouble(trouble)) if trouble.attempts == 1
        ));
        assert_eq!(backlog.written_at(&key), None);
        let later = NOW + Duration::from_secs(60);
        backlog.wake_due(later);
        backlog.next(later).expect("a task");
        let done = Outcome::Done {
            live: None,
            wrote: true,
            repaired: None,
        };
        backlog.finish(&work, done, later, 0.5);
        let standing = backlog.standing(&work);
        assert_eq!(standing, Some(Standing::InPlace { since: later }));
        assert_eq!(backlog.written_at(&key), Some(later));
    }
}
