//! The one connection of a controller: made when needed, shared by all calls, replaced when lost.
//!
//! The task that drives a connection belongs to the link and ends with it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use http::Uri;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Timing;
use super::dial::{Connection, DialError, dial};
use super::endpoint::Endpoint;

/// Says in a GOAWAY that we ping too often.
const TOO_MANY_PINGS: &str = "too_many_pings";

type Dialing = Shared<BoxFuture<'static, Result<Connection, Arc<DialError>>>>;

pub(super) struct Link {
    endpoint: Arc<Endpoint>,
    timing: Timing,
    ping_interval: Arc<Mutex<Duration>>,
    state: Mutex<State>,
}

struct State {
    current: Option<Dialing>,
    tasks: JoinSet<()>,
}

impl Link {
    pub(super) fn new(endpoint: Endpoint, timing: Timing) -> Self {
        Self {
            endpoint: Arc::new(endpoint),
            timing,
            ping_interval: Arc::new(Mutex::new(timing.ping_interval)),
            state: Mutex::new(State {
                current: None,
                tasks: JoinSet::new(),
            }),
        }
    }

    /// Scheme, host and base path for requests.
    pub(super) fn origin(&self) -> &Uri {
        &self.endpoint.origin
    }

    /// The live connection; all who ask while one is being made share its success or failure.
    pub(super) async fn connection(&self) -> Result<Connection, Arc<DialError>> {
        let dialing = {
            let mut state = self.state.lock();
            match &state.current {
                Some(current) if is_usable(current) => current.clone(),
                _ => {
                    let dialing = self.dial(&mut state.tasks);
                    state.current = Some(dialing.clone());
                    dialing
                }
            }
        };
        dialing.await
    }

    /// Slows the pings down when `error`, seen on `connection`, is a complaint about them.
    pub(super) fn note(&self, connection: &Connection, error: &(dyn Error + 'static)) {
        slow_down(
            &self.ping_interval,
            connection.ping_interval,
            &self.timing,
            error,
        );
    }

    fn dial(&self, tasks: &mut JoinSet<()>) -> Dialing {
        while tasks.try_join_next().is_some() {}
        let (made_tx, made) = oneshot::channel();
        let (endpoint, timing) = (Arc::clone(&self.endpoint), self.timing);
        let interval = Arc::clone(&self.ping_interval);
        tasks.spawn(async move {
            let ping_interval = *interval.lock();
            match dial(&endpoint, &timing, ping_interval).await {
                Ok((connection, driver)) => {
                    // Nobody waits any more: the connection is kept for whoever comes next.
                    let _ = made_tx.send(Ok(connection));
                    if let Err(error) = driver.await {
                        slow_down(&interval, ping_interval, &timing, &error);
                    }
                }
                Err(error) => {
                    let _ = made_tx.send(Err(Arc::new(error)));
                }
            }
        });
        let made = made.map(|made| made.unwrap_or_else(|_| Err(Arc::new(DialError::Lost))));
        made.boxed().shared()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("endpoint", &self.endpoint)
            .field("ping_interval", &*self.ping_interval.lock())
            .finish_non_exhaustive()
    }
}

fn is_usable(dialing: &Dialing) -> bool {
    match dialing.peek() {
        None => true,
        Some(Ok(connection)) => !connection.sender.is_closed(),
        Some(Err(_)) => false,
    }
}

/// Doubles from what the complaining connection used, so that one complaint heard twice, from the
/// connection and from its calls, doubles once.
fn slow_down(
    interval: &Mutex<Duration>,
    used: Duration,
    timing: &Timing,
    error: &(dyn Error + 'static),
) {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    if causes.any(|cause| cause.to_string().contains(TOO_MANY_PINGS)) {
        let slower = (used * 2).min(timing.longest_ping_interval);
        let mut interval = interval.lock();
        if slower > *interval {
            tracing::warn!(
                ping_interval = ?slower,
                "the control plane complains about too many pings, they become fewer"
            );
            *interval = slower;
        }
    }
}
