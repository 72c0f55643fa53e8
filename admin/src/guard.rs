//! Who may look: checks before every answer, and headers on it.
//!
//! On a loopback address the Host header has to be one too, so that no web page can reach this
//! one through a name of its own (DNS rebinding). With a token set, every request has to bring
//! it: programs as `Authorization: Bearer`, browsers as the password of HTTP Basic, which needs
//! no session, no cookie and no script.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use tokio::time::timeout;

use krane_server::authorization::{credentials, is_token};
use krane_settings::SecretSource;

/// From the end of a request's head to the head of its answer: a body that does not come holds no
/// connection for longer. What an answer streams afterwards may take as long as it likes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Everything from here, and nothing that runs but the page's own file.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// What is asked of a request.
#[derive(Clone, Debug)]
pub struct Access {
    /// Whether the server listens on a loopback address.
    is_loopback: bool,
    /// What every request has to bring.
    token: Option<SecretSource>,
}

impl Access {
    /// For a server on this address.
    #[must_use]
    pub const fn new(listen: SocketAddr, token: Option<SecretSource>) -> Self {
        Self {
            is_loopback: listen.ip().is_loopback(),
            token,
        }
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        if self.is_loopback && !host_of(uri, headers).is_some_and(is_loopback_name) {
            return Err(Refused::Host);
        }
        match &self.token {
            None if self.is_loopback => Ok(()),
            // Settings do not let it come to this.
            None => Err(Refused::Token),
            Some(token) => {
                let token = token.current();
                let is_right = presented(headers).is_some_and(|given| is_token(&given, &token));
                is_right.then_some(()).ok_or(Refused::Token)
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Refused {
    Host,
    Token,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Host => (
                StatusCode::FORBIDDEN,
                "this page is only shown under a loopback name: open it as http://localhost with \
                 the port of admin.listen or of kubectl port-forward\n",
            )
                .into_response(),
            Self::Token => (
                StatusCode::UNAUTHORIZED,
                [(WWW_AUTHENTICATE, "Basic realm=\"krane\", charset=\"UTF-8\"")],
                "this page needs the token of admin.token: as \"Authorization: Bearer\", or as the \
                 password of any user name\n",
            )
                .into_response(),
        }
    }
}

/// Answers only who may look, and says how the answer may be used.
pub async fn guard(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let mut response = match access.check(request.uri(), request.headers()) {
        Ok(()) => match timeout(PATIENCE, next.run(request)).await {
            Ok(response) => response,
            Err(_) => (StatusCode::REQUEST_TIMEOUT, "this request took too long\n").into_response(),
        },
        Err(refused) => refused.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whether a form was sent by a page of this server: by what browsers say of it, if they do.
pub fn is_from_here(uri: &Uri, headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let origin = origin.to_str().ok();
    let origin = origin.and_then(|origin| origin.split_once("://"));
    origin.map(|(_, host)| host) == host_of(uri, headers)
}

fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let mut hosts = headers.get_all(HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    match (uri.authority(), more) {
        (_, Some(_)) => None,
        (Some(authority), None) => Some(authority.as_str()),
        (None, None) => host?.to_str().ok(),
    }
}

/// Whether this is a loopback name with or without a port, and nothing beside it.
fn is_loopback_name(authority: &str) -> bool {
    let is_port = |text: &str| {
        text.strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok())
    };
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(name, port)| {
            let is_loopback = name.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback());
            is_loopback && (port.is_empty() || is_port(port))
        });
    }
    let (name, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
    let is_loopback = name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
    is_loopback && (port.is_empty() || is_port(port))
}

/// The token a request brings.
fn presented(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    if let Some(token) = credentials(value, "bearer") {
        return Some(token.to_vec());
    }
    let pair = BASE64_STANDARD.decode(credentials(value, "basic")?).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair.get(colon + 1..)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::is_loopback_name;

    #[test]
    fn only_names_that_cannot_be_rebound_are_loopback() {
        for host in [
            "localhost",
            "LOCALHOST:9091",
            "127.0.0.1:1",
            "127.8.8.8",
            "[::1]:9091",
        ] {
            assert!(is_loopback_name(host), "{host}");
        }
        for host in [
            "",
            "localhost.evil.example",
            "evil.example:9091",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "localhost.",
            "localhost:80@evil.example",
            "localhost@evil.example",
            "[::1]evil.example",
            "[::1]:80@evil.example",
            "[127.0.0.1]",
            "::1",
            "localhost:",
            "localhost:99999",
        ] {
            assert!(!is_loopback_name(host), "{host}");
        }
    }
}
