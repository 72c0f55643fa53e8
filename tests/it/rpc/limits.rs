//! How much may be sent, and how much at once.

use krane_server::calls::MOST_CALLS_OF_ONE;
use prost::Message as _;
use tokio::task::JoinSet;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::{ANSWER, DECRYPT, Server, message, post, raw};
use crate::health::{PATIENT, ask, get, read_to_close};

#[tokio::test]
async fn a_header_that_is_too_large_is_refused() {
    let server = Server::start(PATIENT).await;
    let long = format!("x-long: {}", "x".repeat(16 * 1024));
    let many: Vec<_> = (0..101).map(|number| format!("x-{number}: 1")).collect();
    for header in [long, many.join("\r\n")] {
        let mut stream = server.connect().await;
        let request = post("d_1").replace("host: krane", &format!("host: krane\r\n{header}"));
        let answer = ask(&mut stream, &request).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
        read_to_close(&mut stream).await;
    }
    let mut peer = raw::Peer::connect(&server).await;
    let long = "x".repeat(16 * 1024);
    let body = message("d_1").encode_to_vec();
    let answer = peer
        .send("application/proto", &[("x-long", &long)], &body)
        .await;
    assert_eq!(answer.status, 431);
    assert_eq!(peer.send("application/proto", &[], &body).await.status, 200);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_in_both_protocols() {
    let server = Server::start(PATIENT).await;
    let mut large = message("d_1");
    large.encrypted_blob = vec![b'x'; 2 * 1024 * 1024].into();
    let refused = server
        .grpc()
        .await
        .decrypt_secrets_blob(large.clone())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);

    let body = String::from_utf8(serde_json::to_vec(&large).unwrap()).unwrap();
    let mut stream = server.connect().await;
    let answer = ask(&mut stream, &super::post_body(&body)).await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(body.contains("\"code\":\"resource_exhausted\""), "{body}");
    assert!(body.contains(refused.message()), "{body}");
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused_at_once_and_probes_answered() {
    let server = Server::start(PATIENT).await;
    let mut peer = raw::Peer::connect(&server).await;
    let waits = message("wait").encode_to_vec();
    let mut waiting = JoinSet::new();
    for _ in 0..MOST_CALLS_OF_ONE {
        waiting.spawn(peer.begin("application/proto", &[], &waits));
    }
    server
        .entered(u32::try_from(MOST_CALLS_OF_ONE).unwrap())
        .await;

    let mut stream = server.connect().await;
    let answer = ask(&mut stream, &post("d_1")).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains(r#"{"code":"unavailable","message":"too many calls at once"}"#));
    let refused = server
        .grpc()
        .await
        .decrypt_secrets_blob(message("d_1"))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::Unavailable, "too many calls at once")
    );
    let mut health = HealthClient::new(server.channel().await);
    health.check(HealthCheckRequest::default()).await.unwrap();
    let mut probe = server.connect().await;
    assert!(
        ask(&mut probe, &get("/health/live"))
            .await
            .starts_with("HTTP/1.1 200")
    );

    server.desk.released.add_permits(MOST_CALLS_OF_ONE);
    while let Some(answer) = waiting.join_next().await {
        assert_eq!(answer.unwrap().status, 200);
    }
    let mut stream = server.connect().await;
    assert!(
        ask(&mut stream, &post("d_1")).await.ends_with(ANSWER),
        "there is room again"
    );
    let refused = format!(
        "krane_rpc_requests_total{{code=\"unavailable\",method=\"{}\"}} 2\n",
        DECRYPT.trim_start_matches('/')
    );
    assert!(server.metrics().contains(&refused), "{}", server.metrics());
}
