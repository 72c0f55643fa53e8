//! What a server answers with, and how a request finds it.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tonic::service::Routes;
use tower::ServiceExt;

use super::pace::{InTime, Until};
use super::visit::Visit;
use super::{Peer, StaysOpen, grpc};
use crate::bounds::Bounds;
use crate::calls::{Call, Calls};
use crate::connect;

/// The routes of one port: plain HTTP, and gRPC beside it.
///
/// Both may have the same path (Connect and gRPC do); the content type decides.
#[derive(Clone, Debug)]
pub struct App {
    http: Router,
    grpc: Option<Router>,
    calls: Option<Calls>,
    bounds: Bounds,
}

/// Where a request belongs.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Http,
    Grpc,
    /// gRPC over HTTP/1.1 would be answered without the trailers that carry its status.
    GrpcWithoutTrailers,
    /// gRPC-Web, or messages that are no protobuf.
    GrpcOther,
}

/// A handler did; its text may hold what it worked on and goes no further.
struct Panicked;

fn panicked() -> Status {
    Status::internal("internal error")
}

fn grpc_refusal(status: Status) -> Response {
    status.into_http::<Body>()
}

impl App {
    /// Routes for everything that is not gRPC.
    #[must_use]
    pub const fn new(http: Router) -> Self {
        Self {
            http,
            grpc: None,
            calls: None,
            bounds: Bounds::RPC,
        }
    }

    /// Limits what senders may have; without it they have what the RPC port gives.
    #[must_use]
    pub const fn with_bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// What senders may have.
    pub(super) const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Adds gRPC services.
    #[must_use]
    pub fn with_grpc(mut self, grpc: Routes) -> Self {
        self.grpc = Some(grpc.into_axum_router());
        self
    }

    /// Counts and limits the calls among the requests.
    #[must_use]
    pub fn with_calls(mut self, calls: Calls) -> Self {
        self.calls = Some(calls);
        self
    }

    /// Answers a request; a panic in a handler costs that one request.
    pub async fn answer(self, request: Request<Body>) -> Response {
        let kind = Kind::of(&request);
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
        let path = request.uri().path();
        match self
            .calls
            .as_ref()
            .and_then(|calls| calls.begin(path, peer))
        {
            Some(call) => self.call(call, kind, request).await,
            None => self
                .route(&kind, request)
                .await
                .unwrap_or_else(|Panicked| match kind {
                    Kind::Grpc => grpc_refusal(panicked()),
                    Kind::Http | Kind::GrpcWithoutTrailers | Kind::GrpcOther => {
                        (StatusCode::INTERNAL_SERVER_ERROR, "internal error\n").into_response()
                    }
                }),
        }
    }

    async fn call(self, call: Call, kind: Kind, request: Request<Body>) -> Response {
        let response = match call.receive(request) {
            Ok(request) => self
                .route(&kind, request)
                .await
                .map_err(|Panicked| panicked()),
            Err(full) => Err(full),
        };
        if kind == Kind::Grpc {
            let stays_open = call.stays_open();
            let mut response = call.follow_grpc(response.unwrap_or_else(grpc_refusal));
            if stays_open {
                response.extensions_mut().insert(StaysOpen);
            }
            response
        } else {
            let response = response.unwrap_or_else(|status| connect::refusal(&status));
            call.end_http(&response);
            response
        }
    }

    /// What a sender is answered that has too many requests already: nothing that it could leave
    /// lying.
    fn refuse(&self, request: &Request<Body>, peer: Peer) -> Response {
        let status = Status::unavailable("too many requests at once");
        let response = match Kind::of(request) {
            Kind::Grpc => grpc_refusal(status),
            Kind::Http | Kind::GrpcWithoutTrailers | Kind::GrpcOther => {
                StatusCode::SERVICE_UNAVAILABLE.into_response()
            }
        };
        let calls = self.calls.as_ref();
        if let Some(call) = calls.and_then(|calls| calls.begin(request.uri().path(), Some(peer.0)))
        {
            call.end_refused();
        }
        response
    }

    async fn route(self, kind: &Kind, request: Request<Body>) -> Result<Response, Panicked> {
        let Some(router) = self.router(kind) else {
            return Ok(match kind {
                Kind::GrpcWithoutTrailers => (
                    StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                    "gRPC needs HTTP/2\n",
                )
                    .into_response(),
                Kind::Http | Kind::Grpc | Kind::GrpcOther => {
                    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not served here\n").into_response()
                }
            });
        };
        let limit = match kind {
            Kind::Grpc => grpc::time_limit(request.headers()),
            Kind::Http | Kind::GrpcWithoutTrailers | Kind::GrpcOther => Ok(None),
        };
        let end = match limit {
            Ok(limit) => limit.and_then(|limit| Instant::now().checked_add(limit)),
            Err(status) => return Ok(grpc_refusal(status)),
        };
        let answer = AssertUnwindSafe(router.oneshot(request)).catch_unwind();
        let answer = match end {
            None => answer.await,
            Some(end) => match timeout_at(end, answer).await {
                Ok(answer) => answer,
                Err(_) => return Ok(grpc_refusal(connect::too_late())),
            },
        };
        match answer {
            Ok(Ok(response)) if *kind == Kind::Grpc => {
                let response = grpc::as_in_connect(response);
                Ok(match end {
                    Some(end) => response.map(|body| Body::new(Until::new(body, end))),
                    None => response,
                })
            }
            Ok(Ok(response)) => Ok(response),
            Ok(Err(never)) => match never {},
            Err(_) => Err(Panicked),
        }
    }

    fn router(self, kind: &Kind) -> Option<Router> {
        match kind {
            Kind::Http => Some(self.http),
            Kind::Grpc => self.grpc,
            Kind::GrpcWithoutTrailers | Kind::GrpcOther => None,
        }
    }

    /// Answers the requests of one connection.
    pub(super) fn into_service(
        self,
        visit: Arc<Visit>,
        body_limit: Duration,
    ) -> impl hyper::service::Service<
        Request<Incoming>,
        Response = Response,
        Error = Infallible,
        Future = BoxFuture<'static, Result<Response, Infallible>>,
    > {
        service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(|body| Body::new(InTime::new(body, body_limit)));
            request.extensions_mut().insert(visit.peer);
            // Before there is a future for it: one that is refused costs next to nothing.
            let Some(under_way) = visit.begin() else {
                return ready(Ok(self.refuse(&request, visit.peer))).boxed();
            };
            let (app, visit) = (self.clone(), Arc::clone(&visit));
            async move {
                visit.watch(&under_way);
                Ok(under_way.answer(app.answer(request).await))
            }
            .boxed()
        })
    }
}

impl Kind {
    fn of<B>(request: &Request<B>) -> Self {
        let content_type = request.headers().get(CONTENT_TYPE);
        let content_type = content_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let Some(format) = content_type.strip_prefix("application/grpc") else {
            return Self::Http;
        };
        match format.split(';').next().map(str::trim) {
            Some("" | "+proto") if request.version() == Version::HTTP_2 => Self::Grpc,
            Some("" | "+proto") => Self::GrpcWithoutTrailers,
            None | Some(_) => Self::GrpcOther,
        }
    }
}
