//! krane, whose writes go wrong at the cluster's port: tests of the real process say how by the name of an object.
//!
//! `fault-panic…` panics in its lane, `fault-hang…` never returns, and with `fault-stream…` its controller's stream actor
//! panics at every message from then on.

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use krane::run::World;
use krane_actors::status::StatusBoard;
use krane_domain::ids::Controller;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered};
use krane_domain::refusal::Refusal;
use krane_ports::{Cluster, Deletion, Listed, WatchEvent};
use krane_supervision::fault::Fault;

fn main() -> ExitCode {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    krane::cli::main_in(std::env::args_os(), |world: World| {
        let board = world.board().clone();
        world.map_clusters(|controller, cluster| {
            Arc::new(Faulty {
                cluster,
                controller,
                board: board.clone(),
            })
        })
    })
}

struct Faulty {
    cluster: Arc<dyn Cluster>,
    controller: Controller,
    board: StatusBoard,
}

impl Faulty {
    async fn strike(&self, name: &str) {
        assert!(!name.starts_with("fault-panic"), "a fault of a test");
        if name.starts_with("fault-stream") {
            let path = format!("root/{}/intake/stream", self.controller.name());
            let plan = Fault::Panic.next().times(u32::MAX);
            assert!(self.board.inject(&path, plan), "no actor is called {path}");
        }
        if name.starts_with("fault-") {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Cluster for Faulty {
    async fn apply(&self, object: &Rendered, uid: Option<&str>) -> Result<LiveObject, Refusal> {
        self.strike(&object.reference.name).await;
        self.cluster.apply(object, uid).await
    }

    async fn adopt(&self, object: &ObjectRef, uid: &str) -> Result<LiveObject, Refusal> {
        self.cluster.adopt(object, uid).await
    }

    async fn hold(
        &self,
        object: &ObjectRef,
        uid: &str,
        until: Option<&str>,
    ) -> Result<LiveObject, Refusal> {
        self.cluster.hold(object, uid, until).await
    }

    async fn delete(&self, object: &ObjectRef, uid: &str) -> Result<Deletion, Refusal> {
        self.cluster.delete(object, uid).await
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
        self.cluster.metadata(object).await
    }

    async fn get(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
        self.cluster.get(object).await
    }

    async fn list(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.cluster.list(spec).await
    }

    async fn list_anew(&self, spec: &WatchSpec) -> Result<Listed, Refusal> {
        self.cluster.list_anew(spec).await
    }

    async fn watch(
        &self,
        spec: &WatchSpec,
        resource_version: &str,
    ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
        self.cluster.watch(spec, resource_version).await
    }
}
