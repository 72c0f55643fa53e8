//! One unary call of the Connect protocol with protobuf bodies.
//!
//! Connections are kept and used again. One that the vault had closed before a request went out
//! costs nothing: the request goes out over another one. Nothing else is tried twice.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use krane_settings::SecretSource;
use prost::Message;
use rustls::{ClientConfig, RootCertStore};
use secrecy::ExposeSecret as _;
use zeroize::Zeroizing;

use super::failure::Failure;

/// No answer is longer, in bytes.
const LARGEST_ANSWER: usize = 16 << 20;
/// Connections that are kept though nothing runs over them.
const IDLE_CONNECTIONS: usize = 32;
/// How long they are kept; servers close theirs after a minute or more.
const IDLE: Duration = Duration::from_secs(50);
/// Between two pings of a busy HTTP/2 connection, and for the answer to one: a connection that
/// died silently must not swallow call after call.
const PING: Duration = Duration::from_secs(5);

const PROTOCOL_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("connect-protocol-version"),
    HeaderValue::from_static("1"),
);
pub(super) const PROTO: HeaderValue = HeaderValue::from_static("application/proto");

/// Why the service cannot be addressed; each is a mistake in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum RemoteSetupError {
    /// The system trusts nobody.
    #[error("the system has no certificate authorities: install them, or use http:// without TLS")]
    NoRoots,
    /// The TLS library refuses its own settings.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// A method of the service.
#[derive(Clone, Copy)]
pub(super) struct Method(&'static str);

impl Method {
    /// The method with this path.
    pub(super) const fn new(path: &'static str) -> Self {
        Self(path)
    }
}

/// Calls methods of one service.
pub(super) struct Client {
    base: Uri,
    token: Option<SecretSource>,
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Client {
    pub(super) fn new(
        base: &Uri,
        token: Option<SecretSource>,
        connect: Duration,
    ) -> Result<Self, RemoteSetupError> {
        let mut roots = RootCertStore::empty();
        if base.scheme() == Some(&Scheme::HTTPS) {
            // Some systems ship certificates that nobody can parse; the others are still good.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(RemoteSetupError::NoRoots);
            }
        }
        Self::trusting(base, token, connect, roots)
    }

    pub(super) fn trusting(
        base: &Uri,
        token: Option<SecretSource>,
        connect: Duration,
        roots: RootCertStore,
    ) -> Result<Self, RemoteSetupError> {
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(RemoteSetupError::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING)
            .build(connector);
        Ok(Self {
            base: base.clone(),
            token,
            http,
        })
    }

    /// Calls a method once. Who calls bounds the time.
    pub(super) async fn call<T: Message + Default>(
        &self,
        method: Method,
        message: &impl Message,
    ) -> Result<T, Failure> {
        let request = self.request(method, message)?;
        let answer = self.http.request(request).await;
        let (head, body) = answer.map_err(|error| Failure::lost(&error))?.into_parts();
        let body = read(body).await;
        if head.status != StatusCode::OK {
            // What the vault says besides its code is not looked at: it may be our own request.
            return Err(Failure::of_answer(head.status, body.ok().as_deref()));
        }
        if head.headers.get(CONTENT_TYPE) != Some(&PROTO) {
            return Err(Failure::no_vault());
        }
        T::decode(&body?[..]).map_err(|_| Failure::undecodable())
    }

    fn request(
        &self,
        method: Method,
        message: &impl Message,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::new(Full::new(Bytes::from(message.encode_to_vec())));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.uri(method).ok_or_else(Failure::no_address)?;
        let headers = request.headers_mut();
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(krane_proto::USER_AGENT),
        );
        headers.insert(CONTENT_TYPE, PROTO);
        headers.insert(PROTOCOL_VERSION.0, PROTOCOL_VERSION.1);
        if let Some(token) = &self.token {
            let token = token.current();
            let bearer = Zeroizing::new(format!("Bearer {}", token.expose_secret()));
            let mut bearer =
                HeaderValue::from_str(&bearer).map_err(|_| Failure::unusable_token())?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        Ok(request)
    }

    /// The base address may have a path.
    fn uri(&self, method: Method) -> Option<Uri> {
        let base = self.base.path().trim_end_matches('/');
        let path = if base.is_empty() {
            PathAndQuery::from_static(method.0)
        } else {
            format!("{base}{}", method.0).parse().ok()?
        };
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).ok()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// The body of an answer, wiped when it goes.
async fn read(body: Incoming) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut body = Limited::new(body, LARGEST_ANSWER);
    let mut bytes = Zeroizing::new(Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::broken_answer(&*error))?;
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}
