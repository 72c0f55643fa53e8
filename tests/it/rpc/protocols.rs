//! Everything that may be sent to the one method.

use krane_proto::krane::v1::secrets_service_server::SERVICE_NAME;
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;
use tonic::Code;
use tonic::transport::Channel;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use super::{ANSWER, CANARY, DECRYPT, REFUSAL, Server, message, post, post_body, raw};
use crate::health::{PATIENT, ask, read_to_close};
use crate::log::Listening;

#[tokio::test]
async fn connect_and_grpc_answer_the_same() {
    let server = Server::start(PATIENT).await;
    let mut stream = server.connect().await;
    let answer = ask(&mut stream, &post("d_1")).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with(ANSWER),
        "{answer}"
    );
    let answer = ask(&mut stream, &post("refused")).await;
    assert!(
        answer.starts_with("HTTP/1.1 401") && answer.ends_with(REFUSAL),
        "{answer}"
    );

    let mut client = server.grpc().await;
    let answer = client.decrypt_secrets_blob(message("d_1")).await.unwrap();
    let variables = answer.into_inner().env_vars;
    assert_eq!(variables["PEER"], "127.0.0.1");
    assert_eq!(variables["ENVIRONMENT"], "env_1");
    let refused = client
        .decrypt_secrets_blob(message("refused"))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(REFUSAL.contains(refused.message()), "{refused}");
}

#[tokio::test]
async fn connect_works_over_h2c_too() {
    let server = Server::start(PATIENT).await;
    let mut peer = raw::Peer::connect(&server).await;
    let body = message("d_1").encode_to_vec();
    let answer = peer.send("application/proto", &[], &body).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/proto")
    );
    let decoded = krane_proto::krane::v1::DecryptSecretsBlobResponse::decode(&answer.body[..]);
    assert_eq!(decoded.unwrap().env_vars["PEER"], "127.0.0.1");
}

#[tokio::test]
async fn requests_in_a_pipe_are_answered_in_order() {
    let server = Server::start(PATIENT).await;
    let mut stream = server.connect().await;
    let last = post("d_1").replace("host: krane", "host: krane\r\nconnection: close");
    let all = [post("d_1"), post("refused"), post_body("{"), last].concat();
    stream.write_all(all.as_bytes()).await.unwrap();
    let answers = String::from_utf8(read_to_close(&mut stream).await).unwrap();
    let codes: Vec<_> = answers
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|answer| &answer[..3])
        .collect();
    assert_eq!(codes, ["200", "401", "400", "200"], "{answers}");
}

#[tokio::test]
async fn bad_requests_of_grpc_are_refused_as_in_connect() {
    let server = Server::start(PATIENT).await;
    let mut peer = raw::Peer::connect(&server).await;
    let good = message("d_1").encode_to_vec();
    let too_large = (2 * 1024 * 1024 + 1_u32).to_be_bytes();
    let gzip = [("grpc-encoding", "gzip")];
    for (headers, body, code) in [
        (&[][..], raw::framed(0, &good), Code::Ok),
        (
            &[],
            raw::framed(0, b"\xff\xff\xff\xff"),
            Code::InvalidArgument,
        ),
        (
            &[],
            raw::framed(0, b"\x1a\x02\xc3\x28"),
            Code::InvalidArgument,
        ),
        (
            &[],
            [&[0], &too_large[..]].concat(),
            Code::ResourceExhausted,
        ),
        (
            &[],
            [&[0], &[0xff; 4][..]].concat(),
            Code::ResourceExhausted,
        ),
        (&[], raw::framed(1, &good), Code::Internal),
        (&[], raw::framed(7, &good), Code::Internal),
        (&gzip, raw::framed(1, &good), Code::Unimplemented),
        (
            &[("grpc-timeout", "1x")],
            raw::framed(0, &good),
            Code::InvalidArgument,
        ),
    ] {
        let answer = peer.send("application/grpc", headers, &body).await;
        assert_eq!(answer.code(), code, "{headers:?} {:?}", body.get(..9));
    }
    let cut = peer
        .send("application/grpc", &[], &raw::framed(0, &good)[..9])
        .await;
    assert_ne!(cut.code(), Code::Ok);
    let empty = peer.send("application/grpc", &[], b"").await;
    assert_ne!(empty.code(), Code::Ok);
    for kind in [
        "application/grpc+json",
        "application/grpc-web",
        "application/grpcx",
    ] {
        let answer = peer.send(kind, &[], &raw::framed(0, &good)).await;
        assert_eq!(answer.status, 415, "{kind}");
    }
}

