//! `grpc.health.v1.Health`, answered from the same copies as the HTTP endpoints.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::HealthView;

/// How often a watcher looks for a change.
const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// The service for `App::with_grpc`. `services` are the full names that may be asked about besides
/// the empty one; watchers are sent away at `shutdown`, so that they do not hold up the server.
pub fn grpc_health(
    view: Arc<dyn HealthView>,
    services: impl IntoIterator<Item = &'static str>,
    shutdown: CancellationToken,
) -> HealthServer<impl Health> {
    HealthServer::new(GrpcHealth {
        view,
        services: services.into_iter().collect(),
        shutdown,
    })
}

#[derive(Clone)]
struct GrpcHealth {
    view: Arc<dyn HealthView>,
    services: Arc<[&'static str]>,
    shutdown: CancellationToken,
}

impl GrpcHealth {
    fn status(&self) -> ServingStatus {
        let readiness = self.view.readiness();
        let serving = readiness.ready && !readiness.stopping && !self.shutdown.is_cancelled();
        if serving {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        }
    }

    fn knows(&self, service: &str) -> bool {
        service.is_empty() || self.services.contains(&service)
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}

#[tonic::async_trait]
impl Health for GrpcHealth {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if self.knows(&request.into_inner().service) {
            Ok(Response::new(response(self.status())))
        } else {
            Err(Status::not_found("unknown service"))
        }
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let known = self.knows(&request.into_inner().service);
        let changes = unfold((self.clone(), None), move |(health, last)| async move {
            loop {
                let now = if known {
                    health.status()
                } else {
                    ServingStatus::ServiceUnknown
                };
                if last != Some(now) {
                    return Some((Ok(response(now)), (health, Some(now))));
                }
                if health.shutdown.is_cancelled() {
                    return None;
                }
                // Waits a period or until the server stops, whichever is first.
                let _ = timeout(WATCH_PERIOD, health.shutdown.cancelled()).await;
            }
        });
        Ok(Response::new(Box::pin(changes)))
    }
}
