//! The scheduler, which calls krane.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::scheduler::{Call, CallFailure, Watched};

/// What a follower is told: the present state of every object, then changes. The last item, if
/// there is one, says why nothing follows.
pub type Watching = BoxStream<'static, Result<Arc<Watched>, CallFailure>>;

/// Who does what the scheduler calls for.
#[async_trait]
pub trait SchedulerDesk: Send + Sync + 'static {
    /// Returns when the object is as the call wants it, or says why it is not. What was taken in is
    /// wanted from then on, also where the answer is that it was refused or not done in time.
    async fn call(&self, call: Call) -> Result<(), CallFailure>;

    /// The workloads and sentinels in the cluster, whoever wants them: as they are, then every
    /// change. Who is slow misses states in between, and never the newest.
    async fn watch(&self) -> Result<Watching, CallFailure>;
}
