//! The desired-state streams.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use bytes::Bytes;
use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use http::HeaderMap;
use krane_proto::ctrl::v1::WatchDeploymentsRequest;
use prost::Message as _;
use tonic::{Code, Response, Status, server::ServerStreamingService};

use super::{Asked, Kind, Method, Request, check, row::Row, service::Serving, shared::Shared};

/// As the Go control plane reads its database.
const PAGE: usize = 100;

pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) kind: Kind,
    pub(crate) headers: HeaderMap,
}

impl ServerStreamingService<Bytes> for Call {
    type Response = Bytes;
    type ResponseStream = BoxStream<'static, Result<Bytes, Status>>;
    type Future = BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (shared, kind) = (Arc::clone(&self.shared), self.kind);
        let headers = std::mem::take(&mut self.headers);
        Box::pin(async move {
            // The three requests look alike.
            let decoded = WatchDeploymentsRequest::decode(request.into_inner());
            let (region, asked) = match &decoded {
                Ok(request) => (
                    request.region.clone(),
                    Asked::Watch {
                        cursor: request.version_last_seen,
                    },
                ),
                Err(_) => (None, Asked::Unreadable),
            };
            let number = shared.arrived(Request {
                number: 0,
                at: Instant::now(),
                method: Method::Watch(kind),
                headers: headers.clone(),
                region: region.clone(),
                asked,
                ended: None,
            });
            let mut serving = Serving::new(&shared, number);
            let delay = shared.look().faults.delay_of(Method::Watch(kind));
            if let Some(delay) = delay {
                tokio::time::sleep(delay).await;
            }
            let allowed = check::token(&headers, &shared.token)
                .and_then(|()| check::region(region.as_ref()))
                .and_then(|()| {
                    decoded.map_err(|error| Status::invalid_argument(error.to_string()))
                });
            let refusal = match &allowed {
                Ok(_) => shared
                    .fault(Method::Watch(kind))
                    .map(|code| Status::new(code, "the control plane refuses this on purpose")),
                Err(status) => Some(status.clone()),
            };
            if let Some(status) = refusal {
                serving.end(status.code());
                return if status.code() == Code::Ok {
                    Ok(Response::new(stream::empty().boxed()))
                } else {
                    Err(status)
                };
            }
            let reader = Reader {
                sent: allowed.map_or(0, |request| request.version_last_seen),
                page: VecDeque::new(),
                shared,
                kind,
                number,
                serving,
            };
            let mut messages = stream::unfold(reader, Reader::next).boxed();
            // The headers wait for the first message.
            match messages.next().await {
                Some(Ok(first)) => {
                    let all = stream::iter([Ok(first)]).chain(messages);
                    Ok(Response::new(all.boxed()))
                }
                Some(Err(status)) => Err(status),
                None => Ok(Response::new(stream::empty().boxed())),
            }
        })
    }
}

struct Reader {
    shared: Arc<Shared>,
    kind: Kind,
    number: usize,
    sent: u64,
    page: VecDeque<Row>,
    serving: Serving,
}

impl Reader {
    async fn next(mut self) -> Option<(Result<Bytes, Status>, Self)> {
        let mut changes = self.shared.changes();
        loop {
            changes.borrow_and_update();
            if self.serving.is_ended() {
                return None;
            }
            let cut = self.shared.look().cuts.of(self.kind, self.number);
            if let Some(code) = cut {
                self.serving.end(code);
                return (code != Code::Ok).then(|| {
                    (
                        Err(Status::new(code, "the control plane cut the stream")),
                        self,
                    )
                });
            }
            if self.page.is_empty() {
                self.page = self
                    .shared
                    .look()
                    .store(self.kind)
                    .page(self.sent, PAGE)
                    .into();
            }
            if let Some(row) = self.page.pop_front() {
                self.sent = row.version;
                return Some((Ok(row.message), self));
            }
            if changes.changed().await.is_err() {
                return None;
            }
        }
    }
}
