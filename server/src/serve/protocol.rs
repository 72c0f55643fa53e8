//! Tells HTTP/2 from HTTP/1.1 by the first bytes, and hands them on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// What every HTTP/2 connection starts with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Reads as much as it takes to know; the caller limits the time.
pub(super) async fn detect<S>(mut stream: S) -> io::Result<(Protocol, Rewound<S>)>
where
    S: AsyncRead + Unpin,
{
    let mut start = [0; PREFACE.len()];
    let mut length = 0;
    while length < start.len() && PREFACE.starts_with(start.get(..length).unwrap_or_default()) {
        match stream
            .read(start.get_mut(length..).unwrap_or_default())
            .await?
        {
            0 => break,
            read => length += read,
        }
    }
    let start = start.get(..length).unwrap_or_default().to_vec();
    let protocol = if start == PREFACE {
        Protocol::Http2
    } else {
        Protocol::Http1
    };
    Ok((protocol, Rewound { start, stream }))
}

/// A stream whose first bytes were read already and are read again.
pub(super) struct Rewound<S> {
    start: Vec<u8>,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.start.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        let length = this.start.len().min(buffer.remaining());
        let rest = this.start.split_off(length);
        buffer.put_slice(&std::mem::replace(&mut this.start, rest));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
