//! The contract that the real API server is held to as well.

use std::sync::Arc;
use std::time::Duration;

use krane_sim::cluster::{Options, SimCluster};
use krane_testcontract::memory::Somebody;
use krane_testcontract::{World, cluster_contract};
use tokio::task::JoinSet;

async fn world(check: &str) -> World {
    let cluster = SimCluster::new(Options::default());
    let namespace = check.replace('_', "-");
    let namespace = namespace[..namespace.len().min(50)].trim_end_matches('-');
    let admin = cluster.admin();
    admin.create_namespace(namespace).unwrap();
    let mut drivers = JoinSet::new();
    drivers.spawn(cluster.clone().run());
    let hasty = cluster.client().with_watch_limit(Duration::from_secs(5));
    World {
        cluster: Arc::new(cluster.client()),
        hasty: Arc::new(hasty),
        admin: Arc::new(Somebody(admin)),
        namespace: namespace.to_owned(),
        keeper: Box::new(drivers),
    }
}

cluster_contract! { #[tokio::test(start_paused = true)] world }
