//! What a server answers with, and how a request finds it.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tonic::service::Routes;
use tower::ServiceExt;

/// The routes of one port: plain HTTP, and gRPC beside it.
///
/// Both may have the same path (Connect and gRPC do); the content type decides.
#[derive(Clone, Debug)]
pub struct App {
    http: Router,
    grpc: Option<Router>,
}

/// Where a request belongs.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Http,
    Grpc,
    /// gRPC over HTTP/1.1 would be answered without the trailers that carry its status.
    GrpcWithoutTrailers,
    GrpcWeb,
}

impl App {
    /// Routes for everything that is not gRPC.
    #[must_use]
    pub const fn new(http: Router) -> Self {
        Self { http, grpc: None }
    }

    /// Adds gRPC services.
    #[must_use]
    pub fn with_grpc(mut self, grpc: Routes) -> Self {
        self.grpc = Some(grpc.into_axum_router());
        self
    }

    /// Answers a request; a panic in a handler costs that one request.
    pub async fn answer(self, request: Request<Body>) -> Response {
        let kind = Kind::of(&request);
        let Some(router) = self.router(&kind) else {
            return match kind {
                Kind::GrpcWithoutTrailers => (
                    StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                    "gRPC needs HTTP/2\n",
                )
                    .into_response(),
                Kind::Http | Kind::Grpc | Kind::GrpcWeb => {
                    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not served here\n").into_response()
                }
            };
        };
        match AssertUnwindSafe(router.oneshot(request))
            .catch_unwind()
            .await
        {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) if kind == Kind::Grpc => {
                tonic::Status::internal("internal error").into_http::<Body>()
            }
            Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal error\n").into_response(),
        }
    }

    fn router(self, kind: &Kind) -> Option<Router> {
        match kind {
            Kind::Http => Some(self.http),
            Kind::Grpc => self.grpc,
            Kind::GrpcWithoutTrailers | Kind::GrpcWeb => None,
        }
    }

    pub(super) fn into_service(
        self,
    ) -> impl hyper::service::Service<
        Request<Incoming>,
        Response = Response,
        Error = Infallible,
        Future = BoxFuture<'static, Result<Response, Infallible>>,
    > {
        service_fn(move |request: Request<Incoming>| {
            self.clone().answer(request.map(Body::new)).map(Ok).boxed()
        })
    }
}

impl Kind {
    fn of<B>(request: &Request<B>) -> Self {
        let content_type = request.headers().get(CONTENT_TYPE);
        let content_type = content_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        match content_type.strip_prefix("application/grpc") {
            None => Self::Http,
            Some(rest) if rest.starts_with("-web") => Self::GrpcWeb,
            Some(_) if request.version() == Version::HTTP_2 => Self::Grpc,
            Some(_) => Self::GrpcWithoutTrailers,
        }
    }
}
