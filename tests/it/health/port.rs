//! (F31, D52) The port of the health endpoints alone.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use krane_server::health::port::serve;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Well, ask, get, read_to_close};

struct Port {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinSet<io::Result<()>>,
}

impl Port {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(serve(listener, Arc::new(Well), stop.clone()));
        Self {
            address,
            stop,
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn probe(&self, path: &str) -> String {
        ask(&mut self.connect().await, &get(path)).await
    }
}

#[tokio::test]
async fn it_answers_the_three_probes_and_nothing_else_and_keeps_no_connection() {
    let mut port = Port::open().await;
    for path in ["/health/live", "/health/ready", "/health/startup"] {
        let mut stream = port.connect().await;
        let answer = ask(&mut stream, &get(path)).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("{\"status\":\"ok\"}\n"), "{answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
        assert!(read_to_close(&mut stream).await.is_empty(), "it is closed");
    }
    for path in ["/metrics", "/", "/api/v1/health", "/health"] {
        let answer = port.probe(path).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    let mut stream = port.connect().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert!(
        !answer.starts_with(b"\0"),
        "it speaks no HTTP/2: {answer:?}"
    );
    port.stop.cancel();
    assert!(port.task.join_next().await.unwrap().unwrap().is_ok());
}

#[tokio::test]
async fn a_crowd_that_waits_and_says_nothing_keeps_no_probe_out() {
    let port = Port::open().await;
    let mut crowd = Vec::new();
    for number in 0..300 {
        let mut stream = port.connect().await;
        if number % 2 == 0 {
            stream
                .write_all(b"GET /health/live HTTP/1.1\r\nx: ")
                .await
                .unwrap();
        }
        crowd.push(stream);
    }
    for _ in 0..20 {
        let probe = timeout(Duration::from_secs(2), port.probe("/health/live"));
        let answer = probe.await.expect("in time");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let oldest = read_to_close(&mut crowd[0]).await;
    assert!(oldest.is_empty(), "its place went to another one");
}

/// The clock is stopped and jumps to the next deadline when nobody has anything to do.
#[tokio::test(start_paused = true)]
async fn a_request_that_takes_its_time_is_cut_off() {
    let port = Port::open().await;
    for start in [
        "",
        "GET /health/live HTTP/1.1\r\nx: ",
        "POST /health/live HTTP/1.1\r\nhost: k\r\ncontent-length: 9\r\n\r\n",
    ] {
        let mut stream = port.connect().await;
        stream.write_all(start.as_bytes()).await.unwrap();
        let began = tokio::time::Instant::now();
        let answer = read_to_close(&mut stream).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{start:?}");
        let took = began.elapsed();
        assert!(took <= Duration::from_secs(6), "{start:?}: {took:?}");
    }
}
