//! The Connect protocol for calls with one request and one answer, over any version of HTTP.
//!
//! A handler has the form of a method of a tonic service, so that one implementation serves both
//! protocols. What is not offered: GET, streams, compression, details of errors.

mod codec;
mod error;
mod head;
#[cfg(test)]
mod tests;

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use codec::Codec;
pub(super) use codec::malformed;
pub(super) use error::refusal;

/// Bytes of the largest request, in every protocol.
pub const LARGEST_REQUEST: usize = 2 * 1024 * 1024;
/// Bytes beyond [`LARGEST_REQUEST`] that are read and dropped, for a peer that is still writing
/// does not see the answer.
const DISCARDED: usize = LARGEST_REQUEST;

/// What a method of a tonic service returns.
type Answering<'a, A> = BoxFuture<'a, Result<tonic::Response<A>, Status>>;

/// A route that answers requests of one kind.
///
/// The handler gets the headers as metadata and the extensions of the HTTP request. Metadata of its
/// answer, and metadata and details of its errors, are not sent.
pub fn unary<Q, A, H, F>(handler: H) -> MethodRouter
where
    Q: Message + Default + DeserializeOwned + 'static,
    A: Message + Serialize + 'static,
    H: Fn(tonic::Request<Q>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<tonic::Response<A>, Status>> + Send + 'static,
{
    post(async move |request: Request<Body>| answer(request, handler).await)
}

/// A route that answers one method of a service, as tonic's traits declare it.
pub fn method<S, Q, A, H>(service: S, method: H) -> MethodRouter
where
    S: Clone + Send + Sync + 'static,
    Q: Message + Default + DeserializeOwned + 'static,
    A: Message + Serialize + 'static,
    H: for<'a> Fn(&'a S, tonic::Request<Q>) -> Answering<'a, A> + Clone + Send + Sync + 'static,
{
    unary(move |request| {
        let (service, method) = (service.clone(), method.clone());
        async move { method(&service, request).await }
    })
}

/// A route that says why there is nothing of this name.
pub(super) fn unimplemented(text: &'static str) -> MethodRouter {
    post(async move || refusal(&Status::unimplemented(text)))
}

async fn answer<Q, A, F>(
    request: Request<Body>,
    handler: impl FnOnce(tonic::Request<Q>) -> F + Send,
) -> Response
where
    Q: Message + Default + DeserializeOwned,
    A: Message + Serialize,
    F: Future<Output = Result<tonic::Response<A>, Status>> + Send,
{
    let Some(codec) = Codec::of(request.headers()) else {
        return unsupported();
    };
    let result = match head::check(request.headers()) {
        Ok(limit) => within(limit, call(codec, request, handler)).await,
        Err(status) => Err(status),
    };
    match result {
        Ok(body) => ([(CONTENT_TYPE, codec.content_type())], body).into_response(),
        Err(status) => refusal(&status),
    }
}

async fn call<Q, A, F>(
    codec: Codec,
    request: Request<Body>,
    handler: impl FnOnce(tonic::Request<Q>) -> F + Send,
) -> Result<Bytes, Status>
where
    Q: Message + Default + DeserializeOwned,
    A: Message + Serialize,
    F: Future<Output = Result<tonic::Response<A>, Status>> + Send,
{
    let (parts, body) = request.into_parts();
    let message = codec.decode(&read(body).await?)?;
    let metadata = MetadataMap::from_headers(parts.headers);
    let request = tonic::Request::from_parts(metadata, parts.extensions, message);
    let answer = handler(request).await?;
    codec.encode(answer.get_ref())
}

/// The whole body, if it is not too large.
async fn read(mut body: Body) -> Result<Bytes, Status> {
    let most = LARGEST_REQUEST + DISCARDED;
    if usize::try_from(body.size_hint().lower()).map_or(true, |length| length > most) {
        return Err(too_large());
    }
    let (mut all, mut length) = (BytesMut::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(unreadable)?.into_data() else {
            continue;
        };
        length = length.saturating_add(data.len());
        if length <= LARGEST_REQUEST {
            all.extend_from_slice(&data);
        } else if length > most {
            break;
        }
    }
    if length > LARGEST_REQUEST {
        return Err(too_large());
    }
    Ok(all.freeze())
}

/// What a request over [`LARGEST_REQUEST`] is answered, in every protocol.
pub(super) fn too_large() -> Status {
    let text = format!("the request is larger than {LARGEST_REQUEST} bytes");
    Status::resource_exhausted(text)
}

/// Why a body ends in an error: the server's own limits come as a status, all else is a peer that
/// broke off.
pub(super) fn unreadable(error: axum::Error) -> Status {
    Status::try_from_error(error.into())
        .ok()
        .filter(|status| matches!(status.code(), Code::DeadlineExceeded | Code::Unavailable))
        .unwrap_or_else(broken_off)
}

/// What a request is answered whose sender went away, or stopped in the middle.
pub(super) fn broken_off() -> Status {
    Status::cancelled("the request was not sent to its end")
}

async fn within<T>(
    limit: Option<Duration>,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match limit {
        None => call.await,
        Some(limit) => timeout(limit, call)
            .await
            .unwrap_or_else(|_| Err(too_late())),
    }
}

/// What a call is answered that its caller waits for no longer.
pub(super) fn too_late() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}

fn unsupported() -> Response {
    const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");
    let accepted = HeaderValue::from_static("application/json, application/proto");
    (
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        [(ACCEPT_POST, accepted)],
    )
        .into_response()
}
