//! The control plane as the port [`ControlPlane`]: gRPC over one HTTP/2 connection of its own, and its messages as values of
//! the domain.
//!
//! The connection is hyper's, not tonic's `Channel`: that one appends itself to the user agent,
//! shows neither whether the server ever spoke nor why a connection ended, and cannot slow its
//! pings down when the server asks for it.

mod call;
mod dial;
mod endpoint;
mod failure;
mod heard;
mod link;
pub mod reach;
mod unary;
mod watch;
pub mod wire;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::ids::ObjectKey;
use krane_domain::report::Report;
use krane_ports::{Answer, ControlPlane, Question, RpcFailure, RpcFailureKind, StreamEvent};
use secrecy::SecretString;
use tonic::Code;

use endpoint::Endpoint;
pub use endpoint::{EndpointError, check, host_tls};
use failure::Failure;
use link::Link;
use wire::Wire;

/// Gives the bearer token as it is now; asked for each request.
pub type TokenSource = Arc<dyn Fn() -> SecretString + Send + Sync>;

/// Hears of every call that is over, for `krane_control_plane_requests_total`.
pub trait CallObserver: Send + Sync + 'static {
    /// A call of this method ended with this gRPC code, in snake case. Both are closed sets.
    fn call(&self, method: &'static str, code: &'static str);
}

/// Hears and forgets.
impl CallObserver for () {
    fn call(&self, _: &'static str, _: &'static str) {}
}

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For TCP and TLS.
    pub connect: Duration,
    /// For a whole unary call, a second try included.
    pub unary: Duration,
    /// How long the opening of a stream has to go without an error to count as open.
    pub open: Duration,
    /// Between two pings.
    pub ping_interval: Duration,
    /// The most that [`Timing::ping_interval`] grows to when the server complains.
    pub longest_ping_interval: Duration,
    /// For the answer to a ping.
    pub ping_timeout: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            unary: Duration::from_secs(30),
            open: Duration::from_secs(1),
            ping_interval: Duration::from_secs(10),
            longest_ping_interval: Duration::from_mins(5),
            ping_timeout: Duration::from_secs(5),
        }
    }
}

/// What it takes to reach the control plane.
#[derive(Clone)]
pub struct ControlPlaneAccess {
    /// Base URL, `http://` for HTTP/2 without TLS; may have a path.
    pub url: String,
    /// PEM file with the only authorities to trust, instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// The bearer token.
    pub token: TokenSource,
    /// The limits in time.
    pub timing: Timing,
    /// Who counts the calls.
    pub observer: Arc<dyn CallObserver>,
}

impl fmt::Debug for ControlPlaneAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlaneAccess")
            .field("url", &self.url)
            .field("ca_file", &self.ca_file)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// The control plane over a connection of its own, made at the first call and whenever it is lost.
pub struct GrpcControlPlane {
    shared: Arc<Shared>,
}

/// What calls and streams need.
struct Shared {
    link: Link,
    wire: Wire,
    token: TokenSource,
    timing: Timing,
    observer: Arc<dyn CallObserver>,
}

impl GrpcControlPlane {
    /// Checks the address and reads the authorities; connects to nothing yet.
    pub fn new(access: &ControlPlaneAccess, wire: Wire) -> Result<Self, EndpointError> {
        let endpoint = Endpoint::new(&access.url, access.ca_file.as_deref())?;
        Ok(Self {
            shared: Arc::new(Shared {
                link: Link::new(endpoint, access.timing),
                wire,
                token: Arc::clone(&access.token),
                timing: access.timing,
                observer: Arc::clone(&access.observer),
            }),
        })
    }
}

/// How the control plane answered a question about nothing.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// It takes the token: it answered, or said that it knows no such object.
    pub accepted: Result<(), RpcFailure>,
    /// The header `Date` of its answer.
    pub date: Option<String>,
}

impl GrpcControlPlane {
    /// Asks once about an object that cannot exist. Changes nothing there.
    pub async fn shake_hands(&self) -> Handshake {
        let question = Question {
            key: ObjectKey::new("krane-check", "krane-check"),
            id: "krane-check".into(),
        };
        let request = self.shared.wire.question(&question);
        let (answer, date) = unary::dated(&self.shared, &request).await;
        let accepted = match answer {
            Err(failure) if !is_not_found(&failure) => Err(failure.into()),
            Ok(_) | Err(_) => Ok(()),
        };
        Handshake { accepted, date }
    }
}

impl fmt::Debug for GrpcControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcControlPlane")
            .field("link", &self.shared.link)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ControlPlane for GrpcControlPlane {
    async fn watch(&self, cursor: u64) -> BoxStream<'static, StreamEvent> {
        watch::watch(Arc::clone(&self.shared), cursor)
    }

    async fn desired(&self, question: &Question) -> Result<Answer, RpcFailure> {
        let request = self.shared.wire.question(question);
        match unary::call(&self.shared, &request).await {
            Ok(message) => Ok(self.shared.wire.answer(&message)),
            Err(failure) if is_not_found(&failure) => Ok(Answer::NotFound),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn report(&self, report: &Report) -> Result<(), RpcFailure> {
        let request = self.shared.wire.report(report).ok_or_else(|| RpcFailure {
            kind: RpcFailureKind::Answered,
            code: "internal",
            message: "nothing like this is reported about objects of this kind".to_owned(),
        })?;
        unary::call(&self.shared, &request).await?;
        Ok(())
    }

    async fn heartbeat(&self) -> Result<(), RpcFailure> {
        let request = self.shared.wire.heartbeat();
        unary::call(&self.shared, &request).await?;
        Ok(())
    }
}

/// An object is deleted on this, so it must be the server's own word.
fn is_not_found(failure: &Failure) -> bool {
    failure.code == Code::NotFound && failure.kind == RpcFailureKind::Answered
}
