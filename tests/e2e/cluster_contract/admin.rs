//! Somebody else in a real cluster.

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use krane_domain::object::{ObjectRef, Resource};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use krane_testcontract::Admin;

pub(super) struct KubeAdmin(pub(super) Client);

impl KubeAdmin {
    pub(super) fn api(&self, object: &ObjectRef) -> Api<DynamicObject> {
        let resource = object.resource;
        let kind = GroupVersionKind::gvk(resource.group(), resource.version(), resource.kind());
        let kind = ApiResource::from_gvk_with_plural(&kind, resource.plural());
        if resource == Resource::Namespace {
            Api::all_with(self.0.clone(), &kind)
        } else {
            Api::namespaced_with(self.0.clone(), &object.namespace, &kind)
        }
    }
}

fn parse<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[async_trait]
impl Admin for KubeAdmin {
    async fn create_namespace(&self, name: &str) {
        let namespace: Namespace = parse(json!({"metadata": {"name": name}}));
        let api = Api::all(self.0.clone());
        api.create(&PostParams::default(), &namespace)
            .await
            .unwrap();
    }

    async fn terminate_namespace(&self, name: &str) {
        let anchor: ConfigMap = parse(json!({
            "metadata": {"name": "anchor", "finalizers": ["example.com/never"]},
        }));
        let api = Api::namespaced(self.0.clone(), name);
        api.create(&PostParams::default(), &anchor).await.unwrap();
        let api: Api<Namespace> = Api::all(self.0.clone());
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn create(&self, object: &ObjectRef, body: Value) {
        let created = self
            .api(object)
            .create(&PostParams::default(), &parse(body))
            .await;
        created.unwrap();
    }

    async fn merge(&self, object: &ObjectRef, patch: Value) {
        let params = PatchParams {
            field_manager: Some("somebody".to_owned()),
            ..PatchParams::default()
        };
        self.api(object)
            .patch(&object.name, &params, &Patch::Merge(patch))
            .await
            .unwrap();
    }

    async fn delete(&self, object: &ObjectRef) {
        self.api(object)
            .delete(&object.name, &DeleteParams::background())
            .await
            .unwrap();
    }

    /// The API server's cache of a kind begins with its definition, long after this one.
    async fn expired_version(&self) -> String {
        "1".to_owned()
    }
}
