//! `krane.v1.SchedulerService`: whoever holds `scheduler.token` has workloads run, and is told how
//! they are (D32).

mod access;
mod messages;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State as AxumState;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response as HttpResponse;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use krane_domain::scheduler::{Call, CallFailure, CallFailureKind};
use krane_domain::words;
use krane_ports::SchedulerDesk;
use krane_proto::krane::v1::scheduler_service_server::{SchedulerService, SchedulerServiceServer};
use krane_proto::krane::v1::{
    ApplyDeploymentRequest, ApplyDeploymentResponse, ApplySentinelRequest, ApplySentinelResponse,
    DeleteDeploymentRequest, DeleteDeploymentResponse, DeleteSentinelRequest,
    DeleteSentinelResponse, ScrapeOpenApiSchemaRequest, ScrapeOpenApiSchemaResponse, State,
    WatchRequest,
};
use krane_settings::SecretSource;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::{Code, Request, Response, Status};

use super::connect::{self, LARGEST_REQUEST};

/// The service as health and reflection name it.
pub const SERVICE: &str = "krane.v1.SchedulerService";
/// Its methods; `Watch` over gRPC alone.
pub const METHODS: [&str; 6] = [
    APPLY_DEPLOYMENT,
    DELETE_DEPLOYMENT,
    APPLY_SENTINEL,
    DELETE_SENTINEL,
    SCRAPE,
    WATCH,
];

const APPLY_DEPLOYMENT: &str = "/krane.v1.SchedulerService/ApplyDeployment";
const DELETE_DEPLOYMENT: &str = "/krane.v1.SchedulerService/DeleteDeployment";
const APPLY_SENTINEL: &str = "/krane.v1.SchedulerService/ApplySentinel";
const DELETE_SENTINEL: &str = "/krane.v1.SchedulerService/DeleteSentinel";
const WATCH: &str = "/krane.v1.SchedulerService/Watch";
const SCRAPE: &str = "/krane.v1.SchedulerService/ScrapeOpenApiSchema";

/// The service of one incarnation of the server.
#[derive(Clone)]
pub struct Scheduler {
    desk: Arc<dyn SchedulerDesk>,
    token: Option<SecretSource>,
    stop: CancellationToken,
}

impl Scheduler {
    /// Hands calls that bring this token to the desk; without a token there are none. Followers are
    /// sent away at `stop`, so that they do not hold up the server.
    pub fn new(
        desk: Arc<dyn SchedulerDesk>,
        token: Option<SecretSource>,
        stop: CancellationToken,
    ) -> Self {
        Self { desk, token, stop }
    }

    /// The service over gRPC.
    pub fn grpc(
        &self,
    ) -> InterceptedService<SchedulerServiceServer<Self>, impl Interceptor + Clone + use<>> {
        let service =
            SchedulerServiceServer::new(self.clone()).max_decoding_message_size(LARGEST_REQUEST);
        let it = self.clone();
        // Before a byte of the message is read.
        InterceptedService::new(service, move |request: Request<()>| {
            it.authorize(request.metadata())?;
            Ok(request)
        })
    }

    /// The service over Connect, but for `Watch`.
    pub fn connect(&self) -> Router {
        let service = || self.clone();
        let apply_deployment = connect::method(service(), |it, call| it.apply_deployment(call));
        let delete_deployment = connect::method(service(), |it, call| it.delete_deployment(call));
        let apply_sentinel = connect::method(service(), |it, call| it.apply_sentinel(call));
        let delete_sentinel = connect::method(service(), |it, call| it.delete_sentinel(call));
        let scrape = connect::method(service(), |it, call| it.scrape_open_api_schema(call));
        Router::new()
            .route(APPLY_DEPLOYMENT, apply_deployment)
            .route(DELETE_DEPLOYMENT, delete_deployment)
            .route(APPLY_SENTINEL, apply_sentinel)
            .route(DELETE_SENTINEL, delete_sentinel)
            .route(SCRAPE, scrape)
            .route(
                WATCH,
                connect::unimplemented("Watch is a stream: call it over gRPC"),
            )
            .route_layer(from_fn_with_state(service(), guard))
    }

