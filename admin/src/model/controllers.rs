//! How the controllers are doing.

use krane_actors::breaker::BreakerState;
use krane_actors::store::ControllerSnapshot;
use krane_domain::backlog::{InTrouble, TroubleKind};
use serde::Serialize;

use super::{Epoch, Level, Stamp};

/// One controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControllerView {
    /// Its name.
    pub name: &'static str,
    /// Whether the first complete lists of the cluster are done.
    pub listed: bool,
    /// Where the stream would go on.
    pub cursor: u64,
    /// The highest version received.
    pub newest: u64,
    /// The distance of both.
    pub lag: u64,
    /// Objects with a state that was not brought about yet.
    pub unapplied: usize,
    /// Keys that wait for a lane.
    pub queued: usize,
    /// Keys of which something waits only because another version or agent rendered it; of
    /// sentinels, for their turn to roll (`safety.upgrades`).
    pub to_upgrade: usize,
    /// Lanes at work.
    pub in_flight: usize,
    /// Workloads that wait for shared objects.
    pub blocked: usize,
    /// Bytes of states that wait to be applied.
    pub waiting_bytes: usize,
    /// The desired-state stream.
    pub stream: StreamView,
    /// `closed`, `open` or `probing`.
    pub breaker: &'static str,
    /// When the next probe may go out.
    pub breaker_probe_at: Option<Stamp>,
    /// Since when no call gets through, if one failed and none succeeded since.
    pub breaker_since: Option<Stamp>,
    /// Objects whose newest report is not delivered.
    pub reports_undelivered: usize,
    /// Whether anything is reported about these objects.
    pub has_reports: bool,
    /// Reports being sent.
    pub reports_in_flight: usize,
    /// What cannot be brought about, the worst first; at most 500.
    pub quarantine: Vec<QuarantineView>,
    /// All of it, what is on hold included.
    pub quarantined: usize,
    /// Of these, objects that a person put on hold.
    pub on_hold: usize,
    /// Objects whose deletion is held.
    pub deletes_held: Vec<String>,
    /// The last pass over all objects.
    pub resync: Option<ResyncView>,
    /// Objects known of the cluster.
    pub objects: usize,
    /// Pods known of the cluster.
    pub pods: usize,
    /// Names that more than one namespace holds.
    pub name_conflicts: usize,
    /// Kinds the API server does not know.
    pub kinds_missing: Vec<&'static str>,
    /// The watches of the cluster.
    pub watches: WatchesView,
}

impl ControllerView {
    /// What is set aside or waits, and what a person put on hold: each with how many there are.
    pub fn aside_and_held(&self) -> [(&'static str, Vec<&QuarantineView>, usize); 2] {
        let is_held = |it: &&QuarantineView| it.kind == TroubleKind::Held.name();
        let (held, aside) = self.quarantine.iter().partition(is_held);
        [
            (
                "Set aside or waiting",
                aside,
                self.quarantined - self.on_hold,
            ),
            ("On hold", held, self.on_hold),
        ]
    }
}

/// The watches of a controller, one per kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchesView {
    /// Kinds that are watched.
    pub kinds: Vec<&'static str>,
    /// Those whose watch does not work, the longest first.
    pub broken: Vec<BrokenWatchView>,
    /// Since when the API server answers none of them, if so.
    #[serde(skip)]
    pub silence: Option<SilenceView>,
}

impl WatchesView {
    /// Kinds whose watch works, or waits for the kind to exist.
    pub fn working(&self) -> usize {
        self.kinds.len().saturating_sub(self.broken.len())
    }

    /// Those that do not work, each error once: since when, what it is, and the kinds.
    pub fn by_error(&self) -> Vec<(&Stamp, &str, String)> {
        let mut errors: Vec<(&Stamp, &str, String)> = Vec::new();
        for watch in &self.broken {
            let mut known = errors.iter_mut();
            match known.find(|(_, error, _)| *error == watch.error) {
                Some((_, _, kinds)) => {
                    kinds.push_str(", ");
                    kinds.push_str(watch.kind);
                }
                None => errors.push((&watch.since, &watch.error, watch.kind.to_owned())),
            }
        }
        errors
    }
}

/// A kind whose watch does not work: what is shown of it is old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenWatchView {
    /// The kind.
    pub kind: &'static str,
    /// Since when.
    pub since: Stamp,
    /// Whether the API server answers, and says that krane may not.
    pub refused: bool,
    /// The last error.
    pub error: String,
}

/// None of the watches of a controller is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilenceView {
    /// When the first of them broke …
    pub first: Stamp,
    /// … and the last.
    pub last: Stamp,
    /// The last error of the first.
    pub error: String,
}

/// The desired-state stream of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamView {
    /// Whether it is open.
    pub connected: bool,
    /// Since when it is open.
    pub connected_since: Option<Stamp>,
    /// When it was last lost after being open.
    pub lost_at: Option<Stamp>,
    /// Since when it is down, or could not be opened, if so.
    pub down_since: Option<Stamp>,
    /// When the last message came.
    pub last_message_at: Option<Stamp>,
    /// gRPC code of its last end.
    pub last_end_code: Option<&'static str>,
    /// The words of its last end.
    pub last_end: Option<String>,
    /// When that was.
    pub ended_at: Option<Stamp>,
    /// Whether that was a message over the size limit.
    pub last_end_oversize: bool,
    /// Whether it has been open since, so that its last end is no reason any more.
    pub was_open_since: bool,
    /// States taken in.
    pub received: u64,
    /// States that were known.
    pub replayed: u64,
    /// States that were older than known.
    pub stale: u64,
    /// Messages that named no object.
    pub unknown: u64,
}

