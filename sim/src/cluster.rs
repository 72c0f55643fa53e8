//! A Kubernetes cluster in memory: API server, controllers, scheduler and nodes.
//!
//! It behaves as measured on a real one where krane can see it: field ownership and server-side
//! apply, defaults, refusals with their texts, watches, deletion, pods. Everything that takes time
//! or chance follows tokio's clock and a seed, so a run on a paused clock can be repeated.

mod admin;
mod agenda;
mod apply;
mod client;
mod clock;
mod defaults;
mod deliveries;
mod deployments;
mod field_set;
mod garbage;
mod leases;
mod namespaces;
mod nodes;
mod normal;
mod options;
mod ownership;
mod patches;
mod pods;
mod quantity;
mod refusals;
mod replica_sets;
mod requests;
mod schema;
mod selectors;
mod services;
mod store;
mod tokens;
mod typed;
mod validate;
mod view;
mod watch;
mod world;

use std::sync::Arc;

use parking_lot::Mutex;

pub use admin::{Admin, Answer, Patch};
pub use client::SimClient;
pub use deliveries::{Deliveries, Delivery};
pub use leases::SimLeases;
pub use options::{Options, Pace};
pub use pods::Behaviour;
pub use store::Backup;
pub use tokens::{API_AUDIENCE, TokenIssuer};
pub use view::Lag;

use world::World;

/// The cluster. Clones are the same cluster.
#[derive(Clone)]
pub struct SimCluster {
    world: Arc<Mutex<World>>,
}

impl SimCluster {
    /// An empty cluster.
    pub fn new(options: Options) -> Self {
        Self {
            world: Arc::new(Mutex::new(World::new(options))),
        }
    }

    /// A new client, with hooks of its own.
    pub fn client(&self) -> SimClient {
        SimClient::new(Arc::clone(&self.world))
    }

    /// Everybody else.
    pub fn admin(&self) -> Admin {
        Admin::new(Arc::clone(&self.world))
    }

    /// Who hands out ServiceAccount tokens.
    pub fn tokens(&self) -> TokenIssuer {
        TokenIssuer::new(Arc::clone(&self.world))
    }

    /// Controllers, scheduler and nodes at work, for ever: whoever owns the cluster polls it.
    pub async fn run(self) {
        let mut news = self.world.lock().news();
        loop {
            news.catch_up();
            let next = {
                let mut world = self.world.lock();
                world.run_due();
                world.agenda.next()
            };
            tokio::select! {
                biased;
                () = due(next) => {}
                () = news.rung() => {}
            }
        }
    }

    /// Does what is due now, once; for whoever wants to see every step.
    pub fn step(&self) {
        self.world.lock().run_due();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the driver of the outside world, polled by its owner"
)]
async fn due(next: Option<tokio::time::Instant>) {
    match next {
        Some(next) => tokio::time::sleep_until(next).await,
        None => futures::future::pending().await,
    }
}
