//! The way to the API server: one client, built again when its credentials or its worker fail.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header::{HeaderValue, USER_AGENT};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::words::cut;
use krane_ports::WEBHOOKS;
use kube::Client;
use kube::client::{AuthError, Body};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{Instrument as _, Span, field};

use super::access::{AccessError, KubeAccess};
use super::reply::{Reply, chain};
use super::request::{Call, Verb};
use super::transport::{self, Liveness};

/// A credential plugin may ask a cloud; one that waits for a person never ends.
const BUILD_LIMIT: Duration = Duration::from_secs(30);

/// Hears of every request, for `rest_client_requests_total` and
/// `rest_client_request_duration_seconds`.
pub trait ApiObserver: Send + Sync + 'static {
    /// A request is over.
    fn request(&self, done: &RequestDone<'_>);
}

/// Hears and forgets.
impl ApiObserver for () {
    fn request(&self, _: &RequestDone<'_>) {}
}

/// A request that is over.
#[derive(Clone, Copy, Debug)]
pub struct RequestDone<'a> {
    /// What it did.
    pub verb: Verb,
    /// Plural of the resource.
    pub resource: &'static str,
    /// Host and port of the API server.
    pub host: &'a str,
    /// HTTP status as text; `<error>`, as client-go writes it, when no complete answer came.
    pub code: &'a str,
    /// From the first byte sent to the last read; for a watch to the headers.
    pub seconds: f64,
}

