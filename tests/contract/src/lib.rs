//! What every [`Cluster`] does, whoever plays it. Runs against a real API server and against the
//! cluster in memory, which is what keeps that one honest.
//!
//! [`cluster_contract!`] makes one test of each check.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "names say what is proved, and a check fails where it meets the unexpected"
)]

pub mod applies;
pub mod edits;
pub mod leases;
pub mod memory;
pub mod other;
pub mod reads;
pub mod sequences;
pub mod tokens;
pub mod twins;
pub mod vaults;
pub mod watches;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_domain::refusal::Refusal;
use krane_ports::{Cluster, Item, Listed, WatchEvent};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Only a broken cluster takes so long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What somebody other than krane does in the cluster.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Makes a namespace, without krane's label.
    async fn create_namespace(&self, name: &str);
    /// Begins to delete a namespace that then stays Terminating.
    async fn terminate_namespace(&self, name: &str);
    /// Creates an object.
    async fn create(&self, object: &ObjectRef, body: Value);
    /// Changes an object by a merge patch.
    async fn merge(&self, object: &ObjectRef, patch: Value);
    /// Deletes an object.
    async fn delete(&self, object: &ObjectRef);
    /// A resource version from which no watch of policies can start any more.
    async fn expired_version(&self) -> String;
}

/// A cluster, seen as krane and as somebody else, with a namespace of the check's own.
pub struct World {
    pub cluster: Arc<dyn Cluster>,
    /// The same cluster; its watches are closed by the server after five seconds.
    pub hasty: Arc<dyn Cluster>,
    pub admin: Arc<dyn Admin>,
    pub namespace: String,
    /// Whatever has to live as long as the cluster.
    pub keeper: Box<dyn Any + Send + Sync>,
}

/// One test of each check; `$world` makes a [`World`] out of the check's name.
#[macro_export]
macro_rules! cluster_contract {
    (#[$test:meta] $world:path: $module:ident: $($check:ident)*) => {
        $(
            #[$test]
            async fn $check() {
                $crate::$module::$check($world(stringify!($check)).await).await;
            }
        )*
    };
    (#[$test:meta] $world:path) => {
        $crate::cluster_contract! { #[$test] $world: applies:
            an_apply_creates_and_the_same_again_changes_nothing
            an_apply_removes_what_is_no_longer_rendered_and_keeps_what_others_added
            an_apply_takes_a_field_back_from_another_manager
            an_apply_meant_for_an_object_that_is_gone_creates_nothing
            an_apply_meant_for_another_object_of_the_name_changes_nothing
            an_apply_without_its_namespace_says_so
            a_terminating_namespace_takes_no_new_object
            a_selector_cannot_change
            what_does_not_fit_the_schema_is_permanent
        }
        $crate::cluster_contract! { #[$test] $world: reads:
            a_delete_hits_only_the_object_of_its_uid what_a_finalizer_holds_is_on_its_way_out_and_not_gone
            metadata_shows_whose_an_object_is
            a_list_holds_everything_it_selects_however_many_pages_it_takes
            a_list_over_a_new_connection_holds_the_same
            the_pull_secret_is_found_by_its_name_in_every_namespace
        }
        $crate::cluster_contract! { #[$test] $world: watches:
            a_watch_goes_on_where_the_list_ended
            an_object_that_loses_the_label_leaves_the_watch_as_if_deleted
            a_watch_gets_bookmarks_and_is_closed_in_time
            a_version_that_is_too_old_asks_for_a_new_list
            a_watch_from_a_version_to_come_tells_only_what_comes_after_it
            pods_are_told_as_digests
        }
    };
}

impl World {
    pub fn reference(&self, resource: Resource, name: &str) -> ObjectRef {
        ObjectRef::new(resource, self.namespace.as_str(), name)
    }

    /// Selects what [`rendered`](Self::rendered) makes in this namespace.
    pub fn spec(&self, resource: Resource) -> WatchSpec {
        let namespace = &self.namespace;
        WatchSpec {
            resource,
            namespace: None,
            label_selector: format!("app.kubernetes.io/managed-by=krane,check={namespace}"),
            field_selector: String::new(),
        }
    }

