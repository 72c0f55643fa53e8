//! What tests do to pods in place of their kubelets.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{BEHAVIOUR_ANNOTATION, Behaviour, Cluster, Error};

impl Cluster {
    /// Makes a running pod Ready or not, as its readiness probe would.
    pub async fn set_pod_ready(
        &self,
        namespace: &str,
        pod: &str,
        ready: bool,
    ) -> Result<(), Error> {
        let containers = self
            .containers(namespace, pod, &|name, image| {
                json!({"name": name, "image": image, "imageID": "", "restartCount": 0, "ready": ready, "started": true})
            })
            .await?;
        let status = json!({"conditions": conditions(ready), "containerStatuses": containers});
        self.patch_pod_status(namespace, pod, &status).await
    }

    /// All containers of a pod are in `CrashLoopBackOff`.
    pub async fn crash_pod(&self, namespace: &str, pod: &str) -> Result<(), Error> {
        let containers = self
            .containers(namespace, pod, &|name, image| {
                json!({
                    "name": name, "image": image, "imageID": "", "restartCount": 3, "ready": false, "started": false,
                    "state": {"running": null, "waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}},
                })
            })
            .await?;
        let status = json!({"conditions": conditions(false), "containerStatuses": containers});
        self.patch_pod_status(namespace, pod, &status).await
    }

    /// The pod has failed for good, as an evicted one has.
    pub async fn fail_pod(&self, namespace: &str, pod: &str) -> Result<(), Error> {
        let status = json!({
            "phase": "Failed", "reason": "Evicted", "message": "the node was low on resource memory",
            "conditions": conditions(false),
        });
        self.patch_pod_status(namespace, pod, &status).await
    }

    /// Patches any part of a pod's status (strategic merge, so conditions and containers merge by type and name).
    pub async fn patch_pod_status(
        &self,
        namespace: &str,
        pod: &str,
        status: &Value,
    ) -> Result<(), Error> {
        let patch = Patch::Strategic(json!({"status": status}));
        self.pods(namespace)
            .await?
            .patch_status(pod, &PatchParams::default(), &patch)
            .await
            .map(drop)
            .map_err(|source| failed("patch the status of", namespace, pod, source))
    }

    /// Changes how a pod behaves from now on; what already happened to it stays.
    pub async fn set_pod_behaviour(
        &self,
        namespace: &str,
        pod: &str,
        behaviour: Behaviour,
    ) -> Result<(), Error> {
        let annotations = json!({BEHAVIOUR_ANNOTATION: behaviour.as_str()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        self.pods(namespace)
            .await?
            .patch(pod, &PatchParams::default(), &patch)
            .await
            .map(drop)
            .map_err(|source| failed("annotate", namespace, pod, source))
    }

    /// Removes a pod at once, without its kubelet's consent.
    pub async fn delete_pod_now(&self, namespace: &str, pod: &str) -> Result<(), Error> {
        self.pods(namespace)
            .await?
            .delete(pod, &DeleteParams::default().grace_period(0))
            .await
            .map(drop)
            .map_err(|source| failed("delete", namespace, pod, source))
    }

    async fn pods(&self, namespace: &str) -> Result<Api<Pod>, Error> {
        Ok(Api::namespaced(self.admin_client().await?, namespace))
    }

    async fn containers(
        &self,
        namespace: &str,
        pod: &str,
        status: &dyn Fn(&str, Option<&str>) -> Value,
    ) -> Result<Vec<Value>, Error> {
        let found = self
            .pods(namespace)
            .await?
            .get(pod)
            .await
            .map_err(|source| failed("get", namespace, pod, source))?;
        let containers = found.spec.map(|spec| spec.containers).unwrap_or_default();
        Ok(containers
            .iter()
            .map(|container| status(&container.name, container.image.as_deref()))
            .collect())
    }
}

fn conditions(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    let now = jiff::Timestamp::now()
        .round(jiff::Unit::Second)
        .unwrap_or_default();
    json!([
        {"type": "ContainersReady", "status": status, "lastTransitionTime": now},
        {"type": "Ready", "status": status, "lastTransitionTime": now},
    ])
}

fn failed(verb: &str, namespace: &str, pod: &str, source: kube::Error) -> Error {
    Error::Request {
        what: format!("{verb} pod {namespace}/{pod}"),
        source,
    }
}
