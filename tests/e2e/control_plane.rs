//! The gRPC adapter of the control plane against a connect-go server, as the original one is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod peer;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::BoxStream;
use krane_control_plane::wire::Wire;
use krane_control_plane::{ControlPlaneAccess, GrpcControlPlane, Timing};
use krane_domain::desired::{Change, State, StreamItem};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::Rules;
use krane_domain::report::Report;
use krane_ports::{Answer, ControlPlane as _, Question, RpcFailureKind, StreamEnd, StreamEvent};
use krane_proto::ctrl::v1::{ApplyDeployment, DeleteDeployment, DeploymentState, deployment_state};
use prost::Message as _;
use secrecy::SecretString;
use tokio::time::Instant;

use peer::{Event, Peer};

const TOKEN: &str = "hunter2-canary";

/// Fails the test when a state that must come does not.
async fn within<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(90);
    tokio::time::timeout(limit, future)
        .await
        .expect("nothing happened in 90 s")
}

fn plane_with(url: String, token: &'static str) -> GrpcControlPlane {
    let access = ControlPlaneAccess {
        url,
        ca_file: None,
        token: Arc::new(move || SecretString::from(token)),
        timing: Timing::default(),
        observer: Arc::new(()),
    };
    let rules = Arc::new(Rules::default());
    let wire = Wire::new("aws", "us-east-1", Controller::Deployments, rules);
    GrpcControlPlane::new(&access, wire).unwrap()
}

fn plane(peer: &Peer) -> GrpcControlPlane {
    plane_with(peer.url(), TOKEN)
}

fn key() -> ObjectKey {
    ObjectKey::new("ns", "one")
}

fn question() -> Question {
    Question {
        key: key(),
        id: Arc::from("d_1"),
    }
}

fn report() -> Report {
    Report::Instances {
        key: key(),
        instances: vec![],
    }
}

fn delete(version: u64) -> Vec<u8> {
    let delete = DeleteDeployment {
        k8s_namespace: "ns".into(),
        k8s_name: "one".into(),
    };
    let state = Some(deployment_state::State::Delete(delete));
    DeploymentState { version, state }.encode_to_vec()
}

fn large(megabytes: usize, version: u64) -> Vec<u8> {
    let apply = ApplyDeployment {
        k8s_namespace: "ns".into(),
        k8s_name: "large".into(),
        encrypted_environment_variables: vec![b'x'; megabytes << 20].into(),
        ..ApplyDeployment::default()
    };
    let state = Some(deployment_state::State::Apply(apply));
    DeploymentState { version, state }.encode_to_vec()
}

