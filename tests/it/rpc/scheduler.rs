//! The scheduler's service in both protocols: who may call, what comes of a call, and the watch.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use krane_domain::ids::ObjectKey;
use krane_domain::report::{Instance, InstanceStatus};
use krane_domain::scheduler::{Call, CallFailure, CallFailureKind, Watched};
use krane_ports::{SchedulerDesk, Watching};
use krane_proto::krane::v1::scheduler_service_client::SchedulerServiceClient;
use krane_proto::krane::v1::state::State as Case;
use krane_proto::krane::v1::{
    ApplyDeploymentRequest, ApplySentinelRequest, DeleteDeploymentRequest, DeleteSentinelRequest,
    ScrapeOpenApiSchemaRequest, State, WatchRequest,
};
use krane_server::bounds::Bounds;
use krane_server::serve::Patience;
use krane_settings::SecretSource;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Streaming};
use tracing::Level;

use super::Server;
use crate::health::{PATIENT, ask};
use crate::log::Listening;

/// What every call must bring.
const TOKEN: &str = "canary-of-the-scheduler";
/// The codes that a desk may answer with, over gRPC and over Connect.
const FAILURES: [(CallFailureKind, Code, u16); 7] = [
    (CallFailureKind::InvalidArgument, Code::InvalidArgument, 400),
    (
        CallFailureKind::FailedPrecondition,
        Code::FailedPrecondition,
        400,
    ),
    (
        CallFailureKind::PermissionDenied,
        Code::PermissionDenied,
        403,
    ),
    (CallFailureKind::Aborted, Code::Aborted, 409),
    (
        CallFailureKind::DeadlineExceeded,
        Code::DeadlineExceeded,
        504,
    ),
    (CallFailureKind::Unavailable, Code::Unavailable, 503),
    (CallFailureKind::Internal, Code::Internal, 500),
];

type Told = Result<Arc<Watched>, CallFailure>;

/// Fails calls for objects that are named like a failure; keeps the others.
#[derive(Default)]
struct Planner {
    calls: Mutex<Vec<Call>>,
    /// What the next follower is told.
    follower: Mutex<Option<mpsc::Receiver<Told>>>,
}

#[async_trait]
impl SchedulerDesk for Planner {
    async fn call(&self, call: Call) -> Result<(), CallFailure> {
        if let Call::DeleteDeployment { name, .. } = &call
            && let Some((kind, ..)) = FAILURES.iter().find(|(kind, ..)| kind.name() == name)
        {
            return Err(CallFailure::new(*kind, "as it was asked to"));
        }
        self.calls.lock().push(call);
        Ok(())
    }

    async fn watch(&self) -> Result<Watching, CallFailure> {
        let follower = self.follower.lock().take();
        let full = || CallFailure::new(CallFailureKind::Unavailable, "too many followers");
        Ok(ReceiverStream::new(follower.ok_or_else(full)?).boxed())
    }
}

async fn start(patience: Patience, token: Option<&str>) -> (Server, Arc<Planner>) {
    let planner = Arc::new(Planner::default());
    let scheduler = (
        Arc::clone(&planner) as Arc<dyn SchedulerDesk>,
        token.map(SecretSource::fixed),
    );
    let server = Server::serving(patience, true, Some(scheduler)).await;
    (server, planner)
}

fn with_token<M>(message: M) -> Request<M> {
    let mut request = Request::new(message);
    let header = format!("Bearer {TOKEN}").parse().unwrap();
    request.metadata_mut().insert("authorization", header);
    request
}

fn deletion(name: &str) -> DeleteDeploymentRequest {
    DeleteDeploymentRequest {
        k8s_namespace: "ns".to_owned(),
        k8s_name: name.to_owned(),
    }
}

