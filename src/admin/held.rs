//! The one thing that may be changed without `admin.actions`: a person lets held deletions go (D7).
//!
//! Only a program can ask: the header it has to send is one that no page of another site may set.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use krane_actors::release::HeldDeletes;
use serde_json::json;

/// The header without which nothing is released, and its value.
pub const CONFIRMATION: (&str, &str) = ("x-krane-confirm", "allow-deletes");

/// The path for this controller, or its pattern.
pub fn path(controller: &str) -> String {
    format!("/api/v1/controllers/{controller}/allow-deletes")
}

pub(super) fn router(held: Arc<[HeldDeletes]>) -> Router {
    Router::new()
        .route(&path("{name}"), post(allow))
        .with_state(held)
}

async fn allow(
    State(held): State<Arc<[HeldDeletes]>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let (header, value) = CONFIRMATION;
    if headers.get(header).is_none_or(|given| given != value) {
        let error = format!("send the header {header}: {value}");
        return (StatusCode::FORBIDDEN, Json(json!({"error": error}))).into_response();
    }
    let mut all = held.iter();
    let Some(held) = all.find(|held| held.controller().name() == name) else {
        let error = json!({"error": "there is no such controller"});
        return (StatusCode::NOT_FOUND, Json(error)).into_response();
    };
    let deleted: Vec<String> = held.allow().iter().map(ToString::to_string).collect();
    Json(json!({"deleted": deleted})).into_response()
}