struct Events(BoxStream<'static, StreamEvent>);

impl Events {
    /// A stream that both sides know to be open; nothing has come over it.
    async fn open(plane: &GrpcControlPlane, peer: &mut Peer, cursor: u64) -> (Self, Event) {
        let mut events = Self(plane.watch(cursor).await);
        let event = events.next().await;
        assert!(
            matches!(event, StreamEvent::Opened),
            "{event:?} instead of opened"
        );
        let call = peer.event().await;
        assert_eq!(
            (call.method.as_str(), call.version),
            ("WatchDeployments", cursor)
        );
        (events, call)
    }

    async fn next(&mut self) -> StreamEvent {
        within(self.0.next())
            .await
            .expect("the stream must not be over")
    }

    async fn state(&mut self) -> State {
        match self.next().await {
            StreamEvent::Item(StreamItem::State(state)) => state,
            event @ (StreamEvent::Opened | StreamEvent::Item(_) | StreamEvent::Ended(_)) => {
                panic!("{event:?} instead of a state")
            }
        }
    }

    async fn ended(&mut self) -> StreamEnd {
        match self.next().await {
            StreamEvent::Ended(end) => {
                assert!(
                    within(self.0.next()).await.is_none(),
                    "something follows the end"
                );
                end
            }
            event @ (StreamEvent::Opened | StreamEvent::Item(_)) => {
                panic!("{event:?} instead of the end")
            }
        }
    }
}

fn check_call(call: &Event, method: &str, id: &str) {
    assert_eq!((call.kind.as_str(), call.method.as_str()), ("call", method));
    assert_eq!(
        (call.platform.as_str(), call.region.as_str()),
        ("aws", "us-east-1")
    );
    assert_eq!(call.id, id);
    assert_eq!(call.authorization, format!("Bearer {TOKEN}"));
    assert_eq!(
        call.user_agent,
        concat!("krane/", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(call.protocol, "grpc");
}

/// unkeyed/unkey d86e9fe802, PR #5826, #5628 (A08): a header set by hand was missing on some calls.
#[tokio::test]
async fn every_request_arrives_with_region_and_token_over_one_connection() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    let (_events, watch) = Events::open(&plane, &mut peer, 0).await;
    check_call(&watch, "WatchDeployments", "");

    plane.heartbeat().await.unwrap();
    let heartbeat = peer.event().await;
    check_call(&heartbeat, "Heartbeat", "");
    assert_eq!(heartbeat.peer, watch.peer);

    plane.report(&report()).await.unwrap();
    check_call(&peer.event().await, "ReportDeploymentStatus", "one");
    let gone = Report::Gone {
        key: key(),
        id: None,
    };
    plane.report(&gone).await.unwrap();
    check_call(&peer.event().await, "ReportDeploymentStatus", "one");

    assert_eq!(plane.desired(&question()).await, Ok(Answer::NotFound));
    check_call(&peer.event().await, "GetDesiredDeploymentState", "d_1");
    peer.answer(&delete(0)).await;
    let expected = Answer::State {
        key: key(),
        change: Ok(Change::Delete),
    };
    assert_eq!(plane.desired(&question()).await, Ok(expected));
}

/// Nothing at all comes from this server before its first event: no headers, no message.
#[tokio::test]
async fn a_stream_that_is_silent_for_two_minutes_stays_open() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    let (mut events, watch) = Events::open(&plane, &mut peer, 7).await;
    let silence = tokio::time::timeout(Duration::from_mins(2), events.0.next()).await;
    assert!(silence.is_err(), "{silence:?}");
    peer.push(&delete(8)).await;
    assert_eq!(events.state().await.version, 8);
    plane.heartbeat().await.unwrap();
    assert_eq!(
        peer.event().await.peer,
        watch.peer,
        "still the same connection"
    );
}

#[tokio::test]
async fn a_dropped_stream_is_given_up_while_it_is_silent() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    let (events, _) = Events::open(&plane, &mut peer, 0).await;
    drop(events);
    assert_eq!(peer.event().await.kind, "gone");
}

/// unkeyed/unkey e8385fab29, PR #4782 (A06): nobody looked at what a stream ended with.
#[tokio::test]
async fn a_refused_stream_is_told_with_its_code() {
    let mut peer = Peer::start().await;
    let refused = plane_with(peer.url(), "wrong");
    let end = Events(refused.watch(0).await).ended().await;
    assert_eq!(
        (end.code, end.message.as_str()),
        ("unauthenticated", "invalid bearer token")
    );
    let failure = refused.heartbeat().await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (RpcFailureKind::Answered, "unauthenticated")
    );

    let plane = plane(&peer);
    for (number, code) in [
        (3, "invalid_argument"),
        (7, "permission_denied"),
        (13, "internal"),
    ] {
        peer.refuse("WatchDeployments", number, "no").await;
        let end = Events(plane.watch(0).await).ended().await;
        assert_eq!((end.code, end.message.as_str()), (code, "no"));
    }
}

/// unkeyed/unkey e8385fab29, PR #4782 (A06): nobody looked at what a stream ended with.
#[tokio::test]
async fn every_end_of_an_open_stream_is_told() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    for (number, code) in [(0, "ok"), (14, "unavailable"), (16, "unauthenticated")] {
        for has_spoken in [false, true] {
            let (mut events, _) = Events::open(&plane, &mut peer, 0).await;
            if has_spoken {
                peer.push(&delete(1)).await;
                assert_eq!(events.state().await.version, 1);
            }
            peer.end(number, "enough").await;
            assert_eq!(events.ended().await.code, code);
        }
    }
}

