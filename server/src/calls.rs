//! The calls of the RPC port: how many may run at once, and how each of them ended.

mod admission;
mod follow;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use admission::{Admission, Rooms};
use axum::body::Body;
use http::Request;
use krane_proto::codes;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::bounds::CALLS;

/// Calls of one sender at once, so that no pod takes the room of all.
pub const MOST_CALLS_OF_ONE: usize = CALLS.per_sender;

/// The metrics of all calls, for every incarnation of the server.
#[derive(Clone, Debug)]
pub struct CallFamilies {
    requests: IntCounterVec,
    seconds: HistogramVec,
}

impl CallFamilies {
    /// Registers `krane_rpc_requests_total` and `krane_rpc_duration_seconds`.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let requests = IntCounterVec::new(
            Opts::new(
                "krane_rpc_requests_total",
                "Calls to the RPC port, by the code they ended with.",
            ),
            &["method", "code"],
        )?;
        let buckets = vec![0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
        let seconds = HistogramVec::new(
            HistogramOpts::new(
                "krane_rpc_duration_seconds",
                "Duration of calls to the RPC port; of a stream, to its end.",
            )
            .buckets(buckets),
            &["method"],
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        Ok(Self { requests, seconds })
    }
}

/// The calls of one server.
#[derive(Clone, Debug)]
pub struct Calls {
    families: CallFamilies,
    /// Paths; others are not counted, for anybody can make them up.
    procedures: Arc<BTreeSet<&'static str>>,
    rooms: Rooms,
}

impl Calls {
    /// Counts calls of these paths, such as `/krane.v1.SecretsService/DecryptSecretsBlob`.
    pub fn new(families: CallFamilies, procedures: impl IntoIterator<Item = &'static str>) -> Self {
        let procedures: BTreeSet<_> = procedures.into_iter().collect();
        for path in &procedures {
            // There before the first call, so that it is seen as an increase.
            families
                .requests
                .with_label_values(&[method(path), codes::name(Code::Ok)]);
            families.seconds.with_label_values(&[method(path)]);
        }
        Self {
            families,
            procedures: Arc::new(procedures),
            rooms: Rooms::new(),
        }
    }

    /// A call of this path begins, unless it is none.
    pub(super) fn begin(&self, path: &str, peer: Option<IpAddr>) -> Option<Call> {
        let path = *self.procedures.get(path)?;
        Some(Call {
            method: method(path),
            families: self.families.clone(),
            began: Instant::now(),
            admission: self.rooms.admission(path, peer),
            code: Code::Cancelled,
        })
    }
}

fn method(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// One call; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Call {
    method: &'static str,
    families: CallFamilies,
    began: Instant,
    /// What it holds it gives back with itself.
    admission: Admission,
    /// How it ends unless somebody knows better: its caller gave it up.
    code: Code,
}

impl Call {
    /// Whether its answer has no end of its own: a watch.
    pub(super) const fn stays_open(&self) -> bool {
        self.admission.stays_open()
    }

    /// The request as its handler is to read it, or why it gets none.
    pub(super) fn receive(&self, request: Request<Body>) -> Result<Request<Body>, Status> {
        self.admission.receive(request)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let CallFamilies { requests, seconds } = &self.families;
        requests
            .with_label_values(&[self.method, codes::name(self.code)])
            .inc();
        seconds
            .with_label_values(&[self.method])
            .observe(self.began.elapsed().as_secs_f64());
    }
}
