//! The desired-state stream and full replays: opened, read, ended.

use std::time::Duration;

use krane_domain::desired::{State, StreamItem};
use krane_domain::ids::{Moment, ObjectKey};
use krane_domain::replay::Replay;
use krane_domain::trace::TraceContext;
use krane_ports::StreamEnd;

use super::Store;

/// A stream that has just opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamOpening {
    /// The version it goes on after.
    pub(crate) cursor: u64,
    /// How long there was no stream, if one was open before.
    pub(crate) silence: Duration,
}

/// A stream that has just ended, or could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamEnding {
    /// Whether it ended for another reason than the one before.
    pub(crate) is_news: bool,
    /// Whether it had been open.
    pub(crate) was_open: bool,
}

impl Store {
    /// Whether the stream has to be opened again at the cursor, which a restored control plane put
    /// back to 0. Asked once: the next answer is no.
    pub(crate) fn take_reconnect_request(&self) -> bool {
        self.with(|memory| std::mem::take(&mut memory.stream.must_reconnect))
    }

    /// Whether the control plane has answered on the present connection.
    pub(crate) fn is_stream_open(&self) -> bool {
        self.with(|memory| memory.stream.opened_at.is_some())
    }

    /// A connection is about to be made in place of any other. Returns the version to resume
    /// after.
    pub(crate) fn begin_stream_connect(&self, now: Moment) -> u64 {
        self.with(|memory| {
            if memory.stream.opened_at.take().is_some() {
                memory.stream.down_since.get_or_insert(now);
            }
            memory.backlog.cursor()
        })
    }

    /// The control plane answered: the stream is open.
    pub(crate) fn note_stream_opened(&self, now: Moment) -> StreamOpening {
        self.with(|memory| {
            memory.stream.opened_at = Some(now);
            memory.stream.was_open_since = true;
            memory.stream.down_since = None;
            let lost_at = memory.stream.lost_at.take();
            StreamOpening {
                cursor: memory.backlog.cursor(),
                silence: lost_at.map_or(Duration::ZERO, |lost| now.saturating_sub(lost)),
            }
        })
    }

    /// Takes in a message of the stream. Returns whether the stream was not known to be open: such
    /// a message opens it.
    pub(crate) fn receive_stream_item(&self, item: StreamItem, now: Moment) -> bool {
        self.with(|memory| {
            let is_first = memory.stream.opened_at.is_none();
            memory.receive(item, now);
            is_first
        })
    }

    /// The stream ended, or could not be opened.
    pub(crate) fn note_stream_ended(&self, end: &StreamEnd, now: Moment) -> StreamEnding {
        self.with(|memory| {
            let was_open = memory.stream.opened_at.take().is_some();
            if was_open {
                memory.stream.lost_at = Some(now);
            }
            let is_news = memory.stream.last_end.as_ref() != Some(end);
            memory.stream.last_end = Some(end.clone());
            memory.stream.ended_at = Some(now);
            memory.stream.down_since.get_or_insert(now);
            memory.stream.was_open_since = false;
            StreamEnding { is_news, was_open }
        })
    }

    /// krane itself closed the stream, because this process does not lead any more: it is not down.
    pub(crate) fn note_stream_closed(&self, now: Moment) {
        self.with(|memory| {
            if memory.stream.opened_at.take().is_some() {
                memory.stream.lost_at = Some(now);
            }
            memory.stream.down_since = None;
            memory.stream.was_open_since = false;
        });
    }

    /// Whether this version is the newest one of its object and its trace has not begun.
    pub(crate) fn lacks_trace(&self, key: &ObjectKey, version: u64) -> bool {
        self.with(|memory| memory.backlog.lacks_trace(key, version))
    }

    /// Begins the trace of this version, unless a newer one is desired or its trace has begun.
    pub(crate) fn begin_trace(&self, key: &ObjectKey, version: u64, trace: TraceContext) {
        self.with(|memory| memory.backlog.begin_trace(key, version, trace));
    }

    /// The version up to which a full replay has to read: as far as the stream has come. Nothing
    /// while the stream is still at its own first replay.
    pub(crate) fn replay_target(&self, now: Moment) -> Option<u64> {
        self.with(|memory| {
            let is_replayed = memory.is_replayed(now);
            is_replayed.then(|| memory.backlog.highest())
        })
    }

    /// Takes in a state that a full replay shows, and notes in `replay` what it was (D8). Returns
    /// whether there is work.
    pub(crate) fn receive_replayed(&self, replay: &mut Replay, state: State, now: Moment) -> bool {
        self.with(|memory| memory.receive_replayed(replay, state, now))
    }

    /// Applies the older states of a restored control plane, and asks for its stream to begin
    /// again at version 0 (D8).
    pub(crate) fn adopt_restored(&self, states: Vec<State>, now: Moment) {
        self.with(|memory| memory.adopt(states, now));
    }
}