/// Go's router answers 404 for a path it does not know.
#[tokio::test]
async fn a_path_that_is_not_served_finds_nothing() {
    let peer = Peer::start().await;
    let plane = plane_with(format!("{}/elsewhere", peer.url()), TOKEN);
    let failure = plane.desired(&question()).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (RpcFailureKind::Transport, "unimplemented")
    );
    assert!(failure.message.contains("control.url"), "{failure}");
    assert_eq!(
        Events(plane.watch(0).await).ended().await.code,
        "unimplemented"
    );
}

/// tursodatabase/libsql#337, grpc/grpc-rust#1353 (B41): a default limit ended every stream.
#[tokio::test]
async fn five_megabytes_pass_and_seventy_are_loud() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    let (mut events, _) = Events::open(&plane, &mut peer, 0).await;
    peer.push(&large(5, 5)).await;
    peer.push(&delete(6)).await;
    assert_eq!(events.state().await.version, 5);
    assert_eq!(events.state().await.version, 6);
    peer.push(&large(70, 7)).await;
    let end = events.ended().await;
    assert_eq!(
        (end.code, end.is_oversize),
        ("out_of_range", true),
        "{}",
        end.message
    );
    plane.heartbeat().await.unwrap();
}

/// hyperium/hyper#2500, stellar/go-stellar-sdk#573 (B39): a GOAWAY was fatal, or lost.
#[tokio::test]
async fn a_server_that_shuts_down_ends_streams_and_is_missed() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    let (mut events, _) = Events::open(&plane, &mut peer, 0).await;
    plane.heartbeat().await.unwrap();
    peer.go_away().await;
    let end = events.ended().await;
    assert_ne!(end.code, "ok", "{}", end.message);
    let failure = plane.heartbeat().await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (RpcFailureKind::Transport, "unavailable")
    );
}

#[tokio::test]
async fn a_killed_server_ends_streams_at_once() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    let (mut silent, _) = Events::open(&plane, &mut peer, 0).await;
    let (mut spoken, _) = Events::open(&plane, &mut peer, 0).await;
    peer.push(&delete(1)).await;
    silent.state().await;
    spoken.state().await;
    let (mut silent, _) = Events::open(&plane, &mut peer, 1).await;
    peer.kill().await;
    for end in [silent.ended().await, spoken.ended().await] {
        assert_eq!(end.code, "unavailable", "{}", end.message);
        assert!(end.message.contains("broken pipe"), "{}", end.message);
    }
}

/// connectrpc/connect-es#463, bvis/aegis-hass PR #247, restatedev/restate PR #3816 (B38): silence for ever.
#[tokio::test]
async fn a_frozen_server_is_noticed_within_twenty_seconds() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    let (mut silent, _) = Events::open(&plane, &mut peer, 0).await;
    let begin = Instant::now();
    peer.freeze().await;
    let end = silent.ended().await;
    let noticed = begin.elapsed();
    assert!(
        noticed < Duration::from_secs(20),
        "noticed after {noticed:?}"
    );
    assert_eq!(end.code, "unavailable", "{}", end.message);

    // The frozen host goes on accepting, so a new stream must not count as open.
    let end = Events(plane.watch(0).await).ended().await;
    assert_eq!(end.code, "unavailable", "{}", end.message);
}

/// One connection carries what a whole controller has to say at its start.
#[tokio::test]
async fn five_thousand_calls_at_once_all_succeed() {
    let mut peer = Peer::start().await;
    let plane = plane(&peer);
    let report = report();
    let calls = join_all((0..5_000).map(|_| plane.report(&report)));
    let (answers, ()) = tokio::join!(within(calls), async {
        for _ in 0..5_000 {
            assert_eq!(peer.event().await.method, "ReportDeploymentStatus");
        }
    });
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 0);
}
