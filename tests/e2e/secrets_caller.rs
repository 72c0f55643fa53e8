//! The secrets service against a client made with connect-go, as the one in the original's pods is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail them"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use krane_domain::secret::Secret;
use krane_ports::{DecryptRequest, Refused, SecretsDesk};
use krane_server::calls::CallFamilies;
use krane_server::health::{HealthView, Readiness};
use krane_server::port::RpcPort;
use krane_server::serve::{Patience, ServeError, serve};
use krane_testharness::ConnectGo;
use prometheus::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The ways a client may go: protocol, version of HTTP, whether in JSON.
pub(crate) const WAYS: [(&str, u8, bool); 5] = [
    ("connect", 1, false),
    ("connect", 1, true),
    ("connect", 2, false),
    ("connect", 2, true),
    ("grpc", 2, false),
];

struct Desk;

#[async_trait]
impl SecretsDesk for Desk {
    async fn decrypt(&self, request: DecryptRequest) -> Result<BTreeMap<String, Secret>, Refused> {
        match request.deployment_id.as_str() {
            "unauthenticated" => Err(Refused::Unauthenticated),
            "resource_exhausted" => Err(Refused::ResourceExhausted),
            "unavailable" => Err(Refused::Unavailable),
            "internal" => Err(Refused::Internal),
            "wait" => std::future::pending().await,
            _ => Ok([
                ("BLOB", String::from_utf8(request.blob).unwrap()),
                ("ENVIRONMENT", request.environment_id),
                ("TOKEN", request.token.expose().to_owned()),
                ("PEER", request.peer.unwrap().to_string()),
                ("TEXT", "z\u{fc}rich \"1\"\n\0\u{1F600}".to_owned()),
            ]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .collect()),
        }
    }
}

struct Well;

impl HealthView for Well {
    fn live(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        Readiness::default()
    }
}

/// What a call led to.
#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Told {
    code: String,
    message: String,
    variables: Option<BTreeMap<String, String>>,
    /// The version of HTTP of the answer.
    protocol: String,
}

/// A server and a client of it; both end with this.
struct Pair {
    client: ConnectGo,
    _server: JoinSet<Result<(), ServeError>>,
}

impl Pair {
    async fn start(secrets: Option<Arc<dyn SecretsDesk>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let port = RpcPort {
            health: Arc::new(Well),
            secrets,
            scheduler: None,
            reflection: false,
            families: CallFamilies::register(&Registry::new()).unwrap(),
        };
        let stop = CancellationToken::new();
        let patience = Patience::draining(Duration::from_secs(1));
        let mut server = JoinSet::new();
        server.spawn(serve(
            listener,
            port.app(stop.clone()),
            None,
            patience,
            stop,
        ));
        let client = ConnectGo::start(env!("CARGO_TARGET_TMPDIR"), &["-call", &url]).await;
        Self {
            client: client.unwrap(),
            _server: server,
        }
    }

    async fn call(&mut self, way: (&str, u8, bool), more: &Value) -> Told {
        let mut order = json!({
            "protocol": way.0,
            "http": way.1,
            "json": way.2,
            "blob": STANDARD.encode("{\"secrets\":{}}"),
            "environment": "env_1",
            "token": "token_1",
            "deployment": "d_1",
        });
        let fields = more.as_object().unwrap().clone();
        order.as_object_mut().unwrap().extend(fields);
        self.client.tell(&order).await.unwrap();
        self.client.hear(Duration::from_secs(30)).await.unwrap()
    }
}

#[tokio::test]
async fn secrets_are_the_same_in_every_way() {
    let mut pair = Pair::start(Some(Arc::new(Desk))).await;
    for way in WAYS {
        let told = pair.call(way, &json!({})).await;
        let expected = [
            ("BLOB", "{\"secrets\":{}}"),
            ("ENVIRONMENT", "env_1"),
            ("PEER", "127.0.0.1"),
            ("TEXT", "z\u{fc}rich \"1\"\n\0\u{1F600}"),
            ("TOKEN", "token_1"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(told.code, "ok", "{way:?}: {told:?}");
        assert_eq!(told.variables, Some(expected.into()), "{way:?}");
        assert!(
            told.protocol.starts_with(&format!("HTTP/{}", way.1)),
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn refusals_are_the_same_in_every_way() {
    let mut pair = Pair::start(Some(Arc::new(Desk))).await;
    for code in [
        "unauthenticated",
        "resource_exhausted",
        "unavailable",
        "internal",
    ] {
        for way in WAYS {
            let told = pair.call(way, &json!({ "deployment": code })).await;
            let said = (told.code.as_str(), told.message.as_str());
            assert_eq!(said, (code, "the request cannot be answered"), "{way:?}");
        }
    }
}

#[tokio::test]
async fn bad_calls_are_refused_in_every_way() {
    let mut pair = Pair::start(Some(Arc::new(Desk))).await;
    // More than 2 MiB in every codec, and more than is read of it: whoever is still writing then may
    // see the connection break before it sees the answer.
    for (size, codes) in [
        (2 * 1024 * 1024, &["resource_exhausted"][..]),
        (8 * 1024 * 1024, &["resource_exhausted", "unavailable"]),
    ] {
        let large = json!({ "blob": STANDARD.encode(vec![b'x'; size]) });
        for way in WAYS {
            let told = pair.call(way, &large).await;
            assert!(codes.contains(&&*told.code), "{way:?} {size}: {told:?}");
        }
    }
    for way in WAYS {
        let told = pair.call(way, &json!({ "gzip": true })).await;
        assert_eq!(told.code, "unimplemented", "{way:?}: {told:?}");
        let told = pair
            .call(way, &json!({ "deployment": "wait", "timeout_ms": 50 }))
            .await;
        assert_eq!(told.code, "deadline_exceeded", "{way:?}: {told:?}");
        let told = pair.call(way, &json!({})).await;
        assert_eq!(told.code, "ok", "{way:?}: the connection is none the worse");
    }
    // gRPC needs trailers, which HTTP/1.1 does not have here.
    let told = pair.call(("grpc", 1, false), &json!({})).await;
    assert_ne!(told.code, "ok", "{told:?}");
}

#[tokio::test]
async fn without_a_vault_the_method_is_unimplemented() {
    let mut pair = Pair::start(None).await;
    for way in WAYS {
        let told = pair.call(way, &json!({})).await;
        assert_eq!(told.code, "unimplemented", "{way:?}: {told:?}");
    }
}
