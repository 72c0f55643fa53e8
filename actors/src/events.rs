//! What happened lately: a bounded memory for people who look later.
//!
//! Whoever decides something records it, beside its log line. What happens all the time has a
//! ring of its own, so that a thousand applied states do not push out the one that failed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use krane_domain::backlog::Trouble;
use krane_domain::ids::{Controller, Moment, ObjectKey, WorkKey};
use krane_domain::object::ObjectRef;
use krane_domain::report::Gist;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Events kept of each ring.
pub const KEPT: usize = 256;
/// A pod that starts is reported several times: of reports about one object within this time the
/// last one is remembered.
const FOLD: Duration = Duration::from_secs(1);
/// Paths named of one repair.
const PATHS: usize = 8;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Counts up by one from 1, over all events of this process.
    pub number: u64,
    /// When.
    pub at: Moment,
    /// The controller it happened in; none for what concerns the whole tree.
    pub controller: Option<Controller>,
    /// What.
    pub what: Happening,
}

/// What happened. A closed set; nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A state was brought about by writing.
    Applied {
        /// The object.
        key: ObjectKey,
        /// The state's version.
        version: u64,
        /// From the start of the lane.
        took: Duration,
    },
    /// An object was deleted because that is wanted.
    Deleted {
        /// The object.
        key: ObjectKey,
        /// The state's version.
        version: u64,
    },
    /// Somebody else changed or deleted an object in place; it is as wanted again.
    Repaired {
        /// The object.
        object: ObjectRef,
        /// Where it differed, without values; empty when it was gone. At most the first few.
        paths: Vec<String>,
        /// Further paths.
        more: usize,
        /// The field managers that had made it so, as far as the object says.
        by: Vec<String>,
    },
    /// A key came into trouble, or into trouble of another kind.
    Troubled {
        /// The key.
        key: WorkKey,
        /// The version that fails; 0 where there is none.
        version: u64,
        /// What is wrong.
        trouble: Trouble,
    },
    /// A key is out of trouble.
    Recovered {
        /// The key.
        key: WorkKey,
        /// Attempts that failed.
        attempts: u32,
    },
    /// The desired-state stream is open.
    StreamOpened {
        /// Where it went on.
        cursor: u64,
    },
    /// The desired-state stream ended, or could not be opened.
    StreamEnded {
        /// gRPC code name.
        code: &'static str,
        /// The message with its causes.
        message: String,
    },
    /// A report was delivered.
    Reported {
        /// The object.
        key: ObjectKey,
        /// What it said.
        gist: Gist,
    },
    /// Pods of a workload cannot start.
    PodsCannotStart {
        /// The workload.
        key: ObjectKey,
        /// Why, in the kubelet's words.
        error: Arc<str>,
    },
    /// Reports do not get through, for this reason.
    ReportFailed {
        /// The object of the first one.
        key: ObjectKey,
        /// The failure.
        failure: String,
    },
    /// Reports get through again.
    ReportsRecovered,
    /// Calls to the control plane pause until a probe succeeds.
    BreakerOpened,
    /// The Kubernetes API does not answer.
    ApiServerLost {
        /// The last error.
        error: String,
        /// How long it has not answered already.
        silent: Duration,
    },
    /// The Kubernetes API answers again.
    ApiServerRecovered {
        /// How long it had not.
        took: Duration,
    },
    /// The answer to a question changed what is wanted.
    ResyncChanged {
        /// The object.
        key: ObjectKey,
    },
    /// The control plane does not know the object, asked twice: it is deleted.
    Disowned {
        /// The object.
        key: ObjectKey,
    },
    /// The control plane does not know so many objects that none of them is deleted.
    DeletesHeld {
        /// How many.
        found: usize,
    },
    /// A person allowed the deletions that were held.
    DeletesAllowed {
        /// How many.
        objects: usize,
    },
    /// A person asked for something.
    Asked {
        /// What, one of a closed set.
        action: &'static str,
        /// The workload, if it is about one.
        key: Option<ObjectKey>,
    },
    /// This process holds the lease: it writes from now on.
    LeaseWon,
    /// It does not hold the lease any more.
    LeaseLost {
        /// Who does, as far as is known.
        holder: Option<Arc<str>>,
    },
    /// An actor went down.
    ActorFailed {
        /// Its path.
        path: Arc<str>,
        /// One of [`Cause::kind`](krane_supervision::cause::Cause::kind).
        kind: &'static str,
        /// The words.
        text: Arc<str>,
        /// How long it stays down.
        pause: Duration,
        /// Whether it spent its restart budget and comes back with fresh state.
        is_parked: bool,
    },
    /// An actor that went down runs again.
    ActorRestarted {
        /// Its path.
        path: Arc<str>,
    },
}

