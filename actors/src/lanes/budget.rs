//! How long a lane may take: some time of its own, and for each call what that call may take (D49).
//!
//! A limit beside the calls' own would cut off a write that the API server still works on, and a
//! state that waits for slow webhooks would be taken for a bad one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered};
use krane_domain::refusal::Refusal;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use krane_ports::{Cluster, Deletion, LONGEST_CALL, Listed, WatchEvent};

/// What a lane may take apart from its calls.
pub const OWN_TIME: Duration = Duration::from_secs(30);

/// The cluster, as one lane asks it.
pub(super) struct Budget {
    cluster: Arc<dyn Cluster>,
    began: Instant,
    spent: Mutex<Spent>,
}

#[derive(Debug)]
struct Spent {
    deadline: Instant,
    longest: Option<Duration>,
}

/// It took longer than this.
#[derive(Debug)]
pub(super) struct Overrun(pub(super) Duration);

impl Budget {
    pub(super) fn new(cluster: Arc<dyn Cluster>) -> Self {
        let began = Instant::now();
        let spent = Spent {
            deadline: began + OWN_TIME,
            longest: None,
        };
        Self {
            cluster,
            began,
            spent: Mutex::new(spent),
        }
    }

    /// How long the longest call took, if there was one.
    pub(super) fn longest_call(&self) -> Option<Duration> {
        self.spent.lock().longest
    }

    /// Does this work within what it may take: with each call that it makes it may take longer.
    pub(super) async fn limit<T>(&self, work: impl Future<Output = T>) -> Result<T, Overrun> {
        let mut work = std::pin::pin!(work);
        let deadline = || self.spent.lock().deadline;
        loop {
            let until = deadline();
            if let Ok(result) = timeout_at(until, work.as_mut()).await {
                return Ok(result);
            }
            if deadline() <= until {
                return Err(Overrun(until - self.began));
            }
        }
    }

    fn begin(&self, requests: u32) -> CallTimer<'_> {
        self.spent.lock().deadline += LONGEST_CALL * requests;
        CallTimer {
            spent: &self.spent,
            began: Instant::now(),
        }
    }
}

/// A call under way. One that is cut off took as long as it was let.
struct CallTimer<'a> {
    spent: &'a Mutex<Spent>,
    began: Instant,
}

impl Drop for CallTimer<'_> {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let mut spent = self.spent.lock();
        spent.longest = spent.longest.max(Some(took));
    }
}

#[async_trait]
impl Cluster for Budget {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        let _timer = self.begin(1);
        self.cluster.apply(object, uid).await
    }

    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal> {
        // It reads first.
        let _timer = self.begin(2);
        self.cluster.adopt(object, uid).await
    }

    async fn hold(
        &self,
        object: &ObjectRef,
        uid: &str,
        until: Option<&str>,
    ) -> Result<LiveObject, Refusal> {
        let _timer = self.begin(1);
        self.cluster.hold(object, uid, until).await
    }

    async fn delete(&self, object: &ObjectRef, uid: &str) -> Result<Deletion, Refusal> {
        let _timer = self.begin(1);
        self.cluster.delete(object, uid).await
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        let _timer = self.begin(1);
        self.cluster.metadata(object).await
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        let _timer = self.begin(1);
        self.cluster.get(object).await
    }

    /// No lane lists.
    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.cluster.list(spec).await
    }

    /// No lane lists.
    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.cluster.list_anew(spec).await
    }

    /// No lane watches.
    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        self.cluster.watch(spec, resource_version).await
    }
}