/// A state set aside, or another object in trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuarantineView {
    /// The object.
    pub object: String,
    /// What kind of trouble, one of a closed set.
    pub kind: &'static str,
    /// How bad that is.
    pub level: Level,
    /// The version that fails; none where there is none.
    pub version: Option<u64>,
    /// The field at fault.
    pub field: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What to do.
    pub remedy: Option<String>,
    /// The HTTP status of the API server's answer.
    pub code: Option<String>,
    /// Attempts so far.
    pub attempts: u32,
    /// Since when it fails.
    pub since: Stamp,
    /// When it is tried again.
    pub next_try: Stamp,
}

/// A pass over all objects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResyncView {
    /// When it ended.
    pub ended_at: Stamp,
    /// How long it took.
    pub seconds: f64,
    /// Questions asked.
    pub asked: usize,
    /// Questions without a usable answer.
    pub failed: usize,
    /// Objects the control plane does not know.
    pub unknown: usize,
}

pub(super) fn view(snapshot: &ControllerSnapshot, epoch: &Epoch) -> ControllerView {
    let stream = &snapshot.stream;
    let end = stream.last_end.as_ref();
    ControllerView {
        name: snapshot.controller.name(),
        listed: snapshot.is_listed,
        cursor: snapshot.cursor,
        newest: snapshot.highest,
        lag: snapshot.highest.saturating_sub(snapshot.cursor),
        unapplied: snapshot.unapplied,
        queued: snapshot.queued,
        to_upgrade: snapshot.to_upgrade,
        in_flight: snapshot.in_flight,
        blocked: snapshot.blocked,
        waiting_bytes: snapshot.waiting_bytes,
        stream: StreamView {
            connected: stream.opened_at.is_some(),
            connected_since: stream.opened_at.map(|at| epoch.at(at)),
            lost_at: stream.lost_at.map(|at| epoch.at(at)),
            down_since: stream.down_since.map(|at| epoch.at(at)),
            last_message_at: stream.last_item_at.map(|at| epoch.at(at)),
            last_end_code: end.map(|end| end.code),
            last_end: end.map(|end| end.message.clone()),
            ended_at: stream.ended_at.map(|at| epoch.at(at)),
            last_end_oversize: end.is_some_and(|end| end.is_oversize),
            was_open_since: stream.was_open_since,
            received: stream.received,
            replayed: stream.replayed,
            stale: stream.stale,
            unknown: stream.unknown,
        },
        breaker: breaker_name(snapshot.breaker),
        breaker_probe_at: match snapshot.breaker {
            BreakerState::Open { probe_at } => Some(epoch.at(probe_at)),
            BreakerState::Closed | BreakerState::Probing => None,
        },
        breaker_since: snapshot.failing_since.map(|at| epoch.at(at)),
        reports_undelivered: snapshot.undelivered,
        has_reports: snapshot.controller.has_reports(),
        reports_in_flight: snapshot.reports_in_flight,
        quarantine: snapshot
            .troubles
            .iter()
            .map(|trouble| quarantine(trouble, epoch))
            .collect(),
        quarantined: snapshot.trouble_count,
        on_hold: snapshot.on_hold,
        deletes_held: snapshot.held.iter().map(ToString::to_string).collect(),
        resync: snapshot.last_resync.as_ref().map(|pass| ResyncView {
            ended_at: epoch.at(pass.ended_at),
            seconds: pass.took.as_secs_f64(),
            asked: pass.asked,
            failed: pass.failed,
            unknown: pass.unknown,
        }),
        objects: snapshot.known.0,
        pods: snapshot.known.1,
        name_conflicts: snapshot.name_conflicts,
        kinds_missing: snapshot.kinds_missing.iter().map(|it| it.kind()).collect(),
        watches: watches(snapshot, epoch),
    }
}

fn watches(snapshot: &ControllerSnapshot, epoch: &Epoch) -> WatchesView {
    let broken = snapshot.broken_watches.iter();
    let mut broken: Vec<_> = broken
        .map(|(resource, broken)| BrokenWatchView {
            kind: resource.kind(),
            since: epoch.at(broken.since),
            refused: broken.is_refused,
            error: broken.error.clone(),
        })
        .collect();
    broken.sort_by_key(|watch| watch.since);
    WatchesView {
        kinds: snapshot.watched.iter().map(|it| it.kind()).collect(),
        broken,
        silence: snapshot.silence.as_ref().map(|silence| SilenceView {
            first: epoch.at(silence.first),
            last: epoch.at(silence.last),
            error: silence.error.clone(),
        }),
    }
}

pub(super) fn quarantine(trouble: &InTrouble, epoch: &Epoch) -> QuarantineView {
    QuarantineView {
        object: trouble.key.to_string(),
        kind: trouble.trouble.kind.name(),
        level: trouble_level(trouble.trouble.kind),
        version: (trouble.version > 0).then_some(trouble.version),
        field: trouble.trouble.field.clone(),
        reason: trouble.trouble.problem.clone(),
        remedy: trouble.trouble.remedy.clone(),
        // Where no answer came there is none.
        code: (trouble.trouble.code.filter(|code| *code > 0)).map(|code| code.to_string()),
        attempts: trouble.attempts,
        since: epoch.at(trouble.since),
        next_try: epoch.at(trouble.retry_at),
    }
}

/// How bad a kind of trouble is.
pub(super) const fn trouble_level(kind: TroubleKind) -> Level {
    match kind {
        TroubleKind::Quarantined | TroubleKind::Misconfigured => Level::Bad,
        TroubleKind::Transient | TroubleKind::Held => Level::Warn,
        TroubleKind::Waiting => Level::Busy,
    }
}

const fn breaker_name(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "closed",
        BreakerState::Open { .. } => "open",
        BreakerState::Probing => "probing",
    }
}
