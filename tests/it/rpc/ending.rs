//! No idle and no slow peer holds up the end.

use std::time::Duration;

use krane_server::serve::Patience;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use super::{ANSWER, Server, message, post};
use crate::health::{PATIENT, read_to_close};

const DRAIN: Duration = Duration::from_millis(200);
const IMPATIENT: Patience = Patience {
    drain: DRAIN,
    ..PATIENT
};

#[tokio::test]
async fn idle_connections_of_either_version_end_at_once() {
    let mut server = Server::start(PATIENT).await;
    let mut client = server.grpc().await;
    client.decrypt_secrets_blob(message("d_1")).await.unwrap();
    let mut untouched = server.connect().await;
    server.shutdown.cancel();
    server.ended().await;
    read_to_close(&mut untouched).await;
}

/// The peer of HTTP/2 is one that reads nothing: it never hears that it should go.
#[tokio::test]
async fn half_a_body_and_a_deaf_connection_are_cut_off_in_time() {
    let mut server = Server::start(IMPATIENT).await;
    let mut half = server.connect().await;
    let request = post("d_1");
    half.write_all(&request.as_bytes()[..request.len() - 1])
        .await
        .unwrap();
    let mut deaf = server.connect().await;
    let settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    deaf.write_all(settings).await.unwrap();
    // Both are known to the server when an answer on a later connection has come.
    let mut whole = server.connect().await;
    assert!(
        crate::health::ask(&mut whole, &request)
            .await
            .ends_with(ANSWER)
    );

    let began = Instant::now();
    server.shutdown.cancel();
    server.ended().await;
    let took = began.elapsed();
    assert!(took < DRAIN + Duration::from_secs(5), "{took:?}");
    let answer = read_to_close(&mut half).await;
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    read_to_close(&mut deaf).await;
}

#[tokio::test]
async fn a_call_in_flight_is_answered_before_the_end() {
    let mut server = Server::start(PATIENT).await;
    let mut stream = server.connect().await;
    stream.write_all(post("wait").as_bytes()).await.unwrap();
    server.entered(1).await;
    server.shutdown.cancel();
    server.desk.released.add_permits(1);
    server.ended().await;
    let answer = String::from_utf8(read_to_close(&mut stream).await).unwrap();
    assert!(answer.ends_with(ANSWER), "{answer}");
}
