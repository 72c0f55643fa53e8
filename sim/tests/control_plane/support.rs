//! A client like any other.

use std::time::Duration;

use krane_proto::ctrl::v1::{
    DeploymentState, RegionKey, WatchDeploymentsRequest,
    cluster_service_client::ClusterServiceClient,
};
use krane_sim::control_plane::{ControlPlane, PLATFORM, REGION};
use tonic::{
    Request, Status, Streaming,
    transport::{Channel, Endpoint},
};

/// Generous: the machine may be compiling.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) type Client = ClusterServiceClient<Channel>;

pub(crate) async fn control() -> ControlPlane {
    ControlPlane::start("token").await.unwrap()
}

pub(crate) async fn client(control: &ControlPlane) -> Client {
    let channel = Endpoint::from_shared(control.url())
        .unwrap()
        .connect()
        .await
        .unwrap();
    ClusterServiceClient::new(channel)
}

pub(crate) fn region() -> Option<RegionKey> {
    Some(RegionKey {
        platform: PLATFORM.to_owned(),
        name: REGION.to_owned(),
    })
}

/// A request with the right token.
pub(crate) fn with_token<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert("authorization", "Bearer token".parse().unwrap());
    request
}

pub(crate) async fn watch(
    client: &mut Client,
    version_last_seen: u64,
) -> Result<Streaming<DeploymentState>, Status> {
    let request = WatchDeploymentsRequest {
        region: region(),
        version_last_seen,
    };
    client
        .watch_deployments(with_token(request))
        .await
        .map(tonic::Response::into_inner)
}

/// The versions of the next messages.
pub(crate) async fn versions(stream: &mut Streaming<DeploymentState>, count: usize) -> Vec<u64> {
    let mut versions = Vec::new();
    for _ in 0..count {
        let message = tokio::time::timeout(LIMIT, stream.message()).await.unwrap();
        versions.push(message.unwrap().unwrap().version);
    }
    versions
}
