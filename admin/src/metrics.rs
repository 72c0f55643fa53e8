//! `/metrics` in the Prometheus text format, with the health endpoints beside it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use krane_server::health::{self, HealthView};
use parking_lot::Mutex;
use prometheus::{Registry, TextEncoder};
use tokio::time::Instant;

/// So many renderings may be made one after the other, and one more each second: a client that asks
/// more often gets the last one again.
const RENDERINGS: u32 = 8;
const RENDERING_EACH: Duration = Duration::from_secs(1);

/// What is exposed, rendered for all who ask.
struct Exposition {
    registry: Registry,
    last: Mutex<Rendered>,
}

struct Rendered {
    text: Bytes,
    /// How many more may be made, as of then.
    left: u32,
    counted_at: Instant,
}

/// The routes of the metrics port.
pub fn router(registry: Registry, view: Arc<dyn HealthView>) -> Router {
    let exposition = Arc::new(Exposition {
        registry,
        last: Mutex::new(Rendered {
            text: Bytes::new(),
            left: RENDERINGS,
            counted_at: Instant::now(),
        }),
    });
    let metrics = Router::new()
        .route("/metrics", get(metrics))
        .with_state(exposition);
    metrics.merge(health::router(view))
}

async fn metrics(State(exposition): State<Arc<Exposition>>) -> Response {
    match exposition.text() {
        Ok(text) => ([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl Exposition {
    /// The same bytes for all who ask in a flood: an answer that is not taken keeps them, and no
    /// copy of its own (X3).
    fn text(&self) -> Result<Bytes, prometheus::Error> {
        let mut last = self.last.lock();
        let passed = last.counted_at.elapsed().as_secs() / RENDERING_EACH.as_secs();
        if let Ok(more @ 1..) = u32::try_from(passed) {
            last.left = last.left.saturating_add(more).min(RENDERINGS);
            last.counted_at += RENDERING_EACH * more;
        }
        if last.left > 0 {
            last.left -= 1;
            let text = TextEncoder::new().encode_to_string(&self.registry.gather())?;
            last.text = text.into();
        }
        Ok(last.text.clone())
    }
}