/// Why no complete answer came, by step.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("the request cannot be built")]
    Build(#[source] http::Error),
    #[error("the request could not be sent")]
    Send(#[source] kube::Error),
    #[error("the credentials could not be put on the request")]
    Authorize(#[source] kube::Error),
    #[error("the API server answered 401, and the credentials could not be read again")]
    Renew(#[source] AccessError),
    #[error("no new connection could be prepared")]
    Reconnect(#[source] AccessError),
    #[error("the connection broke inside the answer (HTTP {code})")]
    Read {
        code: u16,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("the answer is larger than {most} bytes")]
    TooLarge { most: usize },
    #[error("no complete answer within {0:?}")]
    TimedOut(Duration),
    #[error(
        "no complete answer within {0:?}; the likely cause is an admission webhook that does not \
         answer, because the API server waits for each of them; {WEBHOOKS}"
    )]
    WriteTimedOut(Duration),
    #[error("krane is stopping")]
    Stopping,
    #[error("standby: another krane holds the lease")]
    Standby,
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        let (class, code) = match &error {
            CallError::Renew(_) => (RefusalClass::Unauthenticated, 401),
            CallError::Authorize(_) => (RefusalClass::Unauthenticated, 0),
            CallError::Build(_) => (RefusalClass::Permanent, 0),
            CallError::Send(_)
            | CallError::Reconnect(_)
            | CallError::Read { .. }
            | CallError::TooLarge { .. }
            | CallError::TimedOut(_)
            | CallError::WriteTimedOut(_)
            | CallError::Stopping
            | CallError::Standby => (RefusalClass::Transient, 0),
        };
        Self {
            class,
            code,
            message: cut(chain(&error)),
            retry_after: None,
        }
    }
}

/// A connection to the API server, shared by all who use the same credentials.
pub struct KubeConnection {
    access: KubeAccess,
    user_agent: HeaderValue,
    host: String,
    namespace: String,
    current: ArcSwap<Generation>,
    building: Mutex<Building>,
    unauthorized: AtomicU64,
    observer: Arc<dyn ApiObserver>,
}

struct Generation {
    number: u64,
    client: Client,
}

impl fmt::Debug for KubeConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeConnection")
            .field("access", &self.access)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl KubeConnection {
    /// Reads the credentials and builds the client. Sends nothing yet.
    pub async fn open(
        access: KubeAccess,
        user_agent: HeaderValue,
        observer: Arc<dyn ApiObserver>,
    ) -> Result<Self, AccessError> {
        Self::open_with(access, user_agent, observer, Liveness::default()).await
    }

    /// The same, with another way to find out that a connection is dead.
    pub async fn open_with(
        access: KubeAccess,
        user_agent: HeaderValue,
        observer: Arc<dyn ApiObserver>,
        liveness: Liveness,
    ) -> Result<Self, AccessError> {
        let mut building = Building {
            liveness,
            ..Building::new(BUILD_LIMIT)
        };
        let built = building.build(&access, &user_agent).await?;
        Ok(Self {
            access,
            user_agent,
            host: built.host,
            namespace: built.namespace,
            current: ArcSwap::from_pointee(Generation {
                number: 0,
                client: built.client,
            }),
            building: Mutex::new(building),
            unauthorized: AtomicU64::new(0),
            observer,
        })
    }

    /// krane's own namespace in a cluster, the context's otherwise.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Host and port of the API server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// How often the API server answered 401 since the start.
    pub fn unauthorized_total(&self) -> u64 {
        self.unauthorized.load(Ordering::Relaxed)
    }

    /// How often the client was built again since the start.
    pub fn rebuilds_total(&self) -> u64 {
        self.current.load().number
    }

    /// Sends and reads the whole answer, at most `most` bytes of it.
    pub(super) async fn exchange(&self, call: &Call, most: usize) -> Result<Reply, CallError> {
        let timing = Timing::start(self, call);
        let span = timing.span.clone();
        let reply = async { read_reply(self.send(call).await?, most).await };
        let reply = reply.instrument(span).await?;
        timing.done(reply.code);
        Ok(reply)
    }

    /// Sends and waits for the headers.
    pub(super) async fn start(&self, call: &Call) -> Result<Response<Body>, CallError> {
        let timing = Timing::start(self, call);
        let response = self.send(call).instrument(timing.span.clone()).await?;
        timing.done(response.status().as_u16());
        Ok(response)
    }

    /// One more attempt with a fresh client after a 401 (the token on disk may be a newer one)
    /// and after the death of the client's worker, which nothing else heals.
    async fn send(&self, call: &Call) -> Result<Response<Body>, CallError> {
        let used = self.current.load_full();
        match self.attempt(&used, call).await {
            Ok(refused) if refused.status() == StatusCode::UNAUTHORIZED => {
                let fresh = self.renew(&used).await.map_err(CallError::Renew)?;
                self.attempt(&fresh, call).await
            }
            Err(error) if is_worker_gone(&error) => match self.renew(&used).await {
                Ok(fresh) => self.attempt(&fresh, call).await,
                Err(_) => Err(error),
            },
            other => other,
        }
    }

    async fn attempt(&self, with: &Generation, call: &Call) -> Result<Response<Body>, CallError> {
        let request = call.request().map_err(CallError::Build)?;
        tracing::trace!(verb = call.verb.name(), path = call.target, "request");
        let response = with.client.send(request).await.map_err(|error| {
            if is_caused_by::<AuthError>(&error) {
                CallError::Authorize(error)
            } else {
                CallError::Send(error)
            }
        })?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.unauthorized.fetch_add(1, Ordering::Relaxed);
        }
        Ok(response)
    }

    /// Requests from now on go out over connections that none was sent over before: behind a load
    /// balancer another API server may answer them.
    pub(super) async fn reconnect(&self) -> Result<(), CallError> {
        let used = self.current.load_full();
        let fresh = self.renew(&used).await;
        fresh.map(drop).map_err(CallError::Reconnect)
    }

    /// A client newer than `used`. Many calls fail at once; only the first of them builds.
    async fn renew(&self, used: &Generation) -> Result<Arc<Generation>, AccessError> {
        let mut building = self.building.lock().await;
        let current = self.current.load_full();
        if current.number != used.number {
            return Ok(current);
        }
        let built = building.build(&self.access, &self.user_agent).await?;
        let fresh = Arc::new(Generation {
            number: current.number + 1,
            client: built.client,
        });
        self.current.store(Arc::clone(&fresh));
        tracing::info!(host = %self.host, "built a fresh client for the Kubernetes API");
        Ok(fresh)
    }
}

