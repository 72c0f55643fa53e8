//! Senders with all the connections there are, and floods of scrapes.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use bytes::Bytes;
use krane_admin::metrics;
use krane_server::bounds::Bounds;
use krane_server::health;
use krane_server::serve::{App, ServeError, serve};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, Registry};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{PATIENT, Well, ask, get, read_to_close};

type Running = JoinSet<Result<(), ServeError>>;

async fn start(routes: Router, bounds: Bounds) -> (SocketAddr, Running) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = App::new(routes).with_bounds(bounds);
    let mut running = JoinSet::new();
    let stop = CancellationToken::new();
    running.spawn(serve(listener, app, None, PATIENT, stop));
    (address, running)
}

async fn connect_from(sender: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind((Ipv4Addr::new(127, 0, 3, sender), 0).into())
        .unwrap();
    socket.connect(to).await.unwrap()
}

async fn is_answered(sender: u8, to: SocketAddr, path: &str) -> String {
    let mut stream = connect_from(sender, to).await;
    let answer = ask(&mut stream, &get(path)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// (X2): no connection was accepted any more.
#[tokio::test]
async fn senders_that_have_all_connections_make_room_for_a_probe() {
    let bounds = Bounds {
        connections: 64,
        connections_per_sender: 16,
        ..Bounds::RPC
    };
    let (address, _server) = start(health::router(Arc::new(Well)), bounds).await;
    let mut open = Vec::new();
    for sender in 1..=4 {
        for number in 0..16 {
            let mut stream = connect_from(sender, address).await;
            // Some have begun a request, others have said nothing.
            let start = if number % 2 == 0 { "GET /hea" } else { "" };
            stream.write_all(start.as_bytes()).await.unwrap();
            open.push(stream);
        }
    }
    for sender in 101..=132 {
        is_answered(sender, address, "/health/live").await;
    }
    // What is not the busiest sender's stays.
    let mut kept = connect_from(200, address).await;
    for sender in 1..=4 {
        for _ in 0..16 {
            open.push(connect_from(sender, address).await);
        }
    }
    let answer = ask(&mut kept, &get("/health/live")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn metrics_port(registry: Registry) -> Router {
    metrics::router(registry, Arc::new(Well))
}

/// (X3): what one sender can make krane keep for it is little.
#[tokio::test]
async fn a_scraper_gets_eight_connections_of_sixteen_streams() {
    let (address, _server) = start(metrics_port(Registry::new()), Bounds::METRICS).await;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(0);
    let stream = connect_from(1, address).await;
    let (client, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let mut client = client.ready().await.unwrap();
    let head = http::Request::head("http://krane/health/live");
    let (answer, _) = client.send_request(head.body(()).unwrap(), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
    assert_eq!(client.current_max_send_streams(), 16);

    let mut open = Vec::new();
    for _ in 1..8 {
        open.push(connect_from(1, address).await);
    }
    let mut one_more = connect_from(1, address).await;
    assert!(read_to_close(&mut one_more).await.is_empty());
    is_answered(2, address, "/metrics").await;
}

/// (X3): more than that are not begun, and what refuses them leaves nothing lying.
#[tokio::test]
async fn answers_under_way_are_bounded_for_each_sender_on_every_path() {
    let bounds = Bounds::METRICS;
    let registry = Registry::new();
    krane::version::register_build_info(&registry).unwrap();
    let (address, _server) = start(metrics_port(registry), bounds).await;
    let (mut kept, mut tasks, mut full) = (Vec::new(), JoinSet::new(), 0);
    for path in ["/metrics", "/health/ready", "/health/live", "/nothing"] {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(0);
        let stream = connect_from(1, address).await;
        let (client, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
        tasks.spawn(connection);
        let mut client = client.ready().await.unwrap();
        for _ in 0..8 {
            let request = http::Request::get(format!("http://krane{path}"));
            let (answer, _) = client
                .send_request(request.body(()).unwrap(), true)
                .unwrap();
            let answer = answer.await.unwrap();
            if answer.status() == 503 {
                assert!(answer.body().is_end_stream(), "{path}: nothing to take");
                full += 1;
            }
            kept.push(answer.into_body());
            client = client.ready().await.unwrap();
        }
    }
    assert_eq!(full, 32 - bounds.requests.per_sender, "{bounds:?}");
    is_answered(2, address, "/metrics").await;
}

/// Counts how often it is asked.
struct Asked(IntGauge, Arc<AtomicUsize>);

impl Collector for Asked {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.collect()
    }
}

/// (X3): each of them had a rendering of its own.
#[tokio::test]
async fn a_flood_of_scrapes_shares_its_renderings() {
    let registry = Registry::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let gauge = IntGauge::new("krane_asked", "Of the test.").unwrap();
    let collector = Asked(gauge, Arc::clone(&asked));
    registry.register(Box::new(collector)).unwrap();
    let (address, _server) = start(metrics_port(registry), Bounds::METRICS).await;
    let began = Instant::now();
    for sender in 1..=100 {
        let answer = is_answered(sender, address, "/metrics").await;
        assert!(answer.contains("\nkrane_asked 0\n"), "{answer}");
    }
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap();
    let renderings = asked.load(Ordering::SeqCst);
    assert!((1..=9 + seconds).contains(&renderings), "{renderings}");
}
