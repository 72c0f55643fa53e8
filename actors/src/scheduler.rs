//! Calls of the scheduler (D32): what the RPC port asks for, and what it is answered.
//!
//! A call becomes a message to the reconciler of its kind and is answered once its lane has ended.
//! From then on its object is looked after like any other; nothing here remembers it.

mod desk;
mod watching;

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::scheduler::{Call, CallFailure, CallFailureKind, Watched};

pub use desk::{CALL_DEADLINE, Desk, Front};
pub(crate) use watching::Followers;
pub use watching::MOST_FOLLOWERS;

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

fn unavailable(message: impl Into<String>) -> CallFailure {
    CallFailure::new(CallFailureKind::Unavailable, message)
}

/// Why a process that does not write does nothing for the scheduler either.
pub(crate) fn standby() -> CallFailure {
    unavailable("this krane is on standby: another one holds the lease")
}

/// Why a process on its way out begins nothing.
pub(crate) fn stopping() -> CallFailure {
    unavailable("krane is stopping; call again for the next one")
}

/// Why nothing is known of the cluster at present.
pub(crate) fn starting() -> CallFailure {
    unavailable("krane does not know the cluster yet; try again in a moment")
}
