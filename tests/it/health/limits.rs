//! Peers that say nothing, or half of something.

use std::time::Duration;

use krane_server::serve::Patience;
use tokio::io::AsyncWriteExt;

use super::{PATIENT, Server, ask, get, read_to_close};

const IMPATIENT: Patience = Patience {
    header: Duration::from_millis(100),
    ..PATIENT
};

#[tokio::test]
async fn a_header_that_does_not_come_closes_the_connection() {
    let server = Server::start(IMPATIENT).await;
    for start in [
        "",
        "G",
        "PRI * HTTP/2.0",
        "GET /health/live HTTP/1.1\r\nhost: kr",
    ] {
        let mut stream = server.connect().await;
        stream.write_all(start.as_bytes()).await.unwrap();
        let rest = read_to_close(&mut stream).await;
        let answer = String::from_utf8_lossy(&rest);
        assert!(
            rest.is_empty() || answer.starts_with("HTTP/1.1 408"),
            "{start:?}: {answer}"
        );
    }
    // The server is none the worse for it.
    let mut stream = server.connect().await;
    assert!(
        ask(&mut stream, &get("/health/live"))
            .await
            .contains("200 OK")
    );
    assert!(
        read_to_close(&mut stream).await.is_empty(),
        "an idle connection is closed too"
    );
}

#[tokio::test]
async fn bytes_that_are_no_http_are_answered_and_closed() {
    let server = Server::start(PATIENT).await;
    for start in [
        "\0\0\0\0\0\0\0\0\r\n\r\n",
        "PRI * HTTP/1.1\r\n\r\n",
        "\r\n\r\n\r\nnonsense\r\n\r\n",
    ] {
        let mut stream = server.connect().await;
        stream.write_all(start.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = String::from_utf8_lossy(&read_to_close(&mut stream).await).into_owned();
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{start:?}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_header_in_single_bytes_is_put_together() {
    let server = Server::start(PATIENT).await;
    let mut stream = server.connect().await;
    let request = get("/health/live");
    let (start, last) = request.as_bytes().split_at(request.len() - 1);
    for byte in start {
        stream.write_all(&[*byte]).await.unwrap();
    }
    let answer = ask(&mut stream, std::str::from_utf8(last).unwrap()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
