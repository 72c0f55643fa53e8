//! What a controller knows of its stream, its watches and its passes.

use std::time::Duration;

use krane_domain::ids::Moment;

/// Since when a kind cannot be watched, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenWatch {
    /// Since when.
    pub since: Moment,
    /// Whether the API server answers, and says that krane may not.
    pub is_refused: bool,
    /// The last error.
    pub error: String,
}

/// Whether krane itself reads the stream: a silence counts only while it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StreamReading {
    /// It always did.
    #[default]
    Steady,
    /// The last message left no room for another.
    Paused,
    /// There is room again, as was seen at this moment.
    Since(Moment),
}

/// What is known about the desired-state stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamMemory {
    /// Since when it is open, if it is.
    pub opened_at: Option<Moment>,
    /// When it was last lost after being open.
    pub lost_at: Option<Moment>,
    /// Since when it is down, or could not be opened, if so.
    pub down_since: Option<Moment>,
    /// When the last message came.
    pub last_item_at: Option<Moment>,
    /// Whether it has replayed everything since the controller started.
    pub(super) was_replayed: bool,
    /// Whether krane itself reads it.
    pub(super) reading: StreamReading,
    /// How it last ended, or could not be opened …
    pub last_end: Option<krane_ports::StreamEnd>,
    /// … and when.
    pub ended_at: Option<Moment>,
    /// Whether it has been open since then, so that the end is no reason any more.
    pub was_open_since: bool,
    /// Messages that named no object.
    pub unknown: u64,
    /// States that were older than known.
    pub stale: u64,
    /// States that were known.
    pub replayed: u64,
    /// States taken in.
    pub received: u64,
    /// States of a restored control plane, taken in though their version is lower than known.
    pub adopted: u64,
    /// Whether it has to be opened anew at the cursor, which began again at 0.
    pub must_reconnect: bool,
}

/// How a pass over all objects went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResyncSummary {
    /// When it ended.
    pub ended_at: Moment,
    /// How long it took.
    pub took: Duration,
    /// Questions asked.
    pub asked: usize,
    /// Questions without a usable answer.
    pub failed: usize,
    /// Objects the control plane does not know.
    pub unknown: usize,
}

/// Why a list or watch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchFailure {
    /// Whether the API server answers, and says that krane may not.
    pub is_refused: bool,
    /// The words.
    pub text: String,
}