struct Built {
    client: Client,
    host: String,
    namespace: String,
}

/// Builds clients, one at a time. What blocks cannot be stopped, so whoever gives up leaves the
/// work to the next, instead of a thread that hangs for each attempt.
struct Building {
    work: JoinSet<Result<Built, AccessError>>,
    limit: Duration,
    liveness: Liveness,
}

impl Building {
    fn new(limit: Duration) -> Self {
        Self {
            work: JoinSet::new(),
            limit,
            liveness: Liveness::default(),
        }
    }

    async fn build(
        &mut self,
        access: &KubeAccess,
        user_agent: &HeaderValue,
    ) -> Result<Built, AccessError> {
        if self.work.is_empty() {
            let access = access.clone();
            let user_agent = user_agent.clone();
            let liveness = self.liveness;
            // Files are read and exec plugins run here, so not on a worker thread.
            self.work
                .spawn_blocking(move || build(&access, user_agent, liveness));
        }
        match timeout(self.limit, self.work.join_next()).await {
            Ok(Some(Ok(result))) => result,
            Ok(Some(Err(_)) | None) => Err(AccessError::Interrupted),
            Err(_) => Err(AccessError::TimedOut(self.limit)),
        }
    }
}

fn build(
    access: &KubeAccess,
    user_agent: HeaderValue,
    liveness: Liveness,
) -> Result<Built, AccessError> {
    let mut config = access.load()?;
    config.headers.push((USER_AGENT, user_agent));
    let host = config
        .cluster_url
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let namespace = config.default_namespace.clone();
    let client = transport::client(&config, liveness)
        .map_err(|error| AccessError::Client(Box::new(error)))?;
    Ok(Built {
        client,
        host,
        namespace,
    })
}

/// Reads an answer to its end, at most `most` bytes of it.
pub(super) async fn read_reply(answer: Response<Body>, most: usize) -> Result<Reply, CallError> {
    let (parts, body) = answer.into_parts();
    let code = parts.status.as_u16();
    let collected = Limited::new(body, most).collect().await.map_err(|source| {
        if source.is::<LengthLimitError>() {
            CallError::TooLarge { most }
        } else {
            CallError::Read { code, source }
        }
    })?;
    Ok(Reply::new(code, &parts.headers, collected.to_bytes()))
}

fn is_worker_gone(error: &CallError) -> bool {
    // The types are not exported by kube; the texts are tower's, checked by a test.
    let text = chain(error);
    text.contains("buffer's worker closed") || text.contains("buffered service failed")
}

fn is_caused_by<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(<dyn Error>::is::<E>)
}

/// The span of a request on somebody's behalf; what nobody asked for is in no trace.
fn span_of(call: &Call) -> Span {
    if Span::current().is_none() {
        return Span::none();
    }
    tracing::info_span!(
        "request",
        otel.kind = "client",
        verb = call.verb.name(),
        resource = call.resource,
        code = field::Empty,
        otel.status_code = field::Empty,
    )
}

/// Reports a request once, also when its future is dropped half-way.
struct Timing<'a> {
    connection: &'a KubeConnection,
    verb: Verb,
    resource: &'static str,
    start: Instant,
    span: Span,
    is_done: bool,
}

impl<'a> Timing<'a> {
    fn start(connection: &'a KubeConnection, call: &Call) -> Self {
        let start = Instant::now();
        Self {
            connection,
            verb: call.verb,
            resource: call.resource,
            start,
            span: span_of(call),
            is_done: false,
        }
    }

    fn done(mut self, code: u16) {
        self.is_done = true;
        self.report(&code.to_string());
    }

    fn report(&self, code: &str) {
        self.span.record("code", code);
        if !code.starts_with(['2', '3']) {
            self.span.record("otel.status_code", "ERROR");
        }
        self.connection.observer.request(&RequestDone {
            verb: self.verb,
            resource: self.resource,
            host: &self.connection.host,
            code,
            seconds: self.start.elapsed().as_secs_f64(),
        });
    }
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.report("<error>");
        }
    }
}

#[cfg(test)]
mod tests;
