//! Peers that send or take too slowly.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get as on_get;
use futures::stream;
use krane_server::serve::{App, Patience, serve};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::{ANSWER, DECRYPT, Server, post};
use crate::health::{PATIENT, ask, get, read_to_close};

const IMPATIENT: Patience = Patience {
    body: Duration::from_millis(100),
    write: Duration::from_millis(100),
    ..PATIENT
};

/// All but the last byte of a request.
fn half() -> String {
    let mut request = post("d_1");
    request.pop();
    request
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let server = Server::start(IMPATIENT).await;
    let mut stream = server.connect().await;
    let answer = ask(&mut stream, &half()).await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert!(
        answer.contains(r#"{"code":"deadline_exceeded","#),
        "{answer}"
    );
    assert!(
        read_to_close(&mut stream).await.is_empty(),
        "what comes late is no request"
    );
    let mut stream = server.connect().await;
    assert!(ask(&mut stream, &post("d_1")).await.ends_with(ANSWER));
}

#[tokio::test]
async fn a_message_of_grpc_that_does_not_come_is_given_up() {
    let server = Server::start(IMPATIENT).await;
    let (mut client, connection) = h2::client::handshake(server.connect().await).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let request = http::Request::post(format!("http://krane{DECRYPT}"));
    let request = request
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let (answer, mut body) = client.send_request(request, false).unwrap();
    body.send_data(Bytes::from_static(b"\0\0\0\0\x09half"), false)
        .unwrap();
    let answer = answer.await.unwrap();
    let status = Status::from_header_map(answer.headers()).unwrap();
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

/// Says that it was dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A server with an answer that never ends.
async fn endless() -> (TcpStream, Arc<Notify>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let dropped = Arc::new(Notify::new());
    let notify = Arc::clone(&dropped);
    let route = on_get(async move || {
        let chunks = stream::unfold(Dropped(notify), async |dropped| {
            let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
            Some((Ok::<_, std::convert::Infallible>(chunk), dropped))
        });
        Body::from_stream(chunks)
    });
    let app = App::new(Router::new().route("/endless", route));
    let mut server = JoinSet::new();
    server.spawn(async move {
        let _ = serve(listener, app, None, IMPATIENT, CancellationToken::new()).await;
    });
    (TcpStream::connect(address).await.unwrap(), dropped, server)
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_given_up() {
    let (mut stream, dropped, _server) = endless().await;
    stream.write_all(get("/endless").as_bytes()).await.unwrap();
    dropped.notified().await;
}

#[tokio::test]
async fn an_answer_over_http2_that_nobody_takes_is_given_up() {
    let (stream, dropped, _server) = endless().await;
    let mut builder = h2::client::Builder::new();
    // The windows are open wide; it is the connection that nobody reads.
    builder
        .initial_window_size(1 << 30)
        .initial_connection_window_size(1 << 30);
    let (client, mut connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
    let mut client = client.ready().await.unwrap();
    let request = http::Request::get("http://krane/endless").body(()).unwrap();
    let (mut answer, _) = client.send_request(request, true).unwrap();
    // Drives the connection until the answer begins, and never again.
    tokio::select! {
        answer = &mut answer => assert_eq!(answer.unwrap().status(), 200),
        ended = &mut connection => panic!("{ended:?}"),
    }
    dropped.notified().await;
}