fn post(method: &str, authorization: &str, body: &serde_json::Value) -> String {
    let body = body.to_string();
    format!(
        "POST /krane.v1.SchedulerService/{method} HTTP/1.1\r\nhost: krane\r\n\
         content-type: application/json\r\nconnect-protocol-version: 1\r\n\
         authorization: {authorization}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn client(server: &Server) -> SchedulerServiceClient<Channel> {
    SchedulerServiceClient::new(server.channel().await)
}

#[tokio::test]
async fn every_call_reaches_the_desk_as_it_was_sent_in_both_protocols() {
    let (server, planner) = start(PATIENT, Some(TOKEN)).await;
    let mut client = client(&server).await;
    let deployment = ApplyDeploymentRequest {
        k8s_namespace: "ns".to_owned(),
        k8s_name: "app".to_owned(),
        workspace_id: "ws_1".to_owned(),
        environment_id: "env_1".to_owned(),
        deployment_id: "d_1".to_owned(),
        image: "app:1".to_owned(),
        replicas: 2,
        readiness_id: Some("ready-7".to_owned()),
        encrypted_environment_variables: b"{\"secrets\":{}}".to_vec().into(),
        ..ApplyDeploymentRequest::default()
    };
    let sentinel = ApplySentinelRequest {
        k8s_namespace: "sentinel".to_owned(),
        k8s_name: "guard".to_owned(),
        sentinel_id: "sn_1".to_owned(),
        replicas: 3,
        ..ApplySentinelRequest::default()
    };
    let no_sentinel = DeleteSentinelRequest {
        k8s_namespace: "sentinel".to_owned(),
        k8s_name: "guard".to_owned(),
    };
    let over_json = [
        ("ApplyDeployment", json!(deployment)),
        ("DeleteDeployment", json!(deletion("app"))),
        ("ApplySentinel", json!(sentinel)),
        ("DeleteSentinel", json!(no_sentinel)),
    ];
    let request = with_token(deployment);
    client.apply_deployment(request).await.unwrap();
    let request = with_token(deletion("app"));
    client.delete_deployment(request).await.unwrap();
    client.apply_sentinel(with_token(sentinel)).await.unwrap();
    let request = with_token(no_sentinel);
    client.delete_sentinel(request).await.unwrap();
    let over_grpc = std::mem::take(&mut *planner.calls.lock());
    assert_eq!(over_grpc.len(), 4);
    let Call::ApplyDeployment {
        input,
        readiness_id,
    } = &over_grpc[0]
    else {
        panic!("{over_grpc:?}")
    };
    assert_eq!(readiness_id.as_deref(), Some("ready-7"));
    assert_eq!((&*input.image, input.replicas), ("app:1", 2));

    let mut stream = server.connect().await;
    for (method, body) in over_json {
        let bearer = format!("Bearer {TOKEN}");
        let answer = ask(&mut stream, &post(method, &bearer, &body)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{method}: {answer}");
        assert!(answer.ends_with("\r\n\r\n{}"), "{method}: {answer}");
    }
    assert!(*planner.calls.lock() == over_grpc, "the same by either way");
}

#[tokio::test]
async fn why_a_call_is_not_done_has_the_same_code_in_both_protocols() {
    let (server, planner) = start(PATIENT, Some(TOKEN)).await;
    let mut client = client(&server).await;
    let mut stream = server.connect().await;
    for (kind, code, status) in FAILURES {
        let request = with_token(deletion(kind.name()));
        let failed = client.delete_deployment(request).await.unwrap_err();
        assert_eq!(
            (failed.code(), failed.message()),
            (code, "as it was asked to")
        );

        let body = json!({ "k8sNamespace": "ns", "k8sName": kind.name() });
        let bearer = format!("Bearer {TOKEN}");
        let answer = ask(&mut stream, &post("DeleteDeployment", &bearer, &body)).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        let expected = json!({ "code": kind.name(), "message": "as it was asked to" });
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body, expected);
    }
    assert!(planner.calls.lock().is_empty());
}

/// Nobody without the token gets anything, and least of all a hint of what the token is.
#[tokio::test]
async fn without_the_token_every_method_is_refused_and_nothing_reaches_the_desk() {
    let listening = Listening::to(Level::TRACE);
    for token in [Some(TOKEN), None] {
        let (server, planner) = start(PATIENT, token).await;
        let mut client = client(&server).await;
        let mut stream = server.connect().await;
        for authorization in ["", "Bearer", "Bearer ", "Bearer wrong", "Basic x", TOKEN] {
            let mut codes = Vec::new();
            macro_rules! call {
                ($method:ident, $message:expr) => {{
                    let mut request = Request::new($message);
                    let header = authorization.parse().unwrap();
                    request.metadata_mut().insert("authorization", header);
                    codes.push(client.$method(request).await.unwrap_err());
                }};
            }
            call!(apply_deployment, ApplyDeploymentRequest::default());
            call!(delete_deployment, deletion("app"));
            call!(apply_sentinel, ApplySentinelRequest::default());
            call!(delete_sentinel, DeleteSentinelRequest::default());
            call!(watch, WatchRequest {});
            call!(
                scrape_open_api_schema,
                ScrapeOpenApiSchemaRequest::default()
            );
            for refused in codes {
                assert_eq!(refused.code(), Code::Unauthenticated, "{authorization:?}");
                assert!(!refused.message().contains(TOKEN), "{refused}");
            }
            for method in ["ApplyDeployment", "DeleteSentinel", "ScrapeOpenApiSchema"] {
                let answer = ask(&mut stream, &post(method, authorization, &json!({}))).await;
                assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
                assert!(!answer.contains(TOKEN), "{answer}");
            }
        }
        assert!(planner.calls.lock().is_empty());
        assert!(!server.metrics().contains(TOKEN));
    }
    let log = listening.text();
    assert!(!log.contains(TOKEN), "{log}");
}

#[tokio::test]
async fn addresses_of_tenants_are_never_fetched() {
    let (server, _planner) = start(PATIENT, Some(TOKEN)).await;
    let request = with_token(ScrapeOpenApiSchemaRequest {
        namespace: "ns".to_owned(),
        name: "app".to_owned(),
        path: "/openapi.json".to_owned(),
    });
    let refused = client(&server).await.scrape_open_api_schema(request).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unimplemented);
}

