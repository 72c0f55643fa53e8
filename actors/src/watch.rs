//! Follows the cluster: one list-and-watch loop per kind, all feeding the view.
//!
//! Owns: the loops. Never decides what is wanted. Lost when it dies: open watches; the next
//! incarnation lists again, and what a list lacks is known to be gone.

mod first;
mod follow;
mod outage;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

pub use first::first_lists;
use futures::FutureExt;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::Resource;
use krane_ports::{Cluster, Item, Listed};
use krane_supervision::actor::Behaviour;
use krane_supervision::address::Address;
use krane_supervision::cause::ActorError;
use krane_supervision::message::Message;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::metrics::ControllerMetrics;
use crate::reconciler::{self, ReconcilerMessage};
use crate::reporter::ReporterMessage;
use crate::status::{Context, StatusBoard};
use crate::store::{Store, WatchFailure, WatchStart};

/// What a watch actor understands.
#[derive(Debug)]
pub enum WatchMessage {
    /// A complete list of one kind is asked for once everything its watch has shown is known.
    Listing(Resource, oneshot::Sender<()>),
    /// The cluster was restored from a backup, so often by now.
    Restored(u64),
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
    /// krane may not list this kind at present.
    Forbidden(Resource, WatchFailure),
    /// A list or watch failed.
    Failed(Resource, WatchFailure),
    /// A list or watch failed, and a watch is open again.
    Recovered(Resource),
    /// The loop of one kind panicked.
    LoopPanicked(Resource),
}

impl Message for WatchMessage {
    fn name(&self) -> &'static str {
        match self {
            Self::Listing(..) => "listing",
            Self::Restored(_) => "restored",
            Self::Listed(..) => "listed",
            Self::Applied(_) => "applied",
            Self::Deleted(_) => "deleted",
            Self::Undecodable(..) => "undecodable",
            Self::KindMissing(_) => "kind_missing",
            Self::Forbidden(..) => "forbidden",
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
    /// Restores of the cluster that are known to the store.
    restores: u64,
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
            restores: 0,
        }
    }
}

impl Behaviour for Watch {
    type Message = WatchMessage;
    type Board = StatusBoard;

    async fn started(&mut self, context: &Context<WatchMessage>) -> Result<(), ActorError> {
        self.restores = context.board.api_server().restores();
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
                | WatchMessage::Forbidden(..)
                | WatchMessage::Failed(..)
                | WatchMessage::Recovered(_)
        );
        match message {
            WatchMessage::Listed(resource, listed) => {
                for text in &listed.undecodable {
                    tracing::warn!(controller, kind = resource.kind(), text, "object left out");
                }
                self.metrics
                    .undecodable
                    .inc_by(listed.undecodable.len() as u64);
                self.metrics.relists.inc();
                self.store.replace_objects(resource, listed, now);
            }
            WatchMessage::Listing(resource, known) => {
                self.store.begin_list(resource);
                let _ = known.send(());
            }
            WatchMessage::Restored(restores) => {
                if std::mem::replace(&mut self.restores, restores) < restores {
                    self.store.note_cluster_restored();
                }
            }
            WatchMessage::Applied(item) => self.store.upsert_object(item, now),
            WatchMessage::Deleted(item) => self.store.remove_object(&item, now),
            WatchMessage::Undecodable(resource, text) => {
                tracing::warn!(controller, kind = resource.kind(), text, "event left out");
                self.metrics.undecodable.inc();
            }
            WatchMessage::KindMissing(resource) => {
                if self.store.note_kind_missing(resource, now) {
                    tracing::warn!(
                        controller,
                        kind = resource.kind(),
                        "the API server does not know this kind; install its CRD"
                    );
                }
            }
            WatchMessage::Forbidden(resource, failure) => {
                let text = failure.text.clone();
                if self.store.note_kind_forbidden(resource, failure, now) {
                    crate::forbidden::tell_forbidden(controller, resource, &text);
                }
            }
            WatchMessage::Failed(resource, failure) => {
                let text = failure.text.clone();
                if self.store.note_watch_failed(resource, failure, now) {
                    tracing::warn!(
                        controller,
                        kind = resource.kind(),
                        text,
                        "watch failed; retrying"
                    );
                }
            }
            WatchMessage::Recovered(resource) => {
                self.store.note_watch_recovered(resource, now);
                tracing::info!(controller, kind = resource.kind(), "watch works again");
            }
            WatchMessage::LoopPanicked(_) => {}
        }
        if is_about_watches {
            outage::look(&self.store, &context.board);
        }
        reconciler::nudge(&self.reconciler);
        if self.store.has_workloads_to_observe() {
            let _ = self.reporter.try_send(ReporterMessage::Look);
        }
        Ok(())
    }
}

impl Watch {
    fn follow(&mut self, spec: WatchSpec, context: &Context<WatchMessage>) {
        let WatchStart { listed, is_failing } = self.store.begin_watch(spec.resource);
        let cluster = Arc::clone(&self.cluster);
        let chance = self.store.chance().clone();
        let (own, resource) = (context.own.clone(), spec.resource);
        let api_server = context.board.api_server().clone();
        let loop_own = own.clone();
        let following = follow::follow(
            spec, cluster, loop_own, listed, is_failing, chance, api_server,
        );
        self.loops.spawn(async move {
            // A loop never ends by itself. Without one of them krane would be blind and not know.
            if AssertUnwindSafe(following).catch_unwind().await.is_err() {
                own.tell(WatchMessage::LoopPanicked(resource));
            }
        });
    }
}
