//! `krane run --observe`: the whole agent, and nothing is written anywhere.
//!
//! Every write goes to the API server as a dry run, so that it is admitted, defaulted and refused as
//! a real one would be. What the control plane is told comes from the agent that is in charge; this
//! one only listens. [`Journal`] keeps what would have changed.

mod coverage;
mod journal;
mod rehearsal;
mod rehearsed;
mod shadows;

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::report::Report;
use krane_ports::{Answer, ControlPlane, Question, RpcFailure, StreamEvent};

pub use coverage::{Coverage, Obstacle};
pub use journal::{Entry, Journal, Summary, What};
pub use rehearsal::Rehearsal;
pub use shadows::Shadows;

/// The control plane, listened to and told nothing: reports and heartbeats are another agent's.
pub struct Silent {
    inner: Arc<dyn ControlPlane>,
}

impl Silent {
    /// The same control plane, told nothing.
    pub fn new(inner: Arc<dyn ControlPlane>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl ControlPlane for Silent {
    async fn watch(&self, cursor: u64) -> BoxStream<'static, StreamEvent> {
        self.inner.watch(cursor).await
    }

    async fn desired(&self, question: &Question) -> Result<Answer, RpcFailure> {
        self.inner.desired(question).await
    }

    async fn report(&self, _: &Report) -> Result<(), RpcFailure> {
        Ok(())
    }

    /// The region is known: the agent in charge sees to it.
    async fn heartbeat(&self) -> Result<(), RpcFailure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