/// A follower of this server, and who tells it.
async fn follow(server: &Server, planner: &Planner) -> (mpsc::Sender<Told>, Streaming<State>) {
    let (teller, told) = mpsc::channel(256);
    *planner.follower.lock() = Some(told);
    let states = client(server)
        .await
        .watch(with_token(WatchRequest {}))
        .await;
    (teller, states.unwrap().into_inner())
}

fn deployment(pods: &[&str]) -> Arc<Watched> {
    let instance = |pod: &&str| Instance {
        pod: (*pod).into(),
        address: "10.0.0.1:8080".to_owned(),
        status: InstanceStatus::Running,
        cpu_millicores: 250,
        memory_mib: 64,
    };
    Arc::new(Watched::Deployment {
        key: ObjectKey::new("ns", "app"),
        instances: pods.iter().map(instance).collect(),
        readiness_id: Some("ready-7".into()),
    })
}

#[tokio::test]
async fn a_follower_is_told_each_state_and_at_last_why_nothing_follows() {
    let (server, planner) = start(PATIENT, Some(TOKEN)).await;
    let (teller, mut states) = follow(&server, &planner).await;
    for pods in [&["app-1"][..], &[]] {
        teller.try_send(Ok(deployment(pods))).unwrap();
        let state = states.message().await.unwrap().unwrap();
        let Some(Case::Deployment(told)) = state.state else {
            panic!("{state:?}")
        };
        assert_eq!(told.deployment_k8s_name, "app");
        assert_eq!(told.readiness_id.as_deref(), Some("ready-7"));
        let names = told.instances.iter().map(|it| &*it.instance_k8s_name);
        assert_eq!(names.collect::<Vec<_>>(), pods);
    }
    let sentinel = Watched::Sentinel {
        key: ObjectKey::new("sentinel", "guard"),
        available: 2,
    };
    teller.try_send(Ok(Arc::new(sentinel))).unwrap();
    let state = states.message().await.unwrap().unwrap();
    let Some(Case::Sentinel(told)) = state.state else {
        panic!("{state:?}")
    };
    assert_eq!((&*told.k8s_name, told.available_replicas), ("guard", 2));

    let lost = CallFailure::new(CallFailureKind::Unavailable, "on standby");
    teller.try_send(Err(lost)).unwrap();
    let end = states.message().await.unwrap_err();
    assert_eq!(
        (end.code(), end.message()),
        (Code::Unavailable, "on standby")
    );
    let refused = client(&server)
        .await
        .watch(with_token(WatchRequest {}))
        .await;
    assert_eq!(refused.unwrap_err().message(), "too many followers");
}

#[tokio::test]
async fn a_follower_is_told_nothing_after_the_time_that_it_said() {
    let (server, planner) = start(PATIENT, Some(TOKEN)).await;
    let (teller, told) = mpsc::channel(256);
    *planner.follower.lock() = Some(told);
    let mut request = with_token(WatchRequest {});
    request.set_timeout(Duration::from_millis(300));
    let mut states = client(&server)
        .await
        .watch(request)
        .await
        .unwrap()
        .into_inner();
    teller.try_send(Ok(deployment(&["app-1"]))).unwrap();
    assert!(states.message().await.unwrap().is_some());
    let end = states.message().await.unwrap_err();
    assert_eq!(end.code(), Code::DeadlineExceeded, "{end}");
    // Its place is free again.
    teller.closed().await;
}

