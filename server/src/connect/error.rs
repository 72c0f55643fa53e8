//! An error as Connect sends it: always JSON, whatever the request was written in.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tonic::{Code, Status};

use krane_proto::codes;

#[derive(Serialize)]
struct Body<'a> {
    code: &'static str,
    message: &'a str,
}

/// The answer to a call that failed.
pub(crate) fn refusal(status: &Status) -> Response {
    // A failure with the code of success: a caller must not take it for an answer.
    let code = Some(status.code())
        .filter(|code| *code != Code::Ok)
        .unwrap_or(Code::Unknown);
    let body = Body {
        code: codes::name(code),
        message: status.message(),
    };
    let mut response = (codes::http_status(code), Json(body)).into_response();
    response.extensions_mut().insert(code);
    response
}
