//! The adapter against requests good and hostile, without a socket.

mod bodies;
mod fuzz;
mod headers;

use std::collections::BTreeMap;
use std::future::pending;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use krane_proto::krane::v1::{
    ApplyDeploymentRequest, ApplyDeploymentResponse, DecryptSecretsBlobRequest,
    DecryptSecretsBlobResponse,
};
use tonic::{Response, Status};
use tower::ServiceExt as _;

use super::unary;

const ECHO: &str = "/test.Echo/Tell";
const APPLY: &str = "/test.Echo/Apply";
const HANG: &str = "/test.Echo/Hang";
const REFUSE: &str = "/test.Echo/Refuse";

/// In no answer and no log, whatever is done with it.
const CANARY: &str = "canary-of-a-token";

type Told = Result<Response<DecryptSecretsBlobResponse>, Status>;

fn router() -> Router {
    let tell = unary(
        async |request: tonic::Request<DecryptSecretsBlobRequest>| -> Told {
            let message = request.into_inner();
            let blob = String::from_utf8_lossy(&message.encrypted_blob).into_owned();
            Ok(Response::new(DecryptSecretsBlobResponse {
                env_vars: BTreeMap::from([
                    ("BLOB".to_owned(), blob),
                    ("DEPLOYMENT".to_owned(), message.deployment_id),
                    ("ENVIRONMENT".to_owned(), message.environment_id),
                ]),
            }))
        },
    );
    let apply = unary(async |_: tonic::Request<ApplyDeploymentRequest>| {
        Ok(Response::new(ApplyDeploymentResponse {}))
    });
    let hang =
        unary(async |_: tonic::Request<DecryptSecretsBlobRequest>| -> Told { pending().await });
    let refuse = unary(
        async |_: tonic::Request<DecryptSecretsBlobRequest>| -> Told {
            Err(Status::aborted("say \"no\"\n"))
        },
    );
    Router::new()
        .route(ECHO, tell)
        .route(APPLY, apply)
        .route(HANG, hang)
        .route(REFUSE, refuse)
}

/// What came back.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn content_type(&self) -> &str {
        let value = self.headers.get("content-type");
        value.map_or("", |value| value.to_str().unwrap())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

async fn send(request: Request<Body>) -> Answer {
    let response = router().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    assert!(!String::from_utf8_lossy(&body).contains(CANARY), "{body:?}");
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
    }
}

/// A good request to `path` but for what these headers change.
fn request(path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::builder().method(Method::POST).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}

async fn post(path: &str, kind: &str, body: impl Into<Body>) -> Answer {
    send(request(path, &[("content-type", kind)], body)).await
}

async fn json(path: &str, body: impl Into<Body>) -> Answer {
    post(path, "application/json", body).await
}

fn check_error(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.content_type(), "application/json");
    let start = format!("{{\"code\":\"{code}\",\"message\":\"");
    assert!(answer.text().starts_with(&start), "{}", answer.text());
}