impl Happening {
    /// A repair of the object, which these field managers had changed at these paths.
    pub fn repaired<'a>(
        object: &ObjectRef,
        paths: impl IntoIterator<Item = &'a str>,
        by: Vec<String>,
    ) -> Self {
        let mut paths = paths.into_iter();
        let named = paths.by_ref().take(PATHS).map(str::to_owned).collect();
        Self::Repaired {
            object: object.clone(),
            paths: named,
            more: paths.count(),
            by,
        }
    }

    /// The variant's name in snake case: a closed set.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Applied { .. } => "applied",
            Self::Deleted { .. } => "deleted",
            Self::Repaired { .. } => "repaired",
            Self::Troubled { .. } => "troubled",
            Self::Recovered { .. } => "recovered",
            Self::StreamOpened { .. } => "stream_opened",
            Self::StreamEnded { .. } => "stream_ended",
            Self::Reported { .. } => "reported",
            Self::PodsCannotStart { .. } => "pods_cannot_start",
            Self::ReportFailed { .. } => "report_failed",
            Self::ReportsRecovered => "reports_recovered",
            Self::BreakerOpened => "breaker_opened",
            Self::ApiServerLost { .. } => "api_server_lost",
            Self::ApiServerRecovered { .. } => "api_server_recovered",
            Self::ResyncChanged { .. } => "resync_changed",
            Self::Disowned { .. } => "disowned",
            Self::DeletesHeld { .. } => "deletes_held",
            Self::DeletesAllowed { .. } => "deletes_allowed",
            Self::Asked { .. } => "asked",
            Self::LeaseWon => "lease_won",
            Self::LeaseLost { .. } => "lease_lost",
            Self::ActorFailed { .. } => "actor_failed",
            Self::ActorRestarted { .. } => "actor_restarted",
        }
    }

    /// Whether it happens all the time when all is well.
    const fn is_routine(&self) -> bool {
        matches!(
            self,
            Self::Applied { .. } | Self::Deleted { .. } | Self::Reported { .. }
        )
    }
}

/// The last events. Cheap to clone; all clones are the same memory.
#[derive(Clone, Debug, Default)]
pub struct Events {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    rings: Mutex<Rings>,
    dropped: AtomicU64,
    news: Notify,
}

#[derive(Debug, Default)]
struct Rings {
    last: u64,
    routine: VecDeque<Event>,
    notable: VecDeque<Event>,
}

impl Events {
    /// Remembers an event and forgets the oldest of its ring if that is full.
    pub fn record(&self, at: Moment, controller: Option<Controller>, what: Happening) {
        let mut rings = self.shared.rings.lock();
        rings.last += 1;
        let number = rings.last;
        let ring = if what.is_routine() {
            &mut rings.routine
        } else {
            &mut rings.notable
        };
        if let Happening::Reported { key, .. } = &what {
            fold(ring, key, at);
        }
        if ring.len() == KEPT {
            ring.pop_front();
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
        ring.push_back(Event {
            number,
            at,
            controller,
            what,
        });
        drop(rings);
        self.shared.news.notify_waiters();
    }

    /// What is remembered, newest first.
    pub fn newest_first(&self) -> Vec<Event> {
        let rings = self.shared.rings.lock();
        let mut events: Vec<Event> = rings
            .routine
            .iter()
            .chain(&rings.notable)
            .cloned()
            .collect();
        drop(rings);
        events.sort_unstable_by_key(|event| std::cmp::Reverse(event.number));
        events
    }

    /// Number of the newest event, 0 before the first.
    pub fn last(&self) -> u64 {
        self.shared.rings.lock().last
    }

    /// Events that were forgotten because their ring was full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until something happens after this call, even before it is first polled.
    pub fn news(&self) -> impl Future<Output = ()> {
        self.shared.news.notified()
    }
}

/// Forgets the report about this object that a new one follows at once.
fn fold(ring: &mut VecDeque<Event>, about: &ObjectKey, now: Moment) {
    let is_earlier = |event: &Event| {
        let is_of_it = matches!(&event.what, Happening::Reported { key, .. } if key == about);
        is_of_it && event.at + FOLD >= now
    };
    if let Some(earlier) = ring.iter().rposition(is_earlier) {
        ring.remove(earlier);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use krane_domain::ids::ObjectKey;
    use krane_domain::object::{ObjectRef, Resource};
    use krane_domain::report::Gist;

    use super::{Events, Happening, KEPT};

    #[test]
    fn a_thousand_applied_states_do_not_push_out_the_one_failure() {
        let events = Events::default();
        events.record(Duration::ZERO, None, Happening::BreakerOpened);
        for version in 1..=1000 {
            let applied = Happening::Applied {
                key: ObjectKey::new("ns", "d"),
                version,
                took: Duration::ZERO,
            };
            events.record(Duration::ZERO, None, applied);
        }
        let kept = events.newest_first();
        assert_eq!(kept.len(), KEPT + 1);
        assert_eq!(events.dropped(), 1000 - u64::try_from(KEPT).unwrap());
        assert_eq!(kept.first().map(|event| event.number), Some(1001));
        assert_eq!(
            kept.last().map(|event| &event.what),
            Some(&Happening::BreakerOpened)
        );
    }

    #[test]
    fn of_reports_in_quick_succession_the_last_is_told() {
        let events = Events::default();
        let report = |seconds, name, running| {
            let key = ObjectKey::new("ns", name);
            let gist = Gist::Instances { running, all: 2 };
            let reported = Happening::Reported { key, gist };
            events.record(Duration::from_millis(seconds), None, reported);
        };
        report(0, "a", 0);
        report(100, "b", 0);
        report(600, "a", 1);
        report(900, "a", 2);
        report(3_000, "a", 1);
        let told = events.newest_first();
        let told = told.iter().map(|event| {
            let Happening::Reported { key, gist } = &event.what else {
                panic!("a report")
            };
            (key.name.to_string(), gist.to_string())
        });
        let told: Vec<_> = told.collect();
        let expected = [("a", 1), ("a", 2), ("b", 0)];
        assert_eq!(
            told,
            expected.map(|(name, running)| (name.to_owned(), format!("{running} of 2 running")))
        );
        assert_eq!(events.dropped(), 0);
    }

    #[test]
    fn a_repair_names_the_first_paths_and_counts_the_rest() {
        let object = ObjectRef::new(Resource::ReplicaSet, "ns", "d");
        let repaired =
            Happening::repaired(&object, ["spec.replicas"; 11], vec!["kubectl".to_owned()]);
        let Happening::Repaired { paths, more, .. } = repaired else {
            panic!("a repair")
        };
        assert_eq!((paths.len(), more), (8, 3));
    }
}
