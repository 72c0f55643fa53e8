//! Follows an answer to where its code is: in an extension, a header, or trailers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use krane_proto::codes;
use tonic::{Code, Status};

use super::Call;

impl Call {
    /// The answer of a plain HTTP route: its code is known.
    pub(crate) fn end_http(mut self, response: &Response) {
        let code = response.extensions().get::<Code>().copied();
        self.code = match (code, response.status()) {
            (Some(code), _) => code,
            (None, status) if status.is_success() => Code::Ok,
            (None, status) => codes::of_http(status),
        };
    }

    /// There was no room for its request.
    pub(crate) fn end_refused(mut self) {
        self.code = Code::Unavailable;
    }

    /// The answer of a gRPC service: its code comes before the body, or after it.
    pub(crate) fn follow_grpc(mut self, response: Response) -> Response {
        if let Some(code) = code_in(response.headers()) {
            self.code = code;
            return response;
        }
        if !self.stays_open() {
            self.admission.leave();
        }
        response.map(|body| {
            Body::new(Followed {
                body,
                call: Some(self),
            })
        })
    }
}

fn code_in(headers: &HeaderMap) -> Option<Code> {
    let code = headers.get(Status::GRPC_STATUS)?;
    Some(Code::from_bytes(code.as_bytes()))
}

/// A body whose call ends with it.
struct Followed {
    body: Body,
    call: Option<Call>,
}

impl HttpBody for Followed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        let trailers = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.trailers_ref());
        let code = match (&frame, trailers) {
            (_, Some(trailers)) => Some(code_in(trailers).unwrap_or(Code::Unknown)),
            (None | Some(Err(_)), None) => Some(Code::Unknown),
            (Some(Ok(_)), None) => None,
        };
        if let Some(code) = code
            && let Some(mut call) = this.call.take()
        {
            call.code = code;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
