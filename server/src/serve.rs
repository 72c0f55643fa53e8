//! One HTTP server: HTTP/1.1, h2c and gRPC on one listener, bounded at both ends of its life.
//!
//! It owns every task it starts: when its future is dropped, all connections are cut.

mod answers;
mod app;
mod crowd;
mod grpc;
mod pace;
mod protocol;
mod tasks;
mod visit;

use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::bounds::LEAVING;
pub(super) use answers::StaysOpen;
pub use app::App;
use crowd::Crowd;
use pace::Unstalled;
use protocol::{Protocol, detect};
use tasks::OwnedTasks;
use visit::{Rooms, Visit};

/// Bytes of the header of one request, in either version of HTTP.
const LARGEST_HEADER: u16 = 16 * 1024;
/// Pause after the system refused a connection, for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// An HTTP/2 peer that is silent for the first is asked, and gone after the second.
const PING_AFTER: Duration = Duration::from_mins(1);
const PING_LIMIT: Duration = Duration::from_secs(20);

/// How long a server waits for its peers.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From the connection, or the end of a request, to the end of the next request's header; over
    /// HTTP/2, how long a connection may have no request.
    pub header: Duration,
    /// From the header of a request to the end of its body.
    pub body: Duration,
    /// From the header of a request to the header of its answer: longer than `body` and the longest
    /// call together.
    pub answer: Duration,
    /// How long a peer may take nothing of what is written; of an answer that stays open, for how
    /// long it may have a part before it.
    pub write: Duration,
    /// From the header of an answer to its end, unless it stays open.
    pub take: Duration,
    /// From the stop signal to the end of the last request; what is left is cut off.
    pub drain: Duration,
}

impl Patience {
    /// With this time to end.
    #[must_use]
    pub const fn draining(drain: Duration) -> Self {
        Self {
            header: Duration::from_secs(30),
            body: Duration::from_secs(30),
            answer: Duration::from_secs(90),
            write: Duration::from_secs(30),
            take: Duration::from_secs(30),
            drain,
        }
    }
}

/// Who sent a request: an extension of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// Why a server ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listening socket is of no more use.
    #[error("the listening socket failed")]
    Accept(#[source] io::Error),
}

/// Serves until `shutdown`, then lets running requests end within [`Patience::drain`].
pub async fn serve(
    listener: TcpListener,
    app: App,
    tls: Option<Arc<ServerConfig>>,
    patience: Patience,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let tls = tls.map(TlsAcceptor::from);
    let bounds = app.bounds();
    let (crowd, rooms) = (Crowd::new(bounds), Rooms::new(bounds));
    // Beyond the bound one goes for each that comes; those that go take a moment.
    let most = bounds.connections + LEAVING;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < most => match accepted {
                Ok((stream, address)) => {
                    // A socket of both families shows a peer of the older one as one of the newer.
                    let peer = Peer(address.ip().to_canonical());
                    let Some(entry) = crowd.enter(peer.0) else {
                        continue;
                    };
                    let tasks = OwnedTasks::default();
                    let runner = tasks.runner();
                    let visit = Visit::new(peer, &rooms, &entry, patience, runner);
                    let (app, tls, shutdown) = (app.clone(), tls.clone(), shutdown.clone());
                    let served = connection(stream, (visit, tasks), app, tls, patience, shutdown);
                    connections.spawn(async move {
                        tokio::select! {
                            () = served => {}
                            () = entry.has_to_go() => {}
                        }
                        drop(entry);
                    });
                }
                Err(error) if is_fatal(&error) => return Err(ServeError::Accept(error)),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    // A loop without a pause would spin until descriptors are free again.
                    let _ = timeout(ACCEPT_PAUSE, shutdown.cancelled()).await;
                }
            },
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if timeout(patience.drain, drained).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "connections were cut off, they did not end"
        );
        connections.shutdown().await;
    }
    Ok(())
}

fn is_fatal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::NotFound | io::ErrorKind::Unsupported
    )
}

async fn connection(
    stream: TcpStream,
    visit: (Arc<Visit>, OwnedTasks),
    app: App,
    tls: Option<TlsAcceptor>,
    patience: Patience,
    shutdown: CancellationToken,
) {
    // Answers are small and wait for nothing.
    let _ = stream.set_nodelay(true);
    match tls {
        None => conversation(stream, visit, app, patience, shutdown).await,
        Some(tls) => {
            let handshake = timeout(patience.header, tls.accept(stream));
            let stream = tokio::select! {
                () = shutdown.cancelled() => return,
                stream = handshake => stream,
            };
            match stream {
                Ok(Ok(stream)) => conversation(stream, visit, app, patience, shutdown).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            }
        }
    }
}

async fn conversation<S>(
    stream: S,
    visit: (Arc<Visit>, OwnedTasks),
    app: App,
    patience: Patience,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let detected = tokio::select! {
        () = shutdown.cancelled() => return,
        detected = timeout(patience.header, detect(stream)) => detected,
    };
    let Ok(Ok((protocol, stream))) = detected else {
        return;
    };
    let stream = TokioIo::new(Unstalled::new(stream, patience.write));
    let (visit, tasks) = visit;
    let streams = visit.streams;
    let service = app.into_service(visit, patience.body);
    let served = async {
        match protocol {
            Protocol::Http1 => {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(patience.header)
                    .max_buf_size(usize::from(LARGEST_HEADER))
                    .serve_connection(stream, service);
                let stop = shutdown.cancelled();
                until(connection, http1::Connection::graceful_shutdown, stop).await
            }
            Protocol::Http2 => {
                let connection = http2::Builder::new(tasks.runner())
                    .timer(TokioTimer::new())
                    .max_concurrent_streams(streams)
                    .max_header_list_size(u32::from(LARGEST_HEADER))
                    .keep_alive_interval(PING_AFTER)
                    .keep_alive_timeout(PING_LIMIT)
                    .serve_connection(stream, service);
                let stop = async {
                    tokio::select! {
                        () = shutdown.cancelled() => {}
                        () = tasks.idle_for(patience.header) => {}
                    }
                };
                until(connection, http2::Connection::graceful_shutdown, stop).await
            }
        }
    };
    tokio::select! {
        result = served => if let Err(error) = result {
            tracing::debug!(%error, "connection ended");
        },
        () = tasks.is_stuck() => tracing::debug!("connection cut: an answer was not taken in time"),
    }
}

/// Lets a connection go on until it ends; from `stop` on it takes no more requests.
async fn until<C: Future>(
    connection: C,
    finish: impl FnOnce(Pin<&mut C>),
    stop: impl Future<Output = ()>,
) -> C::Output {
    let mut connection = pin!(connection);
    tokio::select! {
        result = connection.as_mut() => return result,
        () = stop => finish(connection.as_mut()),
    }
    connection.await
}
