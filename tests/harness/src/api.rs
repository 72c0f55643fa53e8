//! The cluster with all rights, for what tests do and look at.

use std::fmt::Debug;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{
    Client, Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::Value;

use crate::Outcome;

/// A client with all rights.
#[derive(Clone)]
pub struct Api {
    client: Client,
}

impl Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client itself.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Objects of one namespace.
    pub fn within<K>(&self, namespace: &str) -> kube::Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        kube::Api::namespaced(self.client.clone(), namespace)
    }

    /// Objects of all namespaces, or that have none.
    pub fn all<K>(&self) -> kube::Api<K>
    where
        K: Resource,
        K::DynamicType: Default,
    {
        kube::Api::all(self.client.clone())
    }

    /// Changes an object as `kubectl edit` would: a merge patch under a manager of its own.
    pub async fn edit<K>(&self, namespace: &str, name: &str, patch: Value) -> Outcome<K>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + serde::de::DeserializeOwned,
        K::DynamicType: Default,
    {
        let params = PatchParams {
            field_manager: Some("kubectl-edit".to_owned()),
            ..PatchParams::default()
        };
        Ok(self
            .within::<K>(namespace)
            .patch(name, &params, &Patch::Merge(patch))
            .await?)
    }

    /// Deletes an object in the background, as `kubectl delete` does.
    pub async fn delete<K>(&self, namespace: &str, name: &str) -> Outcome
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + serde::de::DeserializeOwned,
        K::DynamicType: Default,
    {
        self.within::<K>(namespace)
            .delete(name, &DeleteParams::background())
            .await?;
        Ok(())
    }

    /// Deletes an object without a namespace.
    pub async fn delete_global<K>(&self, object: &K) -> Outcome
    where
        K: Resource<Scope = ClusterResourceScope> + Clone + Debug + serde::de::DeserializeOwned,
        K::DynamicType: Default,
    {
        self.all::<K>()
            .delete(&object.name_any(), &DeleteParams::background())
            .await?;
        Ok(())
    }
}