#[tokio::test]
async fn a_deadline_of_grpc_is_kept() {
    let server = Server::start(PATIENT).await;
    let mut peer = raw::Peer::connect(&server).await;
    let waits = raw::framed(0, &message("wait").encode_to_vec());
    let limit = [("grpc-timeout", "20m")];
    let late = peer.send("application/grpc", &limit, &waits).await;
    assert_eq!(late.code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn calls_are_counted_and_unknown_ones_are_not() {
    let server = Server::start(PATIENT).await;
    let mut stream = server.connect().await;
    ask(&mut stream, &post("d_1")).await;
    ask(&mut stream, &post("refused")).await;
    ask(
        &mut stream,
        &post("d_1").replace("DecryptSecretsBlob", "Canary"),
    )
    .await;
    server
        .grpc()
        .await
        .decrypt_secrets_blob(message("d_1"))
        .await
        .unwrap();
    let method = DECRYPT.trim_start_matches('/');
    let line = |code: &str, times| {
        format!("krane_rpc_requests_total{{code=\"{code}\",method=\"{method}\"}} {times}\n")
    };
    let text = server.metrics();
    assert!(text.contains(&line("ok", 2)), "{text}");
    assert!(text.contains(&line("unauthenticated", 1)), "{text}");
    let duration = format!("krane_rpc_duration_seconds_count{{method=\"{method}\"}} 3\n");
    assert!(text.contains(&duration), "{text}");
    assert!(!text.contains("Canary"), "{text}");
    let calls = text
        .lines()
        .filter(|line| line.starts_with("krane_rpc_requests_total{"));
    let counts = calls.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), 3, "{text}");
}

#[tokio::test]
async fn no_secret_is_in_an_answer_or_a_log() {
    let log = Listening::to(tracing::Level::TRACE);
    let server = Server::start(PATIENT).await;
    let mut stream = server.connect().await;
    for body in [
        format!(r#"{{"token":"{CANARY}","token":"{CANARY}"}}"#),
        format!(r#"{{"token":{{"{CANARY}":1}}}}"#),
        format!(r#"{{"encryptedBlob":"{CANARY}!"}}"#),
        format!(r#"{{"token":"{CANARY}"#),
    ] {
        let answer = ask(&mut stream, &post_body(&body)).await;
        assert!(
            answer.starts_with("HTTP/1.1 400") && !answer.contains(CANARY),
            "{answer}"
        );
    }
    for deployment in ["d_1", "refused"] {
        let answer = ask(&mut stream, &post(deployment)).await;
        assert!(!answer.contains(CANARY), "{answer}");
        let _ = server
            .grpc()
            .await
            .decrypt_secrets_blob(message(deployment))
            .await;
    }
    let mut peer = raw::Peer::connect(&server).await;
    let cut = [CANARY.as_bytes(), b"\xff"].concat();
    peer.send("application/grpc", &[], &raw::framed(0, &cut))
        .await;
    let log = log.text();
    assert!(log.contains("hyper"), "the log is the one of this server");
    assert!(!log.contains(CANARY), "{log}");
}

async fn told(
    client: &mut ServerReflectionClient<Channel>,
    about: MessageRequest,
) -> MessageResponse {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(about),
    };
    let answers = client
        .server_reflection_info(tokio_stream::once(request))
        .await
        .unwrap();
    let answer = answers.into_inner().message().await.unwrap().unwrap();
    answer.message_response.unwrap()
}

#[tokio::test]
async fn reflection_tells_what_is_served_and_no_more() {
    let server = Server::with(PATIENT, true).await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let listed = told(&mut client, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(listed) = listed else {
        panic!("{listed:?}");
    };
    let mut names: Vec<_> = listed
        .service
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            SERVICE_NAME
        ]
    );
    for (symbol, is_known) in [
        (SERVICE_NAME, true),
        ("krane.v1.DecryptSecretsBlobRequest", true),
        ("krane.v1.SchedulerService", false),
        ("vault.v1.VaultService", false),
        ("ctrl.v1.ClusterService", false),
    ] {
        let about = MessageRequest::FileContainingSymbol(symbol.to_owned());
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(about),
        };
        let answers = client
            .server_reflection_info(tokio_stream::once(request))
            .await;
        let first = match answers {
            Ok(answers) => answers.into_inner().message().await,
            Err(status) => Err(status),
        };
        let found = first.is_ok_and(|answer| {
            answer.is_some_and(|answer| {
                matches!(
                    answer.message_response,
                    Some(MessageResponse::FileDescriptorResponse(_))
                )
            })
        });
        assert_eq!(found, is_known, "{symbol}");
    }
}

#[tokio::test]
async fn reflection_is_off_unless_it_is_asked_for() {
    let server = Server::start(PATIENT).await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let requests = tokio_stream::empty::<ServerReflectionRequest>();
    let refused = client.server_reflection_info(requests).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
}
