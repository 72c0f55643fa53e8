//! A vault over HTTP/1.1, as the Go one is: Connect unary, without h2c. It knows what it was given.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use krane_proto::vault::v1::{DecryptBulkRequest, DecryptBulkResponse};
use krane_testcontract::tokens::Backend;
use krane_testharness::{CANARY, Outcome};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::task::JoinSet;

/// The slow one answers after this.
const SLOW: Duration = Duration::from_secs(2);
/// What krane has to send.
pub(super) const TOKEN: &str = "canary-5f1c0d-vault";

/// The vault; it ends with this.
pub(super) struct Vault {
    shared: Arc<Shared>,
    port: u16,
    _serving: JoinSet<()>,
}

struct Shared {
    values: Mutex<BTreeMap<(String, String), String>>,
    state: Mutex<Backend>,
    calls: AtomicU64,
}

impl Vault {
    pub(super) async fn start() -> Outcome<Self> {
        let shared = Arc::new(Shared {
            values: Mutex::default(),
            state: Mutex::new(Backend::Well),
            calls: AtomicU64::new(0),
        });
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let routes = Router::new()
            .route("/vault.v1.VaultService/DecryptBulk", post(decrypt))
            .with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self {
            shared,
            port,
            _serving: serving,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn set(&self, state: Backend) {
        *self.shared.state.lock() = state;
    }

    pub(super) fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// The blob of these variables, each with a canary in its value.
    pub(super) fn blob(&self, key_ring: &str, variables: &[(&str, &str)]) -> Vec<u8> {
        let mut values = self.shared.values.lock();
        let sealed = variables.iter().map(|(name, plaintext)| {
            let ciphertext = format!("{CANARY}-sealed-{}", values.len());
            let key = (key_ring.to_owned(), ciphertext.clone());
            values.insert(key, format!("{CANARY}-{plaintext}"));
            ((*name).to_owned(), serde_json::Value::from(ciphertext))
        });
        let secrets: serde_json::Map<_, _> = sealed.collect();
        serde_json::json!({ "secrets": secrets })
            .to_string()
            .into_bytes()
    }
}

async fn decrypt(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    shared.calls.fetch_add(1, Ordering::Relaxed);
    let refused = |status: StatusCode, code: &str| {
        let words = format!(r#"{{"code":"{code}","message":"{CANARY} must not be repeated"}}"#);
        (status, [(CONTENT_TYPE, "application/json")], words).into_response()
    };
    let wanted = format!("Bearer {TOKEN}");
    let bearer = headers.get(AUTHORIZATION);
    if bearer.is_none_or(|bearer| bearer.as_bytes() != wanted.as_bytes()) {
        return refused(StatusCode::UNAUTHORIZED, "unauthenticated");
    }
    let Ok(request) = DecryptBulkRequest::decode(body) else {
        return refused(StatusCode::BAD_REQUEST, "invalid_argument");
    };
    let state = *shared.state.lock();
    match state {
        Backend::Failing => return refused(StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        Backend::Slow => tokio::time::sleep(SLOW).await,
        Backend::Well | Backend::Partial => {}
    }
    let values = shared.values.lock();
    let mut items = std::collections::HashMap::new();
    for (name, ciphertext) in request.items {
        match values.get(&(request.keyring.clone(), ciphertext)) {
            Some(plaintext) => items.insert(name, plaintext.clone()),
            None => return refused(StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
    }
    if state == Backend::Partial {
        items.remove("A");
    }
    let answer = DecryptBulkResponse { items }.encode_to_vec();
    ([(CONTENT_TYPE, "application/proto")], answer).into_response()
}