/// Whoever has no token does not make krane read a byte of what it sends.
#[tokio::test]
async fn a_request_without_the_token_is_refused_before_its_body_is_there() {
    let (server, _planner) = start(PATIENT, Some(TOKEN)).await;
    let whole = post(
        "ApplyDeployment",
        "Bearer wrong",
        &json!({ "k8sName": "app" }),
    );
    let half = &whole[..whole.len() - 4];
    let mut stream = server.connect().await;
    let answer = ask(&mut stream, half).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");

    let mut peer = super::raw::Peer::connect(&server).await;
    let long = [
        &[0][..],
        &1_000_000_u32.to_be_bytes(),
        b"only the beginning",
    ]
    .concat();
    let path = "/krane.v1.SchedulerService/ApplyDeployment";
    let answer = peer.send_to(path, "application/grpc", &[], &long).await;
    assert_eq!(answer.code(), Code::Unauthenticated);
}

/// Two tokens in one request: somebody on the way may have looked at the other one.
#[tokio::test]
async fn two_tokens_are_none() {
    let (server, planner) = start(PATIENT, Some(TOKEN)).await;
    let mut client = client(&server).await;
    for tokens in [[TOKEN, "wrong"], ["wrong", TOKEN], [TOKEN, TOKEN]] {
        let mut request = Request::new(deletion("app"));
        for token in tokens {
            let header = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().append("authorization", header);
        }
        let refused = client.delete_deployment(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
    assert!(planner.calls.lock().is_empty());
}

/// A server that stops may be given a long time to drain: an idle follower must not use it up.
#[tokio::test]
async fn followers_are_sent_away_when_the_server_stops() {
    let patience = Patience {
        drain: Duration::from_secs(600),
        ..PATIENT
    };
    let (mut server, planner) = start(patience, Some(TOKEN)).await;
    let (_teller, mut states) = follow(&server, &planner).await;
    server.shutdown.cancel();
    let end = states.message().await.unwrap_err();
    assert_eq!(end.code(), Code::Unavailable);
    assert!(end.message().contains("stopping"), "{end}");
    tokio::time::timeout(Duration::from_secs(20), server.ended())
        .await
        .expect("the server waits for nobody");
}

/// (X1): what counts is what a peer has not taken, for however long a watch goes on.
#[tokio::test]
async fn a_follower_that_takes_every_state_is_never_cut() {
    let (server, planner) = start(PATIENT, Some(TOKEN)).await;
    let (teller, mut states) = follow(&server, &planner).await;
    let pod = "a".repeat(256 * 1024);
    let large = deployment(&[pod.as_str()]);
    for _ in 0..3 * Bounds::RPC.answers.per_sender / pod.len() {
        teller.try_send(Ok(Arc::clone(&large))).unwrap();
        assert!(states.message().await.unwrap().is_some());
    }
}

/// Whoever follows takes one place of its own; a call beside it is still answered.
#[tokio::test]
async fn a_follower_that_reads_nothing_is_in_nobodys_way() {
    let (server, planner) = start(PATIENT, Some(TOKEN)).await;
    let (teller, states) = follow(&server, &planner).await;
    let many: Vec<_> = (0..2_000).map(|number| format!("app-{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let large = deployment(&many);
    for _ in 0..100 {
        teller.try_send(Ok(Arc::clone(&large))).unwrap();
    }
    let mut other = client(&server).await;
    other
        .delete_deployment(with_token(deletion("app")))
        .await
        .unwrap();
    drop(states);
    // The stream is dropped with its reader, and what it would still have told with it.
    teller.closed().await;
}

#[tokio::test]
async fn watch_is_not_offered_over_connect() {
    let (server, _planner) = start(PATIENT, Some(TOKEN)).await;
    let mut stream = server.connect().await;
    let bearer = format!("Bearer {TOKEN}");
    let answer = ask(&mut stream, &post("Watch", &bearer, &json!({}))).await;
    assert!(answer.starts_with("HTTP/1.1 501"), "{answer}");
    assert!(answer.contains("call it over gRPC"), "{answer}");
}
