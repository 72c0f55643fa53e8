//! The servers over real sockets: protocols on one port, limits, and how they end.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod crowds;
mod ending;
mod limits;
mod port;
mod protocols;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use krane_server::health::{self, CheckState, HealthView, Readiness, grpc_health};
use krane_server::serve::{App, Patience, ServeError, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

/// A health view that tests change.
#[derive(Default)]
struct Shown {
    ready: AtomicBool,
}

impl HealthView for Shown {
    fn live(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        let checks = BTreeMap::from([("vault".to_owned(), CheckState::Fail)]);
        Readiness {
            ready: self.ready.load(Ordering::SeqCst),
            checks,
            ..Readiness::default()
        }
    }
}

/// A process that is ready and stays so.
pub(crate) struct Well;

impl HealthView for Well {
    fn live(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        Readiness {
            started: true,
            ready: true,
            ..Readiness::default()
        }
    }
}

/// A server on a free port of this machine.
struct Server {
    address: SocketAddr,
    shown: Arc<Shown>,
    shutdown: CancellationToken,
    task: JoinSet<Result<(), ServeError>>,
}

pub(crate) const PATIENT: Patience = Patience {
    header: Duration::from_secs(20),
    body: Duration::from_secs(20),
    answer: Duration::from_secs(20),
    write: Duration::from_secs(20),
    take: Duration::from_secs(20),
    drain: Duration::from_secs(20),
};

impl Server {
    async fn start(patience: Patience) -> Self {
        Self::with(patience, Router::new(), None).await
    }

    async fn with(
        patience: Patience,
        more: Router,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shown = Arc::new(Shown {
            ready: AtomicBool::new(true),
        });
        let shutdown = CancellationToken::new();
        let grpc = grpc_health(shown.clone(), ["krane.v1.SecretsService"], shutdown.clone());
        let http = health::router(shown.clone()).merge(more);
        let app = App::new(http).with_grpc(Routes::new(grpc));
        let mut task = JoinSet::new();
        task.spawn(serve(listener, app, tls, patience, shutdown.clone()));
        Self {
            address,
            shown,
            shutdown,
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Waits until the server has ended by itself.
    async fn ended(&mut self) -> Result<(), ServeError> {
        self.task.join_next().await.unwrap().unwrap()
    }
}

/// Sends `request` and reads one answer of HTTP/1.1, to the end of its body.
pub(crate) async fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if length.is_some_and(|length| body.len() >= length.parse().unwrap()) {
                return text;
            }
        }
        assert_ne!(
            stream.read_buf(&mut answer).await.unwrap(),
            0,
            "closed after {text:?}"
        );
    }
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: krane\r\n\r\n")
}

/// Reads until the server closes.
pub(crate) async fn read_to_close(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset is a close too.
    let _ = stream.read_to_end(&mut rest).await;
    rest
}
