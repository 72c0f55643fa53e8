//! Requests within the limits of one owner.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use krane_actors::lease::Leadership;
use krane_domain::refusal::Refusal;
use kube::client::Body;
use tokio::time::timeout;

use super::connection::{CallError, KubeConnection, read_reply};
use super::limits::{CallLimits, CallTimeouts, Slots};
use super::reply::Reply;
use super::request::Call;

/// Largest answer about one object, in bytes; the API server stores at most 2 MiB of it.
const LARGEST_OBJECT: usize = 16 << 20;

/// A connection with limits of its own: each controller has one, the secrets and the lease too.
#[derive(Debug)]
pub struct KubeCalls {
    connection: Arc<KubeConnection>,
    timeouts: CallTimeouts,
    slots: Slots,
    leadership: Leadership,
}

impl KubeCalls {
    /// Calls over this connection within these limits.
    pub fn new(
        connection: Arc<KubeConnection>,
        limits: CallLimits,
        timeouts: CallTimeouts,
    ) -> Self {
        Self {
            connection,
            timeouts,
            slots: Slots::new(limits),
            leadership: Leadership::default(),
        }
    }

    /// The same, and no write starts unless this process may write.
    pub(super) fn led_by(self, leadership: Leadership) -> Self {
        Self { leadership, ..self }
    }

    /// Sends one request about one object. Answers that are no success are `Ok` here: what they
    /// mean depends on the request.
    pub async fn run(&self, call: &Call) -> Result<Reply, Refusal> {
        Ok(self.run_within(call, LARGEST_OBJECT).await?)
    }

    pub(super) async fn run_within(&self, call: &Call, most: usize) -> Result<Reply, CallError> {
        let _slot = self.slots.take().await.ok_or(CallError::Stopping)?;
        // Here and not before: waiting for a slot takes time.
        let permitted = if call.verb.is_write() {
            Some(self.leadership.permit().ok_or(CallError::Standby)?)
        } else {
            None
        };
        let limit = self.limit(call);
        let answer = timeout(limit, self.connection.exchange(call, most)).await;
        let answer = answer.map_err(|_| CallError::TimedOut(limit))?;
        if let Some(write) = permitted.filter(|_| answer.is_ok()) {
            write.answered();
        }
        answer
    }

    /// Starts a watch: waits for the headers only, and takes no slot.
    pub(super) async fn start(&self, call: &Call) -> Result<Response<Body>, CallError> {
        let limit = self.limit(call);
        let answer = timeout(limit, self.connection.start(call)).await;
        answer.map_err(|_| CallError::TimedOut(limit))?
    }

    /// Reads the rest of an answer that turned out to be no watch.
    pub(super) async fn finish(&self, answer: Response<Body>) -> Result<Reply, CallError> {
        let limit = self.timeouts.read;
        let read = timeout(limit, read_reply(answer, LARGEST_OBJECT)).await;
        read.map_err(|_| CallError::TimedOut(limit))?
    }

    pub(super) fn timeouts(&self) -> &CallTimeouts {
        &self.timeouts
    }

    fn limit(&self, call: &Call) -> Duration {
        if call.verb.is_write() {
            self.timeouts.write
        } else {
            self.timeouts.read
        }
    }
}
