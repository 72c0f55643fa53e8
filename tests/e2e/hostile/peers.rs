//! What answers at the address of the control plane, and is none.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::try_join_all;
use krane_testharness::{Failure, Outcome, World, eventually, limits};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::no_panic;
use crate::world;

#[derive(Clone, Copy, Debug)]
enum Peer {
    /// Takes what comes and never says a word.
    Silent,
    /// Breaks the connection at the first byte.
    Reset,
    /// A web page over HTTP/1.1.
    Html,
    /// A redirect over HTTP/1.1.
    Redirect,
    /// The first bytes of HTTP/2, then nonsense.
    Nonsense,
    /// A frame of 16 MiB that never ends.
    Endless,
}

async fn serve(mut stream: TcpStream, peer: Peer) {
    let mut buffer = [0; 4096];
    let _ = stream.read(&mut buffer).await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let answer: Vec<u8> = match peer {
        Peer::Silent => Vec::new(),
        Peer::Reset => {
            #[expect(deprecated, reason = "a reset is what the test is about")]
            let _ = stream.set_linger(Some(Duration::ZERO));
            return;
        }
        Peer::Html => {
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>"
                .to_vec()
        }
        Peer::Redirect => {
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/x\r\ncontent-length: 0\r\n\r\n"
                .to_vec()
        }
        Peer::Nonsense => [settings.to_vec(), vec![0xff; 400]].concat(),
        Peer::Endless => [settings.to_vec(), vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(),
    };
    let _ = stream.write_all(&answer).await;
    // Whatever else comes is read and forgotten.
    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}

/// unkeyed/unkey e8385fab29, PR #4782 (A06), D9, D26a: whatever answers instead of the control plane, the agent stays up, live and ready, says what is
/// wrong and does not hammer.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_answers_instead_of_the_control_plane_is_named_and_not_hammered() -> Outcome {
    let world = world().await?;
    let peers = [
        Peer::Silent,
        Peer::Reset,
        Peer::Html,
        Peer::Redirect,
        Peer::Nonsense,
        Peer::Endless,
    ];
    try_join_all(peers.map(|peer| stands(&world, peer)))
        .await
        .map(drop)
}

async fn stands(world: &World, peer: Peer) -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
    let count = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    tasks.spawn({
        let count = Arc::clone(&count);
        async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                connections.spawn(serve(stream, peer));
            }
        }
    });
    // It tries from its start on, and may have said so before it is ready.
    let started = Instant::now();
    let agent = world.agent().set("control.url", &url).start().await?;
    let said = eventually("the trouble is named", limits::LONG, async || {
        let lines = agent.log().lines().map_err(|error| error.to_string())?;
        lines
            .into_iter()
            .find(|line| line.text("message").contains("stream ended"))
            .ok_or_else(|| agent.log().tail(10))
    })
    .await
    .map_err(|failure| Failure::new(format!("{peer:?}: {failure}")))?;
    let seconds = started.elapsed().as_secs_f64();
    let connections = count.load(Ordering::Relaxed);
    println!(
        "{peer:?}: {connections} connections in {seconds:.1} s; {}: {}",
        said.text("code"),
        said.text("reason")
    );
    assert!(!said.text("reason").is_empty(), "{peer:?}: {said:?}");
    let (code, body) = agent.health("live").await?;
    assert_eq!(code, 200, "{peer:?}: {body}");
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let many = connections as f64;
    assert!(
        many <= 6.0 + 3.0 * seconds,
        "{peer:?}: {many} connections in {seconds} s"
    );
    no_panic(&agent)?;
    agent.stop().await
}
