//! One desk behind two protocols: what it is asked, and what its callers are told.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::body::{Body, Bytes};
use http::{HeaderMap, Request, Version};
use http_body_util::BodyExt as _;
use krane_domain::secret::Secret;
use krane_ports::{DecryptRequest, Refused, SecretsDesk};
use krane_proto::krane::v1::{DecryptSecretsBlobRequest, DecryptSecretsBlobResponse};
use parking_lot::Mutex;
use prometheus::Registry;
use prost::Message as _;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::{DECRYPT, OPAQUE};
use crate::calls::CallFamilies;
use crate::health::{HealthView, Readiness};
use crate::port::RpcPort;
use crate::serve::{App, Peer};

struct Well;

impl HealthView for Well {
    fn live(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        Readiness::default()
    }
}

/// Remembers what it was asked and answers one thing.
struct Desk {
    asked: Mutex<Vec<DecryptRequest>>,
    answer: Result<BTreeMap<String, Secret>, Refused>,
}

#[async_trait]
impl SecretsDesk for Desk {
    async fn decrypt(&self, request: DecryptRequest) -> Result<BTreeMap<String, Secret>, Refused> {
        self.asked.lock().push(request);
        self.answer.clone()
    }
}

fn desk(answer: Result<&[(&str, &str)], Refused>) -> Arc<Desk> {
    let owned =
        |(name, value): &(&str, &str)| ((*name).to_owned(), Secret::new((*value).to_owned()));
    Arc::new(Desk {
        asked: Mutex::default(),
        answer: answer.map(|secrets| secrets.iter().map(owned).collect()),
    })
}

fn app(secrets: Option<Arc<dyn SecretsDesk>>) -> App {
    let port = RpcPort {
        health: Arc::new(Well),
        secrets,
        scheduler: None,
        reflection: false,
        families: CallFamilies::register(&Registry::new()).unwrap(),
    };
    port.app(CancellationToken::new())
}

fn message() -> DecryptSecretsBlobRequest {
    DecryptSecretsBlobRequest {
        encrypted_blob: Bytes::from_static(b"{\"secrets\":{}}"),
        environment_id: "env_1".to_owned(),
        token: "canary-token".to_owned(),
        deployment_id: "d_1".to_owned(),
    }
}

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 2, 3));

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Proto,
    Json,
    Grpc,
}

const WAYS: [Way; 3] = [Way::Proto, Way::Json, Way::Grpc];

/// Code, message, and the variables in the answer.
type Told = (Code, String, BTreeMap<String, String>);

async fn ask(app: App, way: Way) -> Told {
    let request = Request::post(DECRYPT).extension(Peer(PEER));
    let message = message();
    let request = match way {
        Way::Proto => request
            .header("content-type", "application/proto")
            .body(Body::from(message.encode_to_vec())),
        Way::Json => request
            .header("content-type", "application/json")
            .body(Body::from(serde_json::to_vec(&message).unwrap())),
        Way::Grpc => request
            .version(Version::HTTP_2)
            .header("content-type", "application/grpc")
            .body(Body::from(framed(0, &message.encode_to_vec()))),
    };
    let response = app.answer(request.unwrap()).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    if way == Way::Grpc {
        let trailers = body.trailers().cloned().unwrap_or_default();
        let (code, text) = status(&parts.headers)
            .or_else(|| status(&trailers))
            .unwrap();
        let body = body.to_bytes();
        let message = body.get(5..).unwrap_or_default();
        return (code, text, decoded(message));
    }
    let body = body.to_bytes();
    if parts.status.is_success() {
        let variables = match way {
            Way::Json => {
                serde_json::from_slice::<DecryptSecretsBlobResponse>(&body)
                    .unwrap()
                    .env_vars
            }
            Way::Proto | Way::Grpc => decoded(&body),
        };
        return (Code::Ok, String::new(), variables);
    }
    let error: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let code = *parts.extensions.get::<Code>().unwrap();
    assert_eq!(error["code"], krane_proto::codes::name(code));
    let text = error["message"].as_str().unwrap().to_owned();
    (code, text, BTreeMap::new())
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flag], &length[..], message].concat()
}

fn decoded(message: &[u8]) -> BTreeMap<String, String> {
    DecryptSecretsBlobResponse::decode(message)
        .unwrap()
        .env_vars
}

fn status(headers: &HeaderMap) -> Option<(Code, String)> {
    let status = tonic::Status::from_header_map(headers)?;
    Some((status.code(), status.message().to_owned()))
}

#[tokio::test]
async fn all_ways_ask_the_same_and_are_answered_the_same() {
    for way in WAYS {
        let desk = desk(Ok(&[("EMPTY", ""), ("NAME", "v\u{e4}lue \"1\"\n")]));
        let told = ask(app(Some(desk.clone())), way).await;
        let expected = [("EMPTY", ""), ("NAME", "v\u{e4}lue \"1\"\n")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(told, (Code::Ok, String::new(), expected.into()), "{way:?}");

        let asked = desk.asked.lock().pop().unwrap();
        assert_eq!(asked.blob, b"{\"secrets\":{}}", "{way:?}");
        assert_eq!(
            (&*asked.environment_id, &*asked.deployment_id),
            ("env_1", "d_1")
        );
        assert_eq!(asked.token.expose(), "canary-token");
        assert_eq!(asked.peer, Some(PEER), "{way:?}");
    }
}

#[tokio::test]
async fn no_secrets_are_an_empty_answer() {
    for way in WAYS {
        let told = ask(app(Some(desk(Ok(&[])))), way).await;
        assert_eq!(told, (Code::Ok, String::new(), BTreeMap::new()), "{way:?}");
    }
}

#[tokio::test]
async fn a_refusal_tells_its_code_and_nothing_else() {
    for (refused, code) in [
        (Refused::Unauthenticated, Code::Unauthenticated),
        (Refused::ResourceExhausted, Code::ResourceExhausted),
        (Refused::Unavailable, Code::Unavailable),
        (Refused::Internal, Code::Internal),
    ] {
        for way in WAYS {
            let told = ask(app(Some(desk(Err(refused)))), way).await;
            assert_eq!(told, (code, OPAQUE.to_owned(), BTreeMap::new()), "{way:?}");
        }
    }
}

struct Panics;

#[async_trait]
impl SecretsDesk for Panics {
    async fn decrypt(&self, request: DecryptRequest) -> Result<BTreeMap<String, Secret>, Refused> {
        panic!("with {}", request.token.expose())
    }
}

#[tokio::test]
async fn a_panic_of_the_desk_is_an_internal_error_without_its_text() {
    for way in WAYS {
        let told = ask(app(Some(Arc::new(Panics))), way).await;
        assert_eq!(
            told,
            (Code::Internal, "internal error".to_owned(), BTreeMap::new())
        );
    }
}

#[tokio::test]
async fn without_a_desk_the_method_is_unimplemented() {
    let request = |kind: &str, version| {
        let request = Request::post(DECRYPT).version(version);
        let request = request.header("content-type", kind);
        request.body(Body::from(framed(0, &[]))).unwrap()
    };
    for kind in ["application/proto", "application/json"] {
        let response = app(None).answer(request(kind, Version::HTTP_11)).await;
        assert_eq!(response.status(), 501, "{kind}");
    }
    let response = app(None)
        .answer(request("application/grpc", Version::HTTP_2))
        .await;
    assert_eq!(status(response.headers()).unwrap().0, Code::Unimplemented);
}
