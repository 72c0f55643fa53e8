//! What every [`Cluster`] does, whoever plays it. Runs against the real API server here; an
//! in-memory cluster runs the same file, which is what keeps it honest.
//!
//! [`cluster_contract!`] makes one test of each check.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "any other event fails the check"
)]

// By path, so that they are found from wherever this file is included by path.
#[path = "suite/applies.rs"]
pub(crate) mod applies;
#[path = "suite/reads.rs"]
pub(crate) mod reads;
#[path = "suite/watches.rs"]
pub(crate) mod watches;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use krane_actors::ports::{Cluster, Item, Listed, WatchEvent};
use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, ObjectRef, Rendered, Resource};
use krane_domain::refusal::Refusal;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Only a broken cluster takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What somebody other than krane does in the cluster.
#[async_trait]
pub(crate) trait Admin: Send + Sync {
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
pub(crate) struct World {
    pub(crate) cluster: Arc<dyn Cluster>,
    /// The same cluster; its watches are closed by the server after five seconds.
    pub(crate) hasty: Arc<dyn Cluster>,
    pub(crate) admin: Arc<dyn Admin>,
    pub(crate) namespace: String,
}

/// One test of each check; `$world` makes a [`World`] out of the check's name.
macro_rules! cluster_contract {
    ($world:path: $module:ident: $($check:ident)*) => {
        $(
            #[tokio::test]
            async fn $check() {
                suite::$module::$check($world(stringify!($check)).await).await;
            }
        )*
    };
    ($world:path) => {
        cluster_contract! { $world: applies:
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
        cluster_contract! { $world: reads:
            a_delete_hits_only_the_object_of_its_uid
            metadata_shows_whose_an_object_is
            a_list_holds_everything_it_selects_however_many_pages_it_takes
            the_pull_secret_is_found_by_its_name_in_every_namespace
        }
        cluster_contract! { $world: watches:
            a_watch_goes_on_where_the_list_ended
            an_object_that_loses_the_label_leaves_the_watch_as_if_deleted
            a_watch_gets_bookmarks_and_is_closed_in_time
            a_version_that_is_too_old_asks_for_a_new_list
            pods_are_told_as_digests
        }
    };
}
pub(crate) use cluster_contract;

impl World {
    pub(crate) fn reference(&self, resource: Resource, name: &str) -> ObjectRef {
        ObjectRef::new(resource, self.namespace.as_str(), name)
    }

    /// Selects what [`rendered`](Self::rendered) makes in this namespace.
    pub(crate) fn spec(&self, resource: Resource) -> WatchSpec {
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
    pub(crate) fn rendered(&self, name: &str) -> Rendered {
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
        Rendered {
            reference: self.reference(Resource::ReplicaSet, name),
            body,
        }
    }

    /// A Cilium policy that lets `port` in.
    pub(crate) fn policy(&self, name: &str, port: &Value) -> Rendered {
        let body = json!({
            "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
            "metadata": self.metadata(name),
            "spec": {
                "endpointSelector": {"matchLabels": {"app": name}},
                "ingress": [{"toPorts": [{"ports": [{"port": port, "protocol": "TCP"}]}]}],
            },
        });
        Rendered {
            reference: self.reference(Resource::CiliumNetworkPolicy, name),
            body,
        }
    }

    pub(crate) async fn apply(&self, object: &Rendered) -> LiveObject {
        self.cluster.apply(object, None).await.unwrap()
    }

    pub(crate) async fn refused(&self, object: &Rendered, uid: Option<&str>) -> Refusal {
        self.cluster.apply(object, uid).await.unwrap_err()
    }

    async fn live(&self, object: &ObjectRef) -> LiveObject {
        self.cluster.get(object).await.unwrap().unwrap()
    }

    pub(crate) async fn watch(&self, resource: Resource, version: &str) -> Events {
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
pub(crate) struct Events(pub(crate) BoxStream<'static, WatchEvent>);

impl Events {
    pub(crate) async fn next(&mut self) -> WatchEvent {
        timeout(PATIENCE, self.0.next()).await.unwrap().unwrap()
    }

    /// The next event that is no bookmark.
    pub(crate) async fn news(&mut self) -> WatchEvent {
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

    pub(crate) async fn applied(&mut self) -> LiveObject {
        match self.news().await {
            WatchEvent::Applied(Item::Object(object)) => object,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn deleted(&mut self) -> LiveObject {
        match self.news().await {
            WatchEvent::Deleted(Item::Object(object)) => object,
            other => panic!("{other:?}"),
        }
    }
}

/// Asks again until the answer fits.
pub(crate) async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
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

pub(crate) fn merge(target: &mut Value, pointer: &str, value: Value) {
    *target.pointer_mut(pointer).unwrap() = value;
}

const ENV: &str = "/spec/template/spec/containers/0/env";
