//! `/health/live`, `/health/ready`, `/health/startup`, and the gRPC health service.
//!
//! Startup says whether the tree is up, live whether the process should be restarted, ready whether
//! it should get requests. The first two depend on nobody else: whoever is away must not cost a
//! process its life. Ready waits for what of the cluster may be listed, once. It does not follow the
//! control plane, a controller or the vault: pods would lose their secrets with them. How those are
//! doing is in its body, without internals.

mod grpc;
pub mod port;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde::Serialize;

pub use grpc::grpc_health;

/// What the health endpoints read; it answers from published copies and never waits.
pub trait HealthView: Send + Sync + 'static {
    /// Whether the watchdog is content with every actor.
    fn live(&self) -> bool;

    /// Whether this process can serve, and how the things it needs are doing.
    fn readiness(&self) -> Readiness;
}

/// Whether this process should get requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Settings, ports and the tree are done (D38b).
    pub started: bool,
    /// So are the first complete lists of every kind that is not forbidden.
    pub ready: bool,
    /// The process is on its way out.
    pub stopping: bool,
    /// Named parts of the process; their state does not change the answer's code.
    pub checks: BTreeMap<String, CheckState>,
    /// What this process is in the election of the one that writes; nothing without a lease.
    pub lease: Option<Standing>,
}

/// What a process is in an election. It never makes a process less ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// `leader` or `standby`.
    pub role: &'static str,
    /// Since when, RFC 3339.
    pub since: String,
    /// Who holds the lease, as far as this process has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// How one part is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// As it should.
    Ok,
    /// It works with restrictions, or is being retried.
    Degraded,
    /// It does not work.
    Fail,
}

#[derive(Serialize)]
struct Body {
    status: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    checks: BTreeMap<String, CheckState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<Standing>,
}

/// The three routes, for any port.
pub fn router(view: Arc<dyn HealthView>) -> Router {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/health/startup", get(startup))
        .with_state(view)
}

async fn live(State(view): State<Arc<dyn HealthView>>) -> Response {
    answer(&Body::of(if view.live() { "ok" } else { "fail" }))
}

async fn ready(State(view): State<Arc<dyn HealthView>>) -> Response {
    match view.readiness() {
        Readiness { stopping: true, .. } => answer(&Body::of("shutting down")),
        Readiness {
            ready: true,
            checks,
            lease,
            ..
        } => answer(&Body {
            checks,
            lease,
            ..Body::of("ok")
        }),
        Readiness { .. } => answer(&Body::of("not started")),
    }
}

async fn startup(State(view): State<Arc<dyn HealthView>>) -> Response {
    let Readiness {
        started, stopping, ..
    } = view.readiness();
    // A process that stops has been asked to; it must not look as if it had never started.
    answer(&Body::of(if started || stopping {
        "ok"
    } else {
        "not started"
    }))
}

impl Body {
    const fn of(status: &'static str) -> Self {
        Self {
            status,
            checks: BTreeMap::new(),
            lease: None,
        }
    }
}

fn answer(body: &Body) -> Response {
    let code = if body.status == "ok" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let Ok(mut body) = serde_json::to_string(body) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    body.push('\n');
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "no-store"),
    ];
    (code, headers, body).into_response()
}

#[cfg(test)]
mod tests;