    fn metadata(&self, name: &str) -> Value {
        let namespace = &self.namespace;
        json!({
            "namespace": namespace, "name": name,
            "labels": {"app.kubernetes.io/managed-by": "krane", "check": namespace},
        })
    }

    /// A ReplicaSet without pods.
    pub fn rendered(&self, name: &str) -> Rendered {
        let container = json!({
            "name": "app", "image": "registry.example/app:1",
            "env": [{"name": "FIRST", "value": "1"}, {"name": "SECOND", "value": "2"}],
            "resources": {"limits": {"cpu": "250m", "memory": "256Mi"}},
        });
        let body = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": self.metadata(name),
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}}, "spec": {"containers": [container]},
                },
            },
        });
        Rendered::new(self.reference(Resource::ReplicaSet, name), body)
    }

    /// A Cilium policy that lets `port` in.
    pub fn policy(&self, name: &str, port: &Value) -> Rendered {
        let body = json!({
            "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
            "metadata": self.metadata(name),
            "spec": {
                "endpointSelector": {"matchLabels": {"app": name}},
                "ingress": [{"toPorts": [{"ports": [{"port": port, "protocol": "TCP"}]}]}],
            },
        });
        Rendered::new(self.reference(Resource::CiliumNetworkPolicy, name), body)
    }

    pub async fn apply(&self, object: &Rendered) -> LiveObject {
        self.cluster.apply(object, None).await.unwrap()
    }

    pub async fn refused(&self, object: &Rendered, uid: Option<&str>) -> Refusal {
        self.cluster.apply(object, uid).await.unwrap_err()
    }

    async fn live(&self, object: &ObjectRef) -> LiveObject {
        self.cluster.get(object).await.unwrap().unwrap()
    }

    pub async fn watch(&self, resource: Resource, version: &str) -> Events {
        Events(
            self.cluster
                .watch(&self.spec(resource), version)
                .await
                .unwrap(),
        )
    }

    async fn list(&self, resource: Resource) -> Listed {
        let listed = self.cluster.list(&self.spec(resource)).await.unwrap();
        assert!(listed.undecodable.is_empty(), "{:?}", listed.undecodable);
        listed
    }
}

/// A watch whose silence fails the check.
pub struct Events(pub BoxStream<'static, WatchEvent>);

impl Events {
    pub async fn next(&mut self) -> WatchEvent {
        timeout(PATIENCE, self.0.next()).await.unwrap().unwrap()
    }

    /// The next event that is no bookmark.
    pub async fn news(&mut self) -> WatchEvent {
        loop {
            match self.next().await {
                WatchEvent::Bookmark(_) => {}
                event @ (WatchEvent::Applied(_)
                | WatchEvent::Deleted(_)
                | WatchEvent::Undecodable(_)
                | WatchEvent::Ended(_)) => return event,
            }
        }
    }

    /// The next event about one object; those about others are passed over.
    async fn of(&mut self, uid: &str) -> WatchEvent {
        loop {
            match self.news().await {
                WatchEvent::Applied(item) if *object(&item).uid != *uid => {}
                event => return event,
            }
        }
    }

    pub async fn applied(&mut self) -> LiveObject {
        match self.news().await {
            WatchEvent::Applied(Item::Object(object)) => object,
            other => panic!("{other:?}"),
        }
    }

    pub async fn deleted(&mut self) -> LiveObject {
        match self.news().await {
            WatchEvent::Deleted(Item::Object(object)) => object,
            other => panic!("{other:?}"),
        }
    }
}

/// Asks again until the answer fits.
pub async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    let asking = async {
        loop {
            pace.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    };
    timeout(PATIENCE, asking).await.unwrap()
}

fn object(item: &Item) -> &LiveObject {
    match item {
        Item::Object(object) => object,
        Item::Pod(pod) => panic!("{pod:?}"),
    }
}

pub fn merge(target: &mut Value, pointer: &str, value: Value) {
    *target.pointer_mut(pointer).unwrap() = value;
}

const ENV: &str = "/spec/template/spec/containers/0/env";
