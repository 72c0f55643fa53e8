//! The port of the health endpoints alone: plain HTTP/1.1 for probes, which nobody can hold up (D52).
//!
//! A probe has one short request and is gone. So every connection ends after its answer, or after a
//! few seconds at the latest, and whoever comes when all places are taken gets that of the oldest:
//! a crowd that only waits keeps no probe out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{HealthView, router};

/// Connections at once.
pub(crate) const PROBES: usize = 64;
/// From a connection to its end. A kubelet waits less.
const LIMIT: Duration = Duration::from_secs(5);
/// Bytes of the header of a request; the least that hyper takes.
const LARGEST_HEADER: usize = 8 * 1024;
/// Pause after the system refused a connection, for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers `/health/*` and nothing else until `stop`; connections under way are cut then.
///
/// # Errors
///
/// When the listening socket is of no more use.
pub async fn serve(
    listener: TcpListener,
    view: Arc<dyn HealthView>,
    stop: CancellationToken,
) -> io::Result<()> {
    let router = router(view);
    let mut connections = JoinSet::new();
    let mut oldest_first: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            Some(_) = connections.join_next(), if !connections.is_empty() => {
                oldest_first.retain(|connection| !connection.is_finished());
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if oldest_first.len() >= PROBES
                        && let Some(oldest) = oldest_first.pop_front()
                    {
                        oldest.abort();
                    }
                    let answer = answer(stream, router.clone());
                    oldest_first.push_back(connections.spawn(async move {
                        let _ = timeout(LIMIT, answer).await;
                    }));
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "a health probe could not be accepted");
                    let _ = timeout(ACCEPT_PAUSE, stop.cancelled()).await;
                }
            },
        }
    }
}

/// One request, one answer.
async fn answer(stream: TcpStream, router: Router) {
    let service = service_fn(move |request: Request<Incoming>| {
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(LIMIT)
        .max_buf_size(LARGEST_HEADER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a health probe ended");
    }
}
