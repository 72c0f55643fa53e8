//! The contract that the real API server is held to as well.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::object::ObjectRef;
use krane_sim::cluster::{Admin, Options, Patch, SimCluster};
use krane_testcontract::{World, cluster_contract};
use serde_json::{Value, json};
use tokio::task::JoinSet;

struct Somebody(Admin);

#[async_trait]
impl krane_testcontract::Admin for Somebody {
    async fn create_namespace(&self, name: &str) {
        self.0.create_namespace(name).unwrap();
    }

    async fn terminate_namespace(&self, name: &str) {
        let anchor = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "anchor", "namespace": name, "finalizers": ["example.com/never"],
            },
        });
        self.0.create(anchor, "somebody").unwrap();
        let namespace = ObjectRef::new(krane_domain::object::Resource::Namespace, "", name);
        self.0.delete(&namespace, None).unwrap();
    }

    async fn create(&self, _: &ObjectRef, body: Value) {
        self.0.create(body, "somebody").unwrap();
    }

    async fn merge(&self, object: &ObjectRef, patch: Value) {
        let patch = Patch::Merge(patch);
        self.0.patch(object, "somebody", "", &patch).unwrap();
    }

    async fn delete(&self, object: &ObjectRef) {
        self.0.delete(object, None).unwrap();
    }

    async fn expired_version(&self) -> String {
        self.0.compact();
        "1".to_owned()
    }
}

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
