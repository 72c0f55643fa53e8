//! How a server ends: at once for the idle, in time for the busy, never late.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get as on_get;
use krane_server::serve::Patience;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::{PATIENT, Server, ask, get, read_to_close};
use crate::log::Listening;

const IMPATIENT: Patience = Patience {
    drain: Duration::from_millis(100),
    ..PATIENT
};

/// A route that says it was entered and then waits for `release`.
fn slow() -> (Router, Arc<Notify>, Arc<Notify>) {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, wait) = (entered.clone(), release.clone());
    let handler = async move || {
        inside.notify_one();
        wait.notified().await;
        "done"
    };
    (
        Router::new().route("/slow", on_get(handler)),
        entered,
        release,
    )
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_end() {
    let mut server = Server::start(PATIENT).await;
    let mut untouched = server.connect().await;
    let mut kept = server.connect().await;
    ask(&mut kept, &get("/health/live")).await;
    let endpoint = Endpoint::from_shared(format!("http://{}", server.address)).unwrap();
    let mut watcher = HealthClient::new(endpoint.connect().await.unwrap());
    let mut changes = watcher
        .watch(HealthCheckRequest::default())
        .await
        .unwrap()
        .into_inner();
    let first = changes.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);

    server.shutdown.cancel();
    server.ended().await.unwrap();
    assert!(read_to_close(&mut untouched).await.is_empty());
    assert!(read_to_close(&mut kept).await.is_empty());
    let last = changes.message().await.unwrap().unwrap();
    assert_eq!(last.status(), ServingStatus::NotServing);
    assert!(
        changes.message().await.unwrap().is_none(),
        "the stream ends by itself"
    );
}

#[tokio::test]
async fn a_running_request_is_answered_before_the_end() {
    let (route, entered, release) = slow();
    let mut server = Server::with(PATIENT, route, None).await;
    let mut stream = server.connect().await;
    stream.write_all(get("/slow").as_bytes()).await.unwrap();
    entered.notified().await;
    server.shutdown.cancel();
    release.notify_one();
    server.ended().await.unwrap();
    let answer = String::from_utf8(read_to_close(&mut stream).await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"),
        "{answer}"
    );
}

/// unkeyed/unkey f97dba546d, 5d4bd77c30 (A65): a server that refuses to stop holds up the exit, and
/// is logged three times.
#[tokio::test]
async fn a_request_that_does_not_end_is_cut_off() {
    let log = Listening::to(tracing::Level::INFO);
    let (route, entered, _release) = slow();
    let mut server = Server::with(IMPATIENT, route, None).await;
    let mut stream = server.connect().await;
    stream.write_all(get("/slow").as_bytes()).await.unwrap();
    entered.notified().await;
    let mut half = server.connect().await;
    half.write_all(b"GET /health/live HTTP/1.1\r\nhost: kr")
        .await
        .unwrap();
    server.shutdown.cancel();
    server.ended().await.unwrap();
    assert!(read_to_close(&mut stream).await.is_empty());
    read_to_close(&mut half).await;
    let log = log.text();
    assert_eq!(log.matches("cut off").count(), 1, "{log}");
}

#[tokio::test]
async fn no_connection_outlives_the_future_of_the_server() {
    let (route, entered, release) = slow();
    let mut server = Server::with(PATIENT, route, None).await;
    let mut stream = server.connect().await;
    stream.write_all(get("/slow").as_bytes()).await.unwrap();
    entered.notified().await;
    server.task.abort_all();
    assert!(
        server
            .task
            .join_next()
            .await
            .unwrap()
            .unwrap_err()
            .is_cancelled()
    );
    assert!(read_to_close(&mut stream).await.is_empty());
    // The handler is gone: nobody else holds the notification it waited for.
    assert_eq!(Arc::strong_count(&release), 1);
}

#[tokio::test]
async fn stopping_twice_is_stopping_once() {
    let mut server = Server::start(PATIENT).await;
    server.shutdown.cancel();
    server.shutdown.cancel();
    server.ended().await.unwrap();
    assert!(
        tokio::net::TcpStream::connect(server.address)
            .await
            .is_err()
    );
}
