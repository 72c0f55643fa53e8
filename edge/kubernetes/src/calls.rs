//! Requests within the limits of one owner.

use std::sync::Arc;

use http::Response;
use krane_domain::refusal::Refusal;
use krane_ports::WriteAccess;
use kube::client::Body;
use tokio::time::{Instant, timeout};

use super::connection::{CallError, KubeConnection, read_reply};
use super::limits::{CallLimits, CallTimeouts, ReadLimits, Slots};
use super::reply::Reply;
use super::request::Call;

/// Largest answer about one object, in bytes; the API server stores at most 2 MiB of it.
const LARGEST_OBJECT: usize = 16 << 20;

/// A connection with limits of its own: each controller has one, the secrets and the lease too.
#[derive(Debug)]
pub struct KubeCalls {
    connection: Arc<KubeConnection>,
    timeouts: CallTimeouts,
    reads: ReadLimits,
    slots: Slots,
    /// Without one this process may always write.
    access: Option<Arc<dyn WriteAccess>>,
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
            reads: ReadLimits::default(),
            slots: Slots::new(limits),
            access: None,
        }
    }

    /// The same, and no write starts unless this process may write.
    pub(super) fn led_by(self, access: Arc<dyn WriteAccess>) -> Self {
        let access = Some(access);
        Self { access, ..self }
    }

    /// Sends one request about one object. Answers that are no success are `Ok` here: what they
    /// mean depends on the request.
    pub async fn run(&self, call: &Call) -> Result<Reply, Refusal> {
        Ok(self.run_within(call, LARGEST_OBJECT).await?)
    }

    pub(super) async fn run_within(&self, call: &Call, most: usize) -> Result<Reply, CallError> {
        let _slot = self.slots.take().await.ok_or(CallError::Stopping)?;
        // Here and not before: waiting for a slot takes time.
        let permitted = match &self.access {
            Some(access) if call.verb.is_write() => {
                Some(access.permit().ok_or(CallError::Standby)?)
            }
            _ => None,
        };
        let exchange = self.within_limit(call, self.connection.exchange(call, most));
        let answer = match &permitted {
            // What was decided in a term is not left to arrive after it (D49).
            Some(write) => tokio::select! {
                answer = exchange => answer,
                () = write.ended() => return Err(CallError::Standby),
            },
            None => exchange.await,
        };
        if let Some(write) = permitted.filter(|_| answer.is_ok()) {
            write.answered();
        }
        answer
    }

    /// Requests from now on go out over new connections.
    pub(super) async fn reconnect(&self) -> Result<(), CallError> {
        self.connection.reconnect().await
    }

    /// Starts a watch: waits for the headers only, and takes no slot.
    pub(super) async fn start(&self, call: &Call) -> Result<Response<Body>, CallError> {
        self.within_limit(call, self.connection.start(call)).await
    }

    /// Reads the rest of an answer that turned out to be no watch.
    pub(super) async fn finish(&self, answer: Response<Body>) -> Result<Reply, CallError> {
        let limit = self.timeouts.read;
        let read = timeout(limit, read_reply(answer, LARGEST_OBJECT)).await;
        read.map_err(|_| CallError::TimedOut(limit))?
    }

    async fn within_limit<T>(
        &self,
        call: &Call,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        if call.verb.is_write() {
            let limit = self.timeouts.write;
            let answer = timeout(limit, work).await;
            return answer.map_err(|_| CallError::WriteTimedOut(limit))?;
        }
        let (kind, start) = ((call.verb, call.resource), Instant::now());
        let limit = self.reads.of(kind, &self.timeouts, start);
        let answer = timeout(limit, work).await;
        let now = Instant::now();
        if let Ok(answer) = answer {
            self.reads.answered(kind, now - start, &self.timeouts, now);
            return answer;
        }
        self.reads.timed_out(kind, limit, &self.timeouts, now);
        Err(CallError::TimedOut(limit))
    }

    pub(super) fn timeouts(&self) -> &CallTimeouts {
        &self.timeouts
    }
}
