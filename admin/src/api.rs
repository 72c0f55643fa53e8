//! The JSON API: what the page shows, for programs. Everything is read, nothing is changed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use http::{HeaderMap, StatusCode};
use krane_domain::ids::ObjectKey;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::feed::{Feed, Viewer};
use super::model::{Filter, HealthSummary, Identity, Revisions, Stamp, View};

/// Workloads in one answer, unless `limit` says otherwise.
const WORKLOADS: usize = 1_000;
/// A silent stream is given a sign of life this often.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// What the routes share.
#[derive(Clone)]
pub(super) struct ApiState {
    pub(super) feed: Arc<Feed>,
    /// Ends the streams when the server stops.
    pub(super) stop: CancellationToken,
}

pub(super) fn router(state: ApiState) -> Router {
    Router::new()
        .route("/api/v1/health", get(health))
        .route("/api/v1/tree", get(tree))
        .route("/api/v1/controllers", get(controllers))
        .route("/api/v1/controllers/{name}", get(controller))
        .route("/api/v1/workloads", get(workloads))
        .route(
            "/api/v1/workloads/{controller}/{namespace}/{name}",
            get(workload),
        )
        .route("/api/v1/events", get(events))
        .route("/api/v1/history", get(history))
        .route("/api/v1/log", get(log))
        .route("/api/v1/stream", get(follow))
        .with_state(state)
}

#[derive(Serialize)]
struct Health<'a> {
    taken_at: Stamp,
    identity: &'a Identity,
    #[serde(flatten)]
    summary: &'a HealthSummary,
}

async fn health(State(state): State<ApiState>) -> Response {
    let view = state.feed.view();
    Json(Health {
        taken_at: view.taken_at,
        identity: &state.feed.sources().identity,
        summary: &view.health,
    })
    .into_response()
}

async fn tree(State(state): State<ApiState>) -> Response {
    let view = state.feed.view();
    Json(json!({"taken_at": view.taken_at, "actors": &*view.tree})).into_response()
}

async fn controllers(State(state): State<ApiState>) -> Response {
    let view = state.feed.view();
    Json(json!({"taken_at": view.taken_at, "controllers": &*view.controllers})).into_response()
}

async fn controller(State(state): State<ApiState>, Path(name): Path<String>) -> Response {
    let view = state.feed.view();
    let mut all = view.controllers.iter();
    if let Some(controller) = all.find(|controller| controller.name == name) {
        return Json(controller).into_response();
    }
    let names: Vec<_> = view.controllers.iter().map(|it| it.name).collect();
    let error = json!({"error": "there is no such controller", "controllers": names});
    (StatusCode::NOT_FOUND, Json(error)).into_response()
}

#[derive(Deserialize)]
struct WorkloadQuery {
    #[serde(default)]
    filter: String,
    limit: Option<usize>,
}

async fn workloads(State(state): State<ApiState>, Query(query): Query<WorkloadQuery>) -> Response {
    let view = state.feed.view();
    let mut matching: Vec<_> = view.matching(&query.filter).collect();
    let count = matching.len();
    matching.truncate(query.limit.unwrap_or(WORKLOADS));
    Json(json!({
        "taken_at": view.taken_at,
        "total": view.workloads.len(),
        "matching": count,
        "workloads": matching,
    }))
    .into_response()
}

async fn workload(
    State(state): State<ApiState>,
    Path((controller, namespace, name)): Path<(String, String, String)>,
) -> Response {
    let key = ObjectKey::new(namespace, name);
    let sources = state.feed.sources();
    if let Some(object) = sources.object(&state.feed.view(), &controller, &key) {
        return Json(object).into_response();
    }
    let error = json!({"error": format!("{controller} want nothing of {key}")});
    (StatusCode::NOT_FOUND, Json(error)).into_response()
}

async fn history(State(state): State<ApiState>) -> Response {
    Json(json!({"lines": state.feed.history()})).into_response()
}

