//! `/metrics` in the Prometheus text format, with the health endpoints beside it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use prometheus::{IntGaugeVec, Opts, Registry, TextEncoder};

use crate::rpc::health::{self, HealthView};
use crate::version;

/// The routes of the metrics port.
pub fn router(registry: Registry, view: Arc<dyn HealthView>) -> Router {
    let metrics = Router::new()
        .route("/metrics", get(metrics))
        .with_state(registry);
    metrics.merge(health::router(view))
}

async fn metrics(State(registry): State<Registry>) -> Response {
    match TextEncoder::new().encode_to_string(&registry.gather()) {
        Ok(text) => ([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Registers `krane_build_info`, which is 1 and names this binary in its labels.
pub fn register_build_info(registry: &Registry) -> Result<(), prometheus::Error> {
    let options = Opts::new(
        "krane_build_info",
        "The version, commit and compiler of this process.",
    );
    let info = IntGaugeVec::new(options, &["version", "commit", "rustc"])?;
    info.with_label_values(&[version::VERSION, version::COMMIT, version::RUSTC])
        .set(1);
    registry.register(Box::new(info))
}
