//! One HTTP/2 exchange: the headers of every request, and a look at every answer.
//!
//! Whether a status is the server's own word is decided here, from the `grpc-status` that really
//! arrived, not from the text of an error: what a proxy answers must never count as `NOT_FOUND`.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::client::conn::http2::SendRequest;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::BoxError;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// Never used here, and tonic panics when it is no base64.
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Whether the gRPC status of a call came over the wire.
#[derive(Clone, Debug, Default)]
pub(super) struct Answered(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    has_status: AtomicBool,
    date: OnceLock<String>,
}

impl Answered {
    pub(super) fn get(&self) -> bool {
        self.0.has_status.load(Ordering::Acquire)
    }

    /// The header `Date` of the answer.
    pub(super) fn date(&self) -> Option<String> {
        self.0.date.get().cloned()
    }

    fn look(&self, headers: &mut HeaderMap) {
        headers.remove(GRPC_DETAILS);
        if headers.contains_key(GRPC_STATUS) {
            self.0.has_status.store(true, Ordering::Release);
        }
    }

    fn note_date(&self, headers: &HeaderMap) {
        if let Some(date) = headers.get(DATE).and_then(|value| value.to_str().ok()) {
            // The first answer of a call is its only one.
            let _ = self.0.date.set(date.to_owned());
        }
    }
}

/// Sends one request over a connection.
pub(super) struct Call {
    sender: SendRequest<Body>,
    authorization: HeaderValue,
    answered: Answered,
}

impl Call {
    pub(super) fn new(
        sender: SendRequest<Body>,
        authorization: HeaderValue,
        answered: Answered,
    ) -> Self {
        Self {
            sender,
            authorization,
            answered,
        }
    }
}

impl tower::Service<Request<Body>> for Call {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.sender.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let headers = request.headers_mut();
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(krane_proto::USER_AGENT),
        );
        headers.insert(AUTHORIZATION, self.authorization.clone());
        let answered = self.answered.clone();
        let answer = self.sender.send_request(request);
        async move {
            let (mut head, inner) = answer.await?.into_parts();
            answered.note_date(&head.headers);
            if let Some(status) = foreign_answer(&head) {
                return Err(status.into());
            }
            answered.look(&mut head.headers);
            Ok(Response::from_parts(head, AnswerBody { inner, answered }))
        }
        .boxed()
    }
}

/// The body of an answer, watched for the status of the server.
pub(super) struct AnswerBody {
    inner: Incoming,
    answered: Answered,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            self.answered.look(trailers);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The error for an answer that no gRPC server gave.
fn foreign_answer(head: &response::Parts) -> Option<Status> {
    let content_type = head
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_grpc = content_type == "application/grpc"
        || content_type.starts_with("application/grpc+")
        || content_type.starts_with("application/grpc;");
    if head.status == StatusCode::OK && is_grpc {
        return None;
    }
    let code = match head.status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    let message = if head.status.is_redirection() {
        format!(
            "HTTP {} sends us to {}, and krane follows no redirect: \
             set control.url to the final address",
            head.status.as_u16(),
            redirect_host(&head.headers),
        )
    } else {
        format!(
            "HTTP {} with content type \"{content_type}\" is no gRPC answer: check that \
             control.url names the control plane and that every proxy on the way passes gRPC",
            head.status.as_u16(),
        )
    };
    Some(Status::new(code, message))
}

/// Path and query of a redirect may hold what does not belong into a log.
fn redirect_host(headers: &HeaderMap) -> String {
    let target = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    target
        .and_then(|target| target.parse::<Uri>().ok())
        .and_then(|uri| Some(format!("{}://{}", uri.scheme_str()?, uri.host()?)))
        .unwrap_or_else(|| "another path".to_owned())
}
