//! What is in the cluster, by the label that krane puts on its objects.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{ResourceExt as _, api::ListParams};

use crate::{Api, Outcome};

/// Selects what krane manages.
pub(crate) const MANAGED: &str = "app.kubernetes.io/managed-by=krane";

/// The `ReplicaSets` of krane and their pods.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// By namespace and name.
    pub replica_sets: BTreeMap<(String, String), ReplicaSet>,
    /// By the uid of their `ReplicaSet`; those on their way out are left out.
    pub pods: BTreeMap<String, Vec<Pod>>,
}

impl Live {
    pub(crate) async fn read(api: &Api) -> Outcome<Self> {
        // Those of sentinels belong to Deployments.
        let workloads = format!("{MANAGED},app.kubernetes.io/component=deployment");
        let managed = ListParams::default().labels(&workloads);
        let mut live = Self::default();
        for set in api.all::<ReplicaSet>().list(&managed).await? {
            live.replica_sets
                .insert((set.namespace().unwrap_or_default(), set.name_any()), set);
        }
        for pod in api.all::<Pod>().list(&managed).await? {
            let owner = pod
                .owner_references()
                .iter()
                .find(|owner| owner.controller == Some(true));
            let Some(owner) = owner.map(|owner| owner.uid.clone()) else {
                continue;
            };
            if pod.metadata.deletion_timestamp.is_none() {
                live.pods.entry(owner).or_default().push(pod);
            }
        }
        Ok(live)
    }

    /// The pods of a `ReplicaSet`.
    pub fn pods_of(&self, set: &ReplicaSet) -> &[Pod] {
        set.metadata
            .uid
            .as_ref()
            .and_then(|uid| self.pods.get(uid))
            .map_or(&[], Vec::as_slice)
    }
}

/// The address the control plane must be told, once the pod has an IP (D25).
pub fn address_of(pod: &Pod, port: i32) -> Option<String> {
    let ip = pod
        .status
        .as_ref()?
        .pod_ip
        .as_deref()?
        .replace(['.', ':'], "-");
    Some(format!(
        "{ip}.{}.pod.cluster.local:{port}",
        pod.namespace()?
    ))
}
