//! From an address to an HTTP/2 connection: TCP, TLS, the first frames.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper::client::conn::http2;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tower::ServiceExt as _;

use super::Timing;
use super::endpoint::{Endpoint, Tls};
use super::heard::Heard;

/// Of one stream; also what an unread stream may hold in the server.
const STREAM_WINDOW: u32 = 1 << 20;
/// Of all streams together. Larger than all windows of unread streams, or these stop the others.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Why no connection could be made, by step.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("the control plane cannot be reached: check control.url, DNS and network policies")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "no connection within {0:?}: check control.url and whether a firewall drops the packets"
    )]
    TimedOut(Duration),
    #[error("TLS failed: check the certificate and control.ca_file, or use http:// without TLS")]
    Tls(#[source] io::Error),
    #[error("the server does not offer HTTP/2 (ALPN h2): a proxy in between must pass HTTP/2")]
    NoHttp2,
    #[error("the HTTP/2 connection could not be started")]
    Handshake(#[source] hyper::Error),
    #[error("the task of the connection ended early")]
    Lost,
}

/// A connection, ready for requests.
#[derive(Clone)]
pub(super) struct Connection {
    pub sender: http2::SendRequest<Body>,
    /// Whether the server ever said anything.
    pub heard: watch::Receiver<bool>,
    /// Between the pings of this connection.
    pub ping_interval: Duration,
}

/// What moves the bytes of a connection; it ends with it.
pub(super) type Driver = http2::Connection<TokioIo<Heard<Box<dyn Io>>>, Body, TokioExecutor>;

pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Connects, with these pings.
pub(super) async fn dial(
    endpoint: &Endpoint,
    timing: &Timing,
    ping_interval: Duration,
) -> Result<(Connection, Driver), DialError> {
    let io = tokio::time::timeout(timing.connect, connect(endpoint))
        .await
        .map_err(|_| DialError::TimedOut(timing.connect))??;
    let (heard_tx, heard) = watch::channel(false);
    let (sender, driver) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(ping_interval)
        .keep_alive_timeout(timing.ping_timeout)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(Heard::new(io, heard_tx)))
        .await
        .map_err(DialError::Handshake)?;
    let connection = Connection {
        sender,
        heard,
        ping_interval,
    };
    Ok((connection, driver))
}

async fn connect(endpoint: &Endpoint) -> Result<Box<dyn Io>, DialError> {
    let tcp = connect_tcp(endpoint.origin.clone()).await?;
    match &endpoint.tls {
        None => Ok(Box::new(tcp)),
        Some(tls) => Ok(Box::new(connect_tls(tls, tcp).await?)),
    }
}

async fn connect_tcp(to: Uri) -> Result<tokio::net::TcpStream, DialError> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let tcp = connector
        .oneshot(to)
        .await
        .map_err(|error| DialError::Connect(error.into()))?;
    Ok(tcp.into_inner())
}

async fn connect_tls(
    tls: &Tls,
    tcp: tokio::net::TcpStream,
) -> Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>, DialError> {
    let stream = TlsConnector::from(Arc::clone(&tls.config))
        .connect(tls.server.clone(), tcp)
        .await
        .map_err(tls_error)?;
    if stream.get_ref().1.alpn_protocol() == Some(b"h2".as_slice()) {
        Ok(stream)
    } else {
        Err(DialError::NoHttp2)
    }
}

fn tls_error(error: io::Error) -> DialError {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let no_common = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    if cause == Some(&no_common) {
        DialError::NoHttp2
    } else {
        DialError::Tls(error)
    }
}
