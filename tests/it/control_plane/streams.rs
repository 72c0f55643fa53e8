//! Streams of desired states: how they open, what they carry, how they end.

use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use krane_control_plane::Timing;
use krane_domain::desired::{Change, StreamItem};
use krane_domain::ids::ObjectKey;
use krane_ports::ControlPlane as _;
use krane_proto::ctrl::v1::{
    ApplyDeployment, DeploymentState, HeartbeatResponse, deployment_state,
};
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::server::{Disturbance, Server, Stream};
use super::{Events, access, delete, plane, within};

/// An open stream, from both sides.
async fn open(server: &mut Server) -> (Events, Stream) {
    let plane = plane(&access(server.url()));
    let mut events = Events::of(&plane, 0).await;
    let stream = async {
        let mut stream = server.call().await.open();
        stream.message(delete("first", 1)).await;
        stream
    };
    let ((), stream) = tokio::join!(events.opened(), stream);
    assert_eq!(events.state().await.version, 1);
    (events, stream)
}

/// The server of the original control plane sends nothing at all before its first event.
#[tokio::test]
async fn a_stream_without_headers_is_open_after_a_second() {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let begin = Instant::now();
    let mut events = Events::of(&plane, 7).await;
    let (call, ()) = tokio::join!(server.call(), events.opened());
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_secs(1), "open after {waited:?}");
    assert!(waited < Duration::from_secs(3), "open after {waited:?}");

    let mut stream = call.open();
    stream.message(delete("one", 8)).await;
    assert_eq!(events.state().await.version, 8);
}

/// The kernel of a frozen host accepts connections; nobody will ever answer on them.
#[tokio::test]
async fn a_server_that_never_says_a_word_is_not_open() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut access = access(format!("http://{}", listener.local_addr().unwrap()));
    access.timing = Timing {
        open: Duration::from_millis(50),
        ping_interval: Duration::from_millis(300),
        ping_timeout: Duration::from_millis(300),
        ..Timing::default()
    };
    let end = Events::of(&plane(&access), 0).await.ended().await;
    assert_eq!(end.code, "unavailable", "{}", end.message);
}

#[tokio::test]
async fn states_come_in_order_with_version_and_size() {
    let mut server = Server::start().await;
    let (mut events, mut stream) = open(&mut server).await;
    for version in 2..50 {
        stream.message(delete("one", version)).await;
    }
    for version in 2..50 {
        let state = events.state().await;
        assert_eq!(state.key, ObjectKey::new("ns", "one"));
        assert_eq!(state.change, Ok(Change::Delete));
        assert_eq!(
            (state.version, state.size),
            (version, delete("one", version).len())
        );
    }
}

#[tokio::test]
async fn garbage_costs_only_itself() {
    let mut server = Server::start().await;
    let (mut events, mut stream) = open(&mut server).await;
    // No message at all; apply of ns/one with an image that is no text; no case; an unknown case.
    stream.message(b"\xff\xff\xff\xff").await;
    stream
        .message(b"\x0a\x0d\x0a\x02ns\x12\x03one\x3a\x02\xff\xfe\x18\x07")
        .await;
    stream.message(b"\x18\x08").await;
    stream.message(b"\x22\x02\x0a\x00\x18\x09").await;
    stream.message(delete("", 10)).await;
    stream.message(delete("one", 11)).await;

    let unnamed = |item| match item {
        StreamItem::Unnamed { version, reason } => (version, reason),
        StreamItem::State(state) => panic!("{state:?} names something"),
    };
    assert_eq!(unnamed(events.item().await).0, 0);
    let state = events.state().await;
    assert_eq!((state.key, state.version), (ObjectKey::new("ns", "one"), 7));
    assert_eq!(state.change.unwrap_err().field, "message");
    assert_eq!(unnamed(events.item().await).0, 8);
    assert_eq!(unnamed(events.item().await).0, 9);
    assert_eq!(
        unnamed(events.item().await),
        (10, "its k8s_name is empty".to_owned())
    );
    assert_eq!(events.state().await.version, 11);
}

fn large(megabytes: usize, version: u64) -> Vec<u8> {
    let apply = ApplyDeployment {
        k8s_namespace: "ns".to_owned(),
        k8s_name: "large".to_owned(),
        encrypted_environment_variables: vec![b'x'; megabytes << 20].into(),
        ..ApplyDeployment::default()
    };
    let state = Some(deployment_state::State::Apply(apply));
    DeploymentState { version, state }.encode_to_vec()
}

/// tursodatabase/libsql#337, grpc/grpc-rust#1353 (B41): a default limit ended every stream.
#[tokio::test]
async fn five_megabytes_pass_and_what_follows_too() {
    let mut server = Server::start().await;
    let (mut events, mut stream) = open(&mut server).await;
    let sent = async {
        stream.message(large(5, 5)).await;
        stream.message(delete("one", 6)).await;
        stream
    };
    let (versions, _stream) = tokio::join!(
        async { [events.state().await.version, events.state().await.version] },
        sent
    );
    assert_eq!(versions, [5, 6]);
}