    fn authorize(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let mut given = metadata.get_all("authorization").iter();
        // Of two of them, one in between may have read the other.
        let given = match (given.next(), given.next()) {
            (Some(only), None) => Some(only.as_bytes()),
            _ => None,
        };
        let token = || self.token.as_ref().map(SecretSource::current);
        if given.is_some() && access::is_authorized(given, token().as_ref()) {
            Ok(())
        } else {
            let text = "send the token of krane's setting scheduler.token as a bearer; while that \
                        is empty nobody may call";
            Err(Status::unauthenticated(text))
        }
    }

    /// Has one call done.
    async fn call<M, A: Default>(
        &self,
        request: Request<M>,
        meaning: impl FnOnce(M) -> Call,
    ) -> Result<Response<A>, Status> {
        let call = meaning(request.into_inner());
        // Names of any length come over the wire.
        let what = words::cut(format!("{call:?}"));
        let done = self.desk.call(call).await;
        match &done {
            Ok(()) => tracing::info!(call = what, "scheduler: done"),
            Err(failure) if failure.kind == CallFailureKind::Internal => {
                tracing::error!(call = what, %failure, "scheduler: not done, a defect of krane");
            }
            // Its caller is told, and can make as many of them as it likes.
            Err(failure) => tracing::info!(call = what, %failure, "scheduler: not done"),
        }
        done.map_err(status)?;
        Ok(Response::new(A::default()))
    }
}

#[tonic::async_trait]
impl SchedulerService for Scheduler {
    async fn apply_deployment(
        &self,
        request: Request<ApplyDeploymentRequest>,
    ) -> Result<Response<ApplyDeploymentResponse>, Status> {
        self.call(request, messages::apply_deployment).await
    }

    async fn delete_deployment(
        &self,
        request: Request<DeleteDeploymentRequest>,
    ) -> Result<Response<DeleteDeploymentResponse>, Status> {
        self.call(request, messages::delete_deployment).await
    }

    async fn apply_sentinel(
        &self,
        request: Request<ApplySentinelRequest>,
    ) -> Result<Response<ApplySentinelResponse>, Status> {
        self.call(request, messages::apply_sentinel).await
    }

    async fn delete_sentinel(
        &self,
        request: Request<DeleteSentinelRequest>,
    ) -> Result<Response<DeleteSentinelResponse>, Status> {
        self.call(request, messages::delete_sentinel).await
    }

    type WatchStream = BoxStream<'static, Result<State, Status>>;

    async fn watch(
        &self,
        _request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let states = self.desk.watch().await.map_err(status)?;
        let states = states.map(|next| next.map(|state| messages::state(&state)).map_err(status));
        // After an error of the stream itself nobody reads on to this one.
        let stopping = Status::unavailable("krane is stopping; watch again for the present state");
        let states = states
            .take_until(self.stop.clone().cancelled_owned())
            .chain(stream::once(async { Err(stopping) }));
        Ok(Response::new(states.boxed()))
    }

    /// Never: krane fetches no address of a tenant.
    async fn scrape_open_api_schema(
        &self,
        _request: Request<ScrapeOpenApiSchemaRequest>,
    ) -> Result<Response<ScrapeOpenApiSchemaResponse>, Status> {
        let text = "krane fetches nothing from workloads; ask the workload itself";
        Err(Status::unimplemented(text))
    }
}

/// Lets a request over Connect through that brings the token, before a byte of its body is read.
async fn guard(
    AxumState(it): AxumState<Scheduler>,
    request: http::Request<Body>,
    next: Next,
) -> HttpResponse {
    let headers = MetadataMap::from_headers(request.headers().clone());
    match it.authorize(&headers) {
        Ok(()) => next.run(request).await,
        Err(refused) => connect::refusal(&refused),
    }
}

fn status(failure: CallFailure) -> Status {
    let code = match failure.kind {
        CallFailureKind::InvalidArgument => Code::InvalidArgument,
        CallFailureKind::FailedPrecondition => Code::FailedPrecondition,
        CallFailureKind::PermissionDenied => Code::PermissionDenied,
        CallFailureKind::Aborted => Code::Aborted,
        CallFailureKind::DeadlineExceeded => Code::DeadlineExceeded,
        CallFailureKind::Unavailable => Code::Unavailable,
        CallFailureKind::Internal => Code::Internal,
    };
    Status::new(code, failure.message)
}
