//! Somebody other than krane in the cluster in memory.

use async_trait::async_trait;
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::refusal::ApiStatus;
use krane_sim::cluster::{Admin, Patch};
use serde_json::{Value, json};

use crate::edits::{Change, EDITOR, REPLACER};
use crate::other::{Other, Refused};

/// All rights in the cluster in memory.
pub struct Somebody(pub Admin);

fn refused(status: ApiStatus) -> Refused {
    Refused {
        code: status.code,
        message: status.message,
    }
}

#[async_trait]
impl crate::Admin for Somebody {
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
        let namespace = ObjectRef::new(Resource::Namespace, "", name);
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

#[async_trait]
impl Other for Somebody {
    async fn read(&self, object: &ObjectRef) -> Option<Value> {
        self.0.get(object)
    }

    async fn post(&self, _: &ObjectRef, body: Value) -> Result<(), Refused> {
        self.0.create(body, "somebody").map(drop).map_err(refused)
    }

    async fn change(&self, object: &ObjectRef, change: Change) -> Result<(), Refused> {
        let (manager, subresource, patch) = match change {
            Change::Patch(manager, operations) => (manager, "", Patch::Json(operations)),
            Change::Merge(patch) => (EDITOR, "", Patch::Merge(patch)),
            Change::Strategic(patch) => (EDITOR, "", Patch::Strategic(patch)),
            Change::Scale(replicas) => {
                let patch = json!({"spec": {"replicas": replicas}});
                (EDITOR, "scale", Patch::Merge(patch))
            }
            Change::Put(body) => (REPLACER, "", Patch::Put(body)),
            Change::Apply(manager, body) => {
                let applied = self.0.apply(object, &body, manager, true);
                return applied.map(drop).map_err(refused);
            }
            Change::Propose(manager, body) => {
                let applied = self.0.apply(object, &body, manager, false);
                return applied.map(drop).map_err(refused);
            }
        };
        let changed = self.0.patch(object, manager, subresource, &patch);
        changed.map(drop).map_err(refused)
    }

    async fn remove(&self, object: &ObjectRef) -> Result<(), Refused> {
        self.0.delete(object, None).map_err(refused)
    }
}