#[derive(Deserialize)]
struct EventQuery {
    #[serde(default)]
    after: u64,
    #[serde(default)]
    filter: String,
}

async fn events(State(state): State<ApiState>, Query(query): Query<EventQuery>) -> Response {
    let view = state.feed.view();
    let events = view.events.iter();
    let filter = Filter::new(&query.filter);
    let later: Vec<_> = events
        .filter(|event| event.number > query.after && event.matches(&filter))
        .collect();
    Json(json!({
        "taken_at": view.taken_at,
        "dropped": view.events_dropped,
        "events": later,
    }))
    .into_response()
}

#[derive(Deserialize)]
struct LogQuery {
    #[serde(default)]
    after: u64,
    #[serde(default)]
    filter: String,
    limit: Option<usize>,
}

async fn log(State(state): State<ApiState>, Query(query): Query<LogQuery>) -> Response {
    let limit = query.limit.unwrap_or(usize::MAX);
    let sources = state.feed.sources();
    let lines = sources.log(&query.filter, query.after, limit);
    let taken_at = sources.epoch.at(sources.board.now());
    Json(json!({"taken_at": taken_at, "lines": lines})).into_response()
}

/// `changed` says which parts are to be read again; `happened` is one event, with its number as
/// id, so that a browser that reconnects misses none that is still remembered.
async fn follow(State(state): State<ApiState>, headers: HeaderMap) -> Response {
    let Some(viewer) = state.feed.follow() else {
        let words = "too many viewers follow already; the other endpoints still answer\n";
        return (StatusCode::SERVICE_UNAVAILABLE, words).into_response();
    };
    let view = state.feed.view();
    let seen = headers.get("last-event-id");
    let seen = seen.and_then(|id| id.to_str().ok()?.parse().ok());
    let newest = view.events.first().map_or(0, |event| event.number);
    let mut following = Following {
        viewer,
        stop: state.stop,
        revisions: Revisions::default(),
        last_event: seen.unwrap_or(newest),
        epoch: state.feed.sources().epoch.at(Duration::ZERO),
        waiting: VecDeque::new(),
    };
    following.tell(&view);
    let events = stream::unfold(following, Following::next);
    let keep_alive = KeepAlive::new().interval(SIGN_OF_LIFE);
    Sse::new(events).keep_alive(keep_alive).into_response()
}

struct Following {
    viewer: Viewer,
    stop: CancellationToken,
    revisions: Revisions,
    last_event: u64,
    epoch: Stamp,
    waiting: VecDeque<Event>,
}

impl Following {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some((Ok(event), self));
            }
            tokio::select! {
                () = self.stop.cancelled() => return None,
                changed = self.viewer.news.changed() => changed.ok()?,
            }
            let view = self.viewer.news.borrow_and_update().clone();
            if let Some(view) = view {
                self.tell(&view);
            }
        }
    }

    /// Puts what is new in a view into the queue: bounded by what a view holds.
    fn tell(&mut self, view: &View) {
        let parts = view.revisions.changed_since(&self.revisions);
        if !parts.is_empty() {
            let changed = json!({
                "epoch": self.epoch,
                "taken_at": view.taken_at,
                "parts": parts,
                "revisions": view.revisions,
                "level": view.health.level,
                "sentence": view.health.sentence,
            });
            self.push(Event::default().event("changed").json_data(changed));
            self.revisions = view.revisions;
        }
        for event in view.events.iter().rev() {
            if event.number > self.last_event {
                self.last_event = event.number;
                let id = event.number.to_string();
                let happened = Event::default().event("happened").id(id);
                self.push(happened.json_data(event));
            }
        }
    }

    fn push(&mut self, event: Result<Event, axum::Error>) {
        match event {
            Ok(event) => self.waiting.push_back(event),
            Err(error) => tracing::error!(%error, "a change could not be written as JSON"),
        }
    }
}
