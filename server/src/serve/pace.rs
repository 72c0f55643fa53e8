//! What a slow peer may cost: a request that does not end, an answer that nobody takes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;

use crate::connect;

/// A moment that something waits for only when it has nothing else to do.
struct Limit {
    at: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Limit {
    fn after(time: Duration) -> Self {
        Self {
            at: Instant::now() + time,
            timer: None,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        #[expect(clippy::disallowed_methods, reason = "polled beside what it limits")]
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        timer.as_mut().poll(context)
    }
}

/// The body of a request, which has to arrive within a time.
pub(super) struct InTime<B> {
    body: B,
    limit: Limit,
}

impl<B> InTime<B> {
    pub(super) fn new(body: B, time: Duration) -> Self {
        Self {
            body,
            limit: Limit::after(time),
        }
    }
}

impl<B> HttpBody for InTime<B>
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = self.get_mut();
        // The time first: a peer that is always ready with one more byte has no more of it.
        if this.limit.poll(context).is_ready() {
            let late = Status::deadline_exceeded("the request did not arrive in time");
            return Poll::Ready(Some(Err(late.into())));
        }
        let frame = Pin::new(&mut this.body).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The answer of a gRPC call, which ends with its caller's time.
pub(super) struct Until<B> {
    body: B,
    limit: Limit,
    is_over: bool,
}

impl<B> Until<B> {
    /// To its end, but no longer than until then.
    pub(super) const fn new(body: B, at: Instant) -> Self {
        Self {
            body,
            limit: Limit { at, timer: None },
            is_over: false,
        }
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Until<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        if this.limit.poll(context).is_ready() {
            this.is_over = true;
            let mut trailers = HeaderMap::new();
            let written = connect::too_late().add_header(&mut trailers);
            return Poll::Ready(written.ok().map(|()| Ok(Frame::trailers(trailers))));
        }
        Pin::new(&mut this.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that fails when its peer takes nothing of what is written for too long.
pub(super) struct Unstalled<S> {
    stream: S,
    patience: Duration,
    limit: Option<Limit>,
}

impl<S> Unstalled<S> {
    pub(super) const fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            limit: None,
        }
    }

    fn limited<T>(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.limit = None;
            return progress;
        }
        let limit = self
            .limit
            .get_or_insert_with(|| Limit::after(self.patience));
        limit.poll(context).map(|()| {
            let text = "the peer does not read";
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstalled<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstalled<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.limited(context, progress)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.limited(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_flush(context);
        this.limited(context, progress)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let progress = Pin::new(&mut this.stream).poll_shutdown(context);
        this.limited(context, progress)
    }
}
