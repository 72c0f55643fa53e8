//! Answers under way: how long a peer may take for one, and until when it counts.
//!
//! A peer of HTTP/2 may give an answer no window for as long as it likes. Nothing in hyper or h2
//! ends that, and a timer in the body of the answer is not asked meanwhile. So the time is watched
//! outside of it: by the task of the stream, or over HTTP/1.1 by a task beside the connection. What
//! h2 has taken over and not written yet still counts: the bytes themselves say when they are gone.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tonic::Status;

use super::Patience;
use super::crowd::Busy;
use crate::room::{Place, Room};

/// In the extensions of an answer that has no end of its own: a watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StaysOpen;

/// How far an answer has come.
#[derive(Debug)]
pub(super) struct Progress {
    state: Mutex<State>,
    changed: Notify,
    patience: Patience,
}

#[derive(Debug)]
struct State {
    /// When it has to have been taken; an answer that stays open has no such moment.
    end: Option<Instant>,
    /// What hyper and h2 have and did not write yet, oldest first: its number, and since when.
    handed: VecDeque<(u64, Instant)>,
    next: u64,
    is_over: bool,
}

/// A request from its header to the last byte of its answer. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    progress: Arc<Progress>,
    /// Where the bytes of its answer count, and as whose.
    answers: (Room, Option<IpAddr>),
    _place: Place,
    _busy: Busy,
}

impl UnderWay {
    /// Begins now; its answer has to begin within a time.
    pub(super) fn new(
        place: Place,
        answers: (Room, Option<IpAddr>),
        busy: Busy,
        patience: Patience,
    ) -> Self {
        let state = State {
            end: Some(Instant::now() + patience.answer),
            handed: VecDeque::new(),
            next: 0,
            is_over: false,
        };
        Self {
            progress: Arc::new(Progress {
                state: Mutex::new(state),
                changed: Notify::new(),
                patience,
            }),
            answers,
            _place: place,
            _busy: busy,
        }
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// The answer, with its time limit from here on.
    pub(super) fn answer(self, response: Response) -> Response {
        let is_event_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let stays_open = is_event_stream || response.extensions().get::<StaysOpen>().is_some();
        self.progress.state.lock().end =
            (!stays_open).then(|| Instant::now() + self.progress.patience.take);
        response.map(|body| {
            Body::new(Answer {
                body,
                under_way: Arc::new(self),
            })
        })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.progress.state.lock().is_over = true;
        self.progress.changed.notify_one();
    }
}

impl Progress {
    /// When its peer has had enough time; nothing when there is nothing to wait for.
    fn due(&self) -> Option<Instant> {
        let state = self.state.lock();
        let oldest = state.handed.front();
        let due = state
            .end
            .or_else(|| oldest.map(|(_, since)| *since + self.patience.write));
        due.filter(|_| !state.is_over)
    }

    fn hand(&self) -> u64 {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.handed.push_back((number, Instant::now()));
        number
    }

    fn written(&self, number: u64) {
        let mut state = self.state.lock();
        state.handed.retain(|(handed, _)| *handed != number);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits until nothing of it is here any more, for as long as its peer may take; whether that
    /// was in time.
    pub(super) async fn is_taken(&self) -> bool {
        loop {
            let (due, is_over) = (self.due(), self.state.lock().is_over);
            match due {
                _ if is_over => return true,
                Some(due) if due <= Instant::now() => return false,
                Some(due) => {
                    let _ = timeout_at(due, self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// Waits until h2 has let go of what it was handed, after hyper has; whether it did in time.
    pub(super) async fn is_let_go(&self) -> bool {
        let is_over = async {
            while !self.state.lock().is_over {
                self.changed.notified().await;
            }
        };
        timeout(self.patience.write, is_over).await.is_ok()
    }
}

/// Runs the task of a stream; drops it, which resets the stream, when its peer has had enough time.
/// The progress is there from the first poll on.
pub(super) async fn in_time(
    stream: impl Future<Output = ()>,
    progress: impl Fn() -> Option<Arc<Progress>>,
) {
    let mut stream = pin!(stream);
    #[expect(clippy::disallowed_methods, reason = "polled beside what it limits")]
    let mut timer = pin!(sleep_until(Instant::now()));
    std::future::poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let Some(due) = progress().and_then(|progress| progress.due()) else {
                // Only the stream's own task moves it on, by which this is polled again.
                return Poll::Pending;
            };
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}

/// The body of an answer.
struct Answer {
    body: Body,
    under_way: Arc<UnderWay>,
}

/// A part of an answer, until it was written or thrown away.
struct Handed {
    data: Bytes,
    number: u64,
    /// What it takes of its sender's bytes. The answer itself takes none: it may have no end.
    _bytes: Place,
    under_way: Arc<UnderWay>,
}

impl AsRef<[u8]> for Handed {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        self.under_way.progress.written(self.number);
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        let data = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref());
        let length = data.map_or(0, Bytes::len);
        let (room, peer) = &this.under_way.answers;
        let mut bytes = room.none_yet(*peer);
        if !bytes.grow(length) {
            let text = "too much is waiting to be taken by this sender";
            return Poll::Ready(Some(Err(axum::Error::new(Status::unavailable(text)))));
        }
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|data| {
                    let handed = Handed {
                        data,
                        number: this.under_way.progress.hand(),
                        _bytes: bytes,
                        under_way: Arc::clone(&this.under_way),
                    };
                    Bytes::from_owner(handed)
                })
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
