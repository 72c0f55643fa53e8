//! From a path to what serves it.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use krane_proto::raw::RawCodec;
use tonic::{
    Code, Status,
    body::Body,
    server::{Grpc, NamedService},
};

use super::{Method, shared::Shared, unary, watch};

/// `ctrl.v1.ClusterService`, message bodies as bytes.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) shared: Arc<Shared>,
}

impl NamedService for Service {
    const NAME: &'static str = "ctrl.v1.ClusterService";
}

impl tower::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let headers = request.headers().clone();
            let mut grpc = Grpc::new(RawCodec);
            Ok(match Method::of_path(request.uri().path()) {
                Some(Method::Watch(kind)) => {
                    let call = watch::Call {
                        shared,
                        kind,
                        headers,
                    };
                    grpc.server_streaming(call, request).await
                }
                Some(method) => {
                    let call = unary::Call {
                        shared,
                        method,
                        headers,
                    };
                    grpc.unary(call, request).await
                }
                None => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

/// A request that is being served. Dropped before its end, it was cancelled.
#[derive(Debug)]
pub(crate) struct Serving {
    shared: Arc<Shared>,
    number: usize,
    ended: bool,
}

impl Serving {
    pub(crate) fn new(shared: &Arc<Shared>, number: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            number,
            ended: false,
        }
    }

    pub(crate) fn end(&mut self, code: Code) {
        self.ended = true;
        self.shared.ended(self.number, code);
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.ended(self.number, Code::Cancelled);
        }
    }
}