/// tursodatabase/libsql#337, grpc/grpc-rust#1353 (B41): a default limit ended every stream.
#[tokio::test]
async fn seventy_megabytes_end_the_stream_loudly_before_they_are_read() {
    let mut server = Server::start().await;
    let (mut events, mut stream) = open(&mut server).await;
    let mut head = vec![0];
    head.extend(70_u32.wrapping_shl(20).to_be_bytes());
    stream.raw(head.into()).await;
    let end = events.ended().await;
    assert_eq!(
        (end.code, end.is_oversize),
        ("out_of_range", true),
        "{}",
        end.message
    );
    drop(events);
    stream.given_up().await;
}

/// unkeyed/unkey e8385fab29, PR #4782 (A06): nobody looked at what a stream ended with.
#[tokio::test]
async fn errors_before_the_first_message_are_seen_at_both_places() {
    for (code, name) in [
        (16, "unauthenticated"),
        (7, "permission_denied"),
        (14, "unavailable"),
    ] {
        for is_after_headers in [false, true] {
            let mut server = Server::start().await;
            let plane = plane(&access(server.url()));
            let mut events = Events::of(&plane, 0).await;
            let (end, ()) = tokio::join!(events.ended(), async {
                let call = server.call().await;
                if is_after_headers {
                    call.open().end(code, "go away");
                } else {
                    call.refuse(code, "go away");
                }
            });
            assert_eq!((end.code, end.message.as_str()), (name, "go away"));
        }
    }
}

/// unkeyed/unkey e8385fab29, PR #4782 (A06): nobody looked at what a stream ended with.
#[tokio::test]
async fn a_clean_end_without_a_message_is_told() {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let mut events = Events::of(&plane, 0).await;
    let (end, ()) = tokio::join!(events.ended(), async {
        server.call().await.open().end(0, "");
    });
    assert_eq!(end.code, "ok");
}

#[tokio::test]
async fn an_error_after_the_opening_ends_a_silent_stream() {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let mut events = Events::of(&plane, 0).await;
    let (call, ()) = tokio::join!(server.call(), events.opened());
    call.refuse(14, "restarting");
    let end = events.ended().await;
    assert_eq!(
        (end.code, end.message.as_str()),
        ("unavailable", "restarting")
    );
}

/// What the script gives back is kept until the end is seen: a dropped stream would be reset.
async fn check_end<Kept>(
    script: impl AsyncFnOnce(&Server, Stream) -> Kept,
    code: &str,
    hint: &str,
) {
    let mut server = Server::start().await;
    let (mut events, stream) = open(&mut server).await;
    let _kept = script(&server, stream).await;
    let end = events.ended().await;
    assert_eq!(end.code, code, "{}", end.message);
    assert!(end.message.contains(hint), "{}", end.message);
}

#[tokio::test]
async fn every_way_to_end_is_told_with_code_and_cause() {
    check_end(
        async |_, stream| stream.end(0, ""),
        "ok",
        "without an error",
    )
    .await;
    check_end(
        async |_, stream| stream.end(13, "database gone"),
        "internal",
        "database gone",
    )
    .await;
    check_end(
        async |_, stream| stream.end_without_trailers(),
        "unknown",
        "missing grpc-status",
    )
    .await;
    let cut = async |_: &Server, mut stream: Stream| {
        stream.raw(Bytes::from_static(b"\0\0\0\0\x09half")).await;
        stream.end_without_trailers();
    };
    check_end(cut, "internal", "Unexpected EOF").await;
    check_end(
        async |_, s| s.reset(Reason::INTERNAL_ERROR),
        "internal",
        "internal error",
    )
    .await;
    check_end(
        async |_, s| s.reset(Reason::CANCEL),
        "canceled",
        "no longer needed",
    )
    .await;
    let drop_link = async |server: &Server, stream| {
        server.disturb(Disturbance::Drop);
        stream
    };
    check_end(drop_link, "unavailable", "broken pipe").await;
}

#[tokio::test]
async fn a_dropped_stream_is_given_up_at_once() {
    let mut server = Server::start().await;
    let (events, stream) = open(&mut server).await;
    drop(events);
    assert_eq!(stream.given_up().await, Reason::CANCEL);
}

/// Eight streams full to their windows leave room for a call.
#[tokio::test]
async fn streams_that_nobody_reads_hold_up_nobody() {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let mut unread = Vec::new();
    for _ in 0..8 {
        let mut events = Events::of(&plane, 0).await;
        let ((), mut stream) = tokio::join!(events.opened(), async {
            let mut stream = server.call().await.open();
            stream.message(delete("first", 1)).await;
            stream
        });
        // Sends until the window is full, then waits for room that never comes.
        let full = tokio::time::timeout(Duration::from_millis(100), stream.message(large(4, 2)));
        assert!(full.await.is_err(), "the window must fill up");
        unread.push((events, stream));
    }
    let (answer, ()) = tokio::join!(within(plane.heartbeat()), async {
        server.call().await.answer(&HeartbeatResponse {}).await;
    });
    answer.unwrap();
}

#[tokio::test]
async fn a_refused_connection_ends_the_stream_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let plane = plane(&access(format!("http://{address}")));
    let mut events = Events::of(&plane, 0).await;
    let end = events.ended().await;
    assert_eq!(end.code, "unavailable");
    assert!(end.message.contains("control.url"), "{}", end.message);
    assert!(end.message.contains("refused"), "{}", end.message);
}
