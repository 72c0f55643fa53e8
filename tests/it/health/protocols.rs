//! Everything that may arrive on one port.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::routing::get as on_get;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use krane_admin::metrics;
use krane_server::serve::{App, serve};
use krane_server::tls::server_config;
use krane_settings::RpcTls;
use prometheus::Registry;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::{PATIENT, Server, Shown, ask, get};

async fn grpc(server: &Server) -> HealthClient<tonic::transport::Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.address)).unwrap();
    HealthClient::new(endpoint.connect().await.unwrap())
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

#[tokio::test]
async fn http1_keeps_its_connection_between_requests() {
    let server = Server::start(PATIENT).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        let answer = ask(&mut stream, &get("/health/ready")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(
            answer.ends_with("{\"status\":\"ok\",\"checks\":{\"vault\":\"fail\"}}\n"),
            "{answer}"
        );
    }
    server.shown.ready.store(false, Ordering::SeqCst);
    let answer = ask(&mut stream, &get("/health/ready")).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(
        answer.ends_with("{\"status\":\"not started\"}\n"),
        "{answer}"
    );
    let answer = ask(&mut stream, &get("/nothing/here")).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[tokio::test]
async fn plain_http_works_over_h2c_with_prior_knowledge() {
    let server = Server::start(PATIENT).await;
    let stream = TokioIo::new(server.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
            .await
            .unwrap();
    let mut background = JoinSet::new();
    background.spawn(connection);
    let request = http::Request::get(format!("http://{}/health/live", server.address));
    let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.version()),
        (200, http::Version::HTTP_2)
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], b"{\"status\":\"ok\"}\n");
}

#[tokio::test]
async fn the_grpc_health_service_follows_readiness() {
    let server = Server::start(PATIENT).await;
    let mut client = grpc(&server).await;
    for service in ["", "krane.v1.SecretsService"] {
        let answer = client.check(about(service)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
    }
    let unknown = client.check(about("krane.v1.Nothing")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);

    let mut changes = client.watch(about("")).await.unwrap().into_inner();
    let first = changes.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    server.shown.ready.store(false, Ordering::SeqCst);
    let second = changes.message().await.unwrap().unwrap();
    assert_eq!(second.status(), ServingStatus::NotServing);

    let mut unknown = client
        .watch(about("krane.v1.Nothing"))
        .await
        .unwrap()
        .into_inner();
    let answer = unknown.message().await.unwrap().unwrap();
    assert_eq!(answer.status(), ServingStatus::ServiceUnknown);
}

#[tokio::test]
async fn grpc_without_trailers_and_grpc_web_are_refused() {
    let server = Server::start(PATIENT).await;
    let mut stream = server.connect().await;
    let post = |content_type: &str| {
        format!(
            "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: krane\r\n\
             content-type: {content_type}\r\ncontent-length: 0\r\n\r\n"
        )
    };
    for (content_type, code) in [
        ("application/grpc", "505"),
        ("application/grpc+proto", "505"),
        ("application/grpc-web", "415"),
        ("application/grpc-web-text", "415"),
        ("application/json", "404"),
    ] {
        let answer = ask(&mut stream, &post(content_type)).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code}")),
            "{content_type}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_panic_in_a_handler_costs_one_request() {
    let panics = Router::new().route("/panic", on_get(async || -> () { panic!("on purpose") }));
    let server = Server::with(PATIENT, panics, None).await;
    let mut stream = server.connect().await;
    let answer = ask(&mut stream, &get("/panic")).await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(!answer.contains("on purpose"), "{answer}");
    let answer = ask(&mut stream, &get("/health/live")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn tls_serves_the_same_and_names_http2() {
    let dir = tempfile::tempdir().unwrap();
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    std::fs::write(&cert, signed.cert.pem()).unwrap();
    std::fs::write(&key, signed.signing_key.serialize_pem()).unwrap();
    let tls = server_config(&RpcTls { cert, key }).unwrap();
    let server = Server::with(PATIENT, Router::new(), Some(tls)).await;

    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from(signed.cert.der().to_vec()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector
        .connect(name, server.connect().await)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let mut background = JoinSet::new();
    background.spawn(connection);
    let request = http::Request::get("https://localhost/health/live");
    let response = sender
        .send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap())
        .await;
    assert_eq!(response.unwrap().status(), 200);
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_with_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let pem = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (one, other) = (pem(), pem());
    let good = file("good.crt", &one.cert.pem());
    let key = file("good.key", &one.signing_key.serialize_pem());
    let foreign = file("foreign.key", &other.signing_key.serialize_pem());
    let empty = file("empty", "");
    let error = |cert: &std::path::Path, key: &std::path::Path| {
        let tls = RpcTls {
            cert: cert.to_owned(),
            key: key.to_owned(),
        };
        server_config(&tls).unwrap_err().to_string()
    };
    assert!(error(&empty, &key).starts_with("rpc.tls.cert: "));
    assert!(error(&good, &empty).starts_with("rpc.tls.key: "));
    assert_eq!(
        error(&good, &foreign),
        "rpc.tls.cert and rpc.tls.key cannot be used together"
    );
}

#[tokio::test]
async fn the_metrics_port_serves_metrics_and_health() {
    let registry = Registry::new();
    krane::version::register_build_info(&registry).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = App::new(metrics::router(registry, Arc::new(Shown::default())));
    let mut background = JoinSet::new();
    background.spawn(serve(
        listener,
        app,
        None,
        PATIENT,
        CancellationToken::new(),
    ));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let answer = ask(&mut stream, &get("/metrics")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("content-type: text/plain; version=0.0.4"),
        "{answer}"
    );
    assert!(answer.contains("\nkrane_build_info{commit=\""), "{answer}");
    let answer = ask(&mut stream, &get("/health/live")).await;
    assert!(answer.ends_with("{\"status\":\"ok\"}\n"), "{answer}");
}
