//! The calls with one answer.

use std::{future::pending, sync::Arc, time::Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderMap;
use krane_proto::ctrl::v1::{
    CiliumNetworkPolicyState, DeploymentState, GetDesiredCiliumNetworkPolicyStateRequest,
    GetDesiredDeploymentStateRequest, GetDesiredSentinelStateRequest, HeartbeatRequest, RegionKey,
    ReportDeploymentStatusRequest, ReportSentinelStatusRequest, SentinelState,
    report_deployment_status_request::Change,
};
use prost::{DecodeError, Message as _};
use tonic::{Code, Response, Status, server::UnaryService};

use super::{
    Answer, Asked, Kind, Method, Report, Request, check, service::Serving, shared::Shared,
};

pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
}

impl UnaryService<Bytes> for Call {
    type Response = Bytes;
    type Future = BoxFuture<'static, Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (shared, method) = (Arc::clone(&self.shared), self.method);
        let headers = std::mem::take(&mut self.headers);
        Box::pin(async move {
            let decoded = decode(method, request.into_inner());
            let (region, asked) = decoded.clone().unwrap_or((None, Asked::Unreadable));
            let number = shared.arrived(Request {
                number: 0,
                at: Instant::now(),
                method,
                headers: headers.clone(),
                region: region.clone(),
                asked: asked.clone(),
                ended: None,
            });
            let mut serving = Serving::new(&shared, number);
            let delay = shared.look().faults.delay_of(method);
            if let Some(delay) = delay {
                tokio::time::sleep(delay).await;
            }
            let result = match decoded {
                Ok(_) => answer(&shared, method, &headers, region.as_ref(), &asked).await,
                Err(error) => Err(Status::invalid_argument(error.to_string())),
            };
            serving.end(result.as_ref().map_or_else(Status::code, |_| Code::Ok));
            result.map(Response::new)
        })
    }
}

fn decode(method: Method, body: Bytes) -> Result<(Option<RegionKey>, Asked), DecodeError> {
    let desired = |region, id| (region, Asked::Desired { id });
    Ok(match method {
        Method::Desired(Kind::Deployments) => {
            let request = GetDesiredDeploymentStateRequest::decode(body)?;
            desired(request.region, request.deployment_id)
        }
        Method::Desired(Kind::Sentinels) => {
            let request = GetDesiredSentinelStateRequest::decode(body)?;
            desired(request.region, request.sentinel_id)
        }
        Method::Desired(Kind::Policies) => {
            let request = GetDesiredCiliumNetworkPolicyStateRequest::decode(body)?;
            desired(request.region, request.cilium_network_policy_id)
        }
        Method::ReportDeployment => {
            let request = ReportDeploymentStatusRequest::decode(body)?;
            let report = match request.change {
                Some(Change::Update(update)) => Report::Update {
                    name: update.k8s_name,
                    instances: update.instances,
                },
                Some(Change::Delete(delete)) => Report::Deleted {
                    name: delete.k8s_name,
                },
                None => Report::Neither,
            };
            (request.region, Asked::Report(report))
        }
        Method::ReportSentinel => {
            let request = ReportSentinelStatusRequest::decode(body)?;
            (
                request.region.clone(),
                Asked::Report(Report::Sentinel(request)),
            )
        }
        Method::Heartbeat => (HeartbeatRequest::decode(body)?.region, Asked::Heartbeat),
        // Served elsewhere.
        Method::Watch(_) => (None, Asked::Unreadable),
    })
}

async fn answer(
    shared: &Shared,
    method: Method,
    headers: &HeaderMap,
    region: Option<&RegionKey>,
    asked: &Asked,
) -> Result<Bytes, Status> {
    check::token(headers, &shared.token)?;
    if let Some(code) = shared.fault(method) {
        return Err(Status::new(
            code,
            "the control plane refuses this on purpose",
        ));
    }
    check::region(region)?;
    match (method, asked) {
        (Method::Desired(kind), Asked::Desired { id }) => {
            check::id(id)?;
            let answer = shared.look().store(kind).answer(id);
            match answer {
                Answer::Message(message) => Ok(message),
                Answer::Empty => Ok(empty(kind)),
                Answer::Code(code) => Err(Status::new(code, "no such object in this region")),
                Answer::Silence => pending().await,
            }
        }
        // All responses are empty messages.
        _ => Ok(Bytes::new()),
    }
}

fn empty(kind: Kind) -> Bytes {
    let message = match kind {
        Kind::Deployments => DeploymentState::default().encode_to_vec(),
        Kind::Sentinels => SentinelState::default().encode_to_vec(),
        Kind::Policies => CiliumNetworkPolicyState::default().encode_to_vec(),
    };
    message.into()
}
