//! Calls with one answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderMap;
use krane_control_plane::Timing;
use krane_domain::desired::Change;
use krane_domain::report::Report;
use krane_ports::{Answer, ControlPlane as _, RpcFailureKind};
use krane_proto::ctrl::v1::report_deployment_status_request::{Change as Told, update};
use krane_proto::ctrl::v1::{
    DeleteDeployment, DeploymentState, GetDesiredDeploymentStateRequest, HeartbeatRequest,
    HeartbeatResponse, RegionKey, ReportDeploymentStatusRequest, ReportDeploymentStatusResponse,
    WatchDeploymentsRequest, deployment_state,
};
use secrecy::SecretString;

use super::server::{Call, Server};
use super::{Events, TOKEN, access, delete, plane, question, report};

fn check_headers(headers: &HeaderMap) {
    assert_eq!(headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(
        headers["user-agent"],
        concat!("krane/", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(headers["content-type"], "application/grpc");
    assert_eq!(headers["te"], "trailers");
    assert_eq!(
        headers.get("grpc-timeout"),
        None,
        "a deadline would end streams"
    );
}

fn check_region(region: Option<&RegionKey>) {
    let expected = RegionKey {
        platform: "aws".to_owned(),
        name: "us-east-1".to_owned(),
    };
    assert_eq!(region, Some(&expected));
}

/// unkeyed/unkey d86e9fe802, PR #5826, #5628 (A08): a header set by hand was missing on some calls.
#[tokio::test]
async fn every_request_names_the_region_and_carries_the_token() {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));

    for cursor in [0, 300] {
        let mut events = Events::of(&plane, cursor).await;
        let (call, ()) = tokio::join!(server.call(), events.opened());
        assert_eq!(call.path, "/ctrl.v1.ClusterService/WatchDeployments");
        check_headers(&call.headers);
        let message: WatchDeploymentsRequest = call.message();
        check_region(message.region.as_ref());
        assert_eq!(message.version_last_seen, cursor);
    }

    let (answer, ()) = tokio::join!(plane.heartbeat(), async {
        let call = server.call().await;
        assert_eq!(call.path, "/ctrl.v1.ClusterService/Heartbeat");
        check_headers(&call.headers);
        check_region(call.message::<HeartbeatRequest>().region.as_ref());
        call.answer(&HeartbeatResponse {}).await;
    });
    answer.unwrap();

    let (question, told) = (question(), report());
    let (answer, ()) = tokio::join!(plane.desired(&question), async {
        let call = server.call().await;
        assert_eq!(
            call.path,
            "/ctrl.v1.ClusterService/GetDesiredDeploymentState"
        );
        check_headers(&call.headers);
        let message: GetDesiredDeploymentStateRequest = call.message();
        check_region(message.region.as_ref());
        assert_eq!(message.deployment_id, "d_1");
        call.refuse(5, "no such deployment");
    });
    assert_eq!(answer.unwrap(), Answer::NotFound);

    let gone = Report::Gone {
        key: told.key().clone(),
        id: None,
    };
    for report in [&told, &gone] {
        let (answer, message) = tokio::join!(plane.report(report), async {
            let call = server.call().await;
            assert_eq!(call.path, "/ctrl.v1.ClusterService/ReportDeploymentStatus");
            check_headers(&call.headers);
            let message: ReportDeploymentStatusRequest = call.message();
            call.answer(&ReportDeploymentStatusResponse {}).await;
            message
        });
        answer.unwrap();
        check_region(message.region.as_ref());
        match message.change.unwrap() {
            Told::Update(update) => {
                assert_eq!(update.k8s_name, "one");
                let instance = &update.instances[0];
                assert_eq!(instance.k8s_name, "one-x");
                assert_eq!(instance.address, "10-0-0-1.ns.pod.cluster.local:8080");
                assert_eq!((instance.cpu_millicores, instance.memory_mib), (250, 512));
                assert_eq!(instance.status(), update::instance::Status::Running);
            }
            Told::Delete(delete) => assert_eq!(delete.k8s_name, "one"),
        }
    }
}

#[tokio::test]
async fn the_token_is_read_again_for_each_request() {
    let mut server = Server::start().await;
    let count = AtomicUsize::new(0);
    let mut access = access(server.url());
    access.token = Arc::new(move || {
        SecretString::from(format!("token-{}", count.fetch_add(1, Ordering::Relaxed)))
    });
    let plane = plane(&access);
    for number in 0..2 {
        let (answer, ()) = tokio::join!(plane.heartbeat(), async {
            let call = server.call().await;
            assert_eq!(
                call.headers["authorization"],
                format!("Bearer token-{number}")
            );
            call.answer(&HeartbeatResponse {}).await;
        });
        answer.unwrap();
    }
}

#[tokio::test]
async fn a_token_for_no_header_is_told_without_its_content() {
    let server = Server::start().await;
    let mut access = access(server.url());
    access.token = Arc::new(|| SecretString::from("hunter2\ncanary"));
    let failure = plane(&access).heartbeat().await.unwrap_err();
    assert_eq!(failure.code, "unauthenticated");
    assert!(failure.message.contains("control.token"), "{failure}");
    assert!(!failure.message.contains("hunter2"), "{failure}");
}

#[tokio::test]
async fn the_path_of_the_base_url_is_kept() {
    let mut server = Server::start().await;
    let plane = plane(&access(format!("{}/base/", server.url())));
    let (answer, ()) = tokio::join!(plane.heartbeat(), async {
        let call = server.call().await;
        assert_eq!(call.path, "/base/ctrl.v1.ClusterService/Heartbeat");
        call.answer(&HeartbeatResponse {}).await;
    });
    answer.unwrap();
}

async fn answer_to_question(script: impl AsyncFnOnce(Call)) -> Result<Answer, RpcFailureKind> {
    let mut server = Server::start().await;
    let plane = plane(&access(server.url()));
    let question = question();
    let (answer, ()) = tokio::join!(plane.desired(&question), async {
        script(server.call().await).await;
    });
    answer.map_err(|failure| failure.kind)
}

#[tokio::test]
async fn not_found_counts_with_headers_and_after_them() {
    let answer = answer_to_question(async |call| call.refuse(5, "unknown")).await;
    assert_eq!(answer, Ok(Answer::NotFound));
    let answer = answer_to_question(async |call| call.open().end(5, "unknown")).await;
    assert_eq!(answer, Ok(Answer::NotFound));
}

#[tokio::test]
async fn other_refusals_are_the_servers_answer() {
    for code in (1..=16).filter(|code| *code != 5) {
        let answer = answer_to_question(async |call| call.refuse(code, "no")).await;
        assert_eq!(answer, Err(RpcFailureKind::Answered), "for code {code}");
    }
}

#[tokio::test]
async fn answers_are_read_leniently() {
    let answer = answer_to_question(async |call| call.answer(&DeploymentState::default()).await);
    assert_eq!(answer.await, Ok(Answer::Empty));

    let answer = answer_to_question(async |call| {
        let mut stream = call.open();
        stream.message(b"\xff\xff\xff\xff").await;
        stream.end(0, "");
    });
    assert_eq!(answer.await, Ok(Answer::Empty));

    let answer = answer_to_question(async |call| {
        let mut stream = call.open();
        stream.message(delete("one", 0)).await;
        stream.end(0, "");
    });
    let expected = Answer::State {
        key: question().key,
        change: Ok(Change::Delete),
    };
    assert_eq!(answer.await, Ok(expected));

    // delete { namespace, name: no text }: which object, nobody knows
    let answer = answer_to_question(async |call| {
        let mut stream = call.open();
        stream.message(b"\x12\x08\x0a\x02ns\x12\x02\xff\xfe").await;
        stream.end(0, "");
    });
    assert_eq!(answer.await, Ok(Answer::Empty));
}

/// A broken answer about a good object must not end its repairs: what the stream said stays.
#[tokio::test]
async fn an_answer_that_does_not_decode_is_none_though_its_object_is_named() {
    // apply { namespace "ns", name "one", image: no text }
    let answer = answer_to_question(async |call| {
        let mut stream = call.open();
        stream
            .message(b"\x0a\x0d\x0a\x02ns\x12\x03one\x3a\x02\xff\xfe")
            .await;
        stream.end(0, "");
    });
    assert_eq!(answer.await, Ok(Answer::Empty));
}

#[tokio::test]
async fn an_answer_without_a_status_is_none() {
    let delete = DeploymentState {
        version: 0,
        state: Some(deployment_state::State::Delete(DeleteDeployment {
            k8s_namespace: "ns".to_owned(),
            k8s_name: "one".to_owned(),
        })),
    };
    let message = prost::Message::encode_to_vec(&delete);
    let answer = answer_to_question(async |call| {
        let mut stream = call.open();
        stream.message(message).await;
        stream.end_without_trailers();
    });
    assert_eq!(answer.await, Err(RpcFailureKind::Transport));
    let answer = answer_to_question(async |call| call.open().end(0, ""));
    assert_eq!(
        answer.await,
        Err(RpcFailureKind::Answered),
        "a status, but no message"
    );
}

#[tokio::test]
async fn details_that_are_no_base64_hurt_nobody() {
    for trailers_only in [true, false] {
        let answer = answer_to_question(async |call: Call| {
            if trailers_only {
                call.refuse_with("grpc-status-details-bin", "{not base64}");
            } else {
                let mut trailers = super::server::status(9, "no");
                trailers.insert("grpc-status-details-bin", "{not base64}".parse().unwrap());
                call.open().trailers(trailers);
            }
        });
        assert_eq!(answer.await, Err(RpcFailureKind::Answered));
    }
}

/// The deadline covers the body, which tonic's own does not.
#[tokio::test]
async fn a_call_that_hangs_ends_at_its_deadline() {
    let mut server = Server::start().await;
    let mut access = access(server.url());
    access.timing = Timing {
        unary: Duration::from_millis(300),
        ..Timing::default()
    };
    let plane = plane(&access);

    let (answer, call) = tokio::join!(plane.heartbeat(), server.call());
    let failure = answer.unwrap_err();
    assert_eq!(
        (failure.kind, failure.code),
        (RpcFailureKind::Transport, "deadline_exceeded")
    );
    call.given_up().await;

    let (answer, stream) = tokio::join!(plane.heartbeat(), async { server.call().await.open() });
    assert_eq!(answer.unwrap_err().code, "deadline_exceeded");
    stream.given_up().await;
}
