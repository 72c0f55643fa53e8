//! How packets get to the API server, and how it is found out that they do not.
//!
//! kube's own stack without its retries, over a TCP connection that is probed. It speaks HTTP/1.1,
//! which has no PING of its own.

use std::time::Duration;

use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tokio::time::timeout;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

/// To the TCP connection, all addresses of a name together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// To the end of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// When a connection is given up although nobody closed it: apart from the limits of calls, so that
/// those may be long (D49).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// After this silence the other side is probed, and again and again; whole seconds.
    pub probe: Duration,
    /// So long nothing was acknowledged: neither what was sent nor a probe.
    pub dead_after: Duration,
}

impl Default for Liveness {
    /// A connection that dies while nothing is sent is found dead after 15 s, at the third probe.
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(5),
            dead_after: Duration::from_secs(14),
        }
    }
}

/// A client for these credentials. Sends nothing yet.
pub(super) fn client(config: &Config, liveness: Liveness) -> Result<Client, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(liveness.probe));
    tcp.set_keepalive_interval(Some(liveness.probe));
    tcp.set_tcp_user_timeout(Some(liveness.dead_after));
    let connector = config
        .rustls_https_connector_with_connector(tcp)?
        .map_future(|opening| {
            Box::pin(async move {
                let opened = timeout(HANDSHAKE_TIMEOUT, opening).await;
                opened.unwrap_or_else(|_| Err("the TLS handshake did not end in time".into()))
            })
        });
    let http = HttpClient::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}
