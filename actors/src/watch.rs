//! Follows the cluster: one list-and-watch loop per kind, all feeding the view.
//!
//! Owns: the loops. Never decides what is wanted. Lost when it dies: open watches; the next
//! incarnation lists again, and what a list lacks is known to be gone.

mod follow;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::Resource;
use tokio::task::JoinSet;

use crate::actor::{ActorError, Behaviour, Context, Message};
use crate::address::Address;
use crate::metrics::ControllerMetrics;
use crate::outage;
use crate::ports::{Cluster, Item, Listed};
use crate::reconciler::{self, ReconcilerMessage};
use crate::reporter::ReporterMessage;
use crate::store::{Store, WatchFailure};

pub use follow::first_lists;

/// What a watch actor understands.
#[derive(Debug)]
pub enum WatchMessage {
    /// A complete list of one kind.
    Listed(Resource, Listed),
    /// An object is there.
    Applied(Item),
    /// An object left the watch.
    Deleted(Item),
    /// Something could not be understood.
    Undecodable(Resource, String),
    /// The API server does not know this kind at present.
    KindMissing(Resource),
    /// A list or watch failed.
    Failed(Resource, WatchFailure),
    /// A list or watch works again after it failed.
    Recovered(Resource),
    /// The loop of one kind panicked.
    LoopPanicked(Resource),
}

impl Message for WatchMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Listed(..) => "listed",
            Self::Applied(_) => "applied",
            Self::Deleted(_) => "deleted",
            Self::Undecodable(..) => "undecodable",
            Self::KindMissing(_) => "kind_missing",
            Self::Failed(..) => "failed",
            Self::Recovered(_) => "recovered",
            Self::LoopPanicked(_) => "loop_panicked",
        }
    }
}

/// A watch actor's state.
pub struct Watch {
    store: Arc<Store>,
    cluster: Arc<dyn Cluster>,
    reconciler: Address<ReconcilerMessage>,
    reporter: Address<ReporterMessage>,
    metrics: ControllerMetrics,
    loops: JoinSet<()>,
}

impl Watch {
    /// A watch actor that feeds this store.
    pub fn new(
        store: Arc<Store>,
        cluster: Arc<dyn Cluster>,
        reconciler: Address<ReconcilerMessage>,
        reporter: Address<ReporterMessage>,
        metrics: ControllerMetrics,
    ) -> Self {
        Self {
            store,
            cluster,
            reconciler,
            reporter,
            metrics,
            loops: JoinSet::new(),
        }
    }
}

impl Behaviour for Watch {
    type Message = WatchMessage;

    async fn started(&mut self, context: &Context<WatchMessage>) -> Result<(), ActorError> {
        for spec in self.store.controller().watches(self.store.rules()) {
            self.follow(spec, context);
        }
        Ok(())
    }

    async fn handle(
        &mut self,
        message: WatchMessage,
        context: &Context<WatchMessage>,
    ) -> Result<(), ActorError> {
        if let WatchMessage::LoopPanicked(resource) = message {
            return Err(ActorError(format!(
                "the watch of {} made krane panic",
                resource.plural()
            )));
        }
        let now = context.board.now();
        let controller = self.store.controller().name();
        let is_about_watches = matches!(
            message,
            WatchMessage::Listed(..)
                | WatchMessage::KindMissing(_)
                | WatchMessage::Failed(..)
                | WatchMessage::Recovered(_)
        );
        self.store.with(|memory| match message {
            WatchMessage::Listed(resource, listed) => {
                for text in &listed.undecodable {
                    tracing::warn!(controller, kind = resource.kind(), text, "object left out");
                }
                self.metrics
                    .undecodable
                    .inc_by(listed.undecodable.len() as u64);
                self.metrics.relists.inc();
                memory.replace(resource, listed, now);
            }
            WatchMessage::Applied(item) => memory.see(item, now),
            WatchMessage::Deleted(item) => memory.lose(&item, now),
            WatchMessage::Undecodable(resource, text) => {
                tracing::warn!(controller, kind = resource.kind(), text, "event left out");
                self.metrics.undecodable.inc();
            }
            WatchMessage::KindMissing(resource) => {
                if memory.kind_is_missing(resource, now) {
                    tracing::warn!(
                        controller,
                        kind = resource.kind(),
                        "the API server does not know this kind; install its CRD"
                    );
                }
            }
            WatchMessage::Failed(resource, failure) => {
                let text = failure.text.clone();
                if memory.watch_failed(resource, failure, now) {
                    tracing::warn!(
                        controller,
                        kind = resource.kind(),
                        text,
                        "watch failed; retrying"
                    );
                }
            }
            WatchMessage::Recovered(resource) => {
                memory.broken_watches.remove(&resource);
                tracing::info!(controller, kind = resource.kind(), "watch works again");
                memory.backlog.retry_transient(now);
            }
            WatchMessage::LoopPanicked(_) => {}
        });
        if is_about_watches {
            outage::look(&self.store, &context.board);
        }
        reconciler::nudge(&self.reconciler);
        if self.store.with(|memory| !memory.to_observe.is_empty()) {
            let _ = self.reporter.try_send(ReporterMessage::Look);
        }
        Ok(())
    }
}

impl Watch {
    fn follow(&mut self, spec: WatchSpec, context: &Context<WatchMessage>) {
        let listed = self
            .store
            .with(|memory| memory.listed.remove(&spec.resource));
        let cluster = Arc::clone(&self.cluster);
        let chance = self.store.chance().clone();
        let (own, resource) = (context.own.clone(), spec.resource);
        let following = follow::follow(spec, cluster, own.clone(), listed, chance);
        self.loops.spawn(async move {
            // A loop never ends by itself. Without one of them krane would be blind and not know.
            if AssertUnwindSafe(following).catch_unwind().await.is_err() {
                own.tell(WatchMessage::LoopPanicked(resource));
            }
        });
    }
}
