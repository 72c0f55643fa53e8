//! A shared cluster is handed on without what krane made in it.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{Namespace, Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Resource, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams},
    core::GroupVersionKind,
};

use crate::{Api, Failure, Outcome, eventually, limits, live::MANAGED};

const IN_FLIGHT: usize = 16;

/// Deletes everything with krane's label, and waits until workloads and pods are gone.
pub(crate) async fn sweep(api: &Api) -> Outcome {
    delete_all(api.all::<Deployment>(), api).await?;
    delete_all(api.all::<Service>(), api).await?;
    delete_all(api.all::<PodDisruptionBudget>(), api).await?;
    delete_all(api.all::<ReplicaSet>(), api).await?;
    delete_all(api.all::<HorizontalPodAutoscaler>(), api).await?;
    let policies = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "cilium.io",
        "v2",
        "CiliumNetworkPolicy",
    ));
    let policies = kube::Api::<DynamicObject>::all_with(api.client(), &policies);
    let deletes = policies.list(&ListParams::default().labels(MANAGED)).await;
    for policy in deletes.into_iter().flatten() {
        let gvk = GroupVersionKind::gvk("cilium.io", "v2", "CiliumNetworkPolicy");
        let resource = ApiResource::from_gvk(&gvk);
        let namespace = policy.namespace().unwrap_or_default();
        let within =
            kube::Api::<DynamicObject>::namespaced_with(api.client(), &namespace, &resource);
        ignore_absent(
            within
                .delete(&policy.name_any(), &DeleteParams::default())
                .await,
        )?;
    }
    // Nobody waits for namespaces: their names are never used again.
    for namespace in api
        .all::<Namespace>()
        .list(&ListParams::default().labels(MANAGED))
        .await?
    {
        if namespace.metadata.deletion_timestamp.is_none() {
            let (all, name) = (api.all::<Namespace>(), namespace.name_any());
            ignore_absent(all.delete(&name, &DeleteParams::default()).await)?;
        }
    }
    eventually("pods of earlier tests are gone", limits::LONG, async || {
        let managed = ListParams::default().labels(MANAGED);
        let pods = api
            .all::<Pod>()
            .list(&managed)
            .await
            .map_err(|error| error.to_string())?;
        // Some are made to stay; their test is over.
        for pod in pods
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_some())
        {
            let within = api.within::<Pod>(&pod.namespace().unwrap_or_default());
            let _ = within
                .delete(&pod.name_any(), &DeleteParams::default().grace_period(0))
                .await;
        }
        match pods.items.len() {
            0 => Ok(()),
            count => Err(format!("{count} are left")),
        }
    })
    .await
}

/// For those who use their names again, or count what the cluster does.
pub(crate) async fn namespaces_are_gone(api: &Api) -> Outcome {
    eventually("namespaces are gone", limits::VERY_LONG, async || {
        let managed = ListParams::default().labels(MANAGED);
        let left = api.all::<Namespace>().list(&managed).await;
        match left.map_err(|error| error.to_string())?.items.len() {
            0 => Ok(()),
            count => Err(format!("{count} are left")),
        }
    })
    .await
}

async fn delete_all<K>(all: kube::Api<K>, api: &Api) -> Outcome
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    let found = all.list(&ListParams::default().labels(MANAGED)).await?;
    stream::iter(found)
        .map(|object| async move {
            let within = api.within::<K>(&object.namespace().unwrap_or_default());
            let deleted = within
                .delete(&object.name_any(), &DeleteParams::background())
                .await;
            ignore_absent(deleted)
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await
}

fn ignore_absent<T>(result: Result<T, kube::Error>) -> Result<(), Failure> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
