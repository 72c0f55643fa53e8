//! What a person with `edit` in some namespace can do to open the key ring of another one (X4).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_testharness::{Agent, Outcome, World, eventually, limits};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

const DEPLOYMENT_ID: &str = "unkey.com/deployment.id";
const ENVIRONMENT_ID: &str = "unkey.com/environment.id";
const HOLD: &str = "krane.unkey.com/hold";

/// A ReplicaSet of one's own.
pub(super) struct Forgery<'a> {
    /// What it copies: labels, template, blob.
    pub(super) of: &'a ApplyDeployment,
    /// Where it is.
    pub(super) namespace: &'a str,
    /// The deployment id that it has.
    pub(super) deployment_id: &'a str,
    /// Whether it says that the Scheduler API wants it.
    pub(super) is_marked: bool,
}

/// Waits until krane compares pods with the desired states.
pub(super) async fn stream_is_read(agent: &Agent) -> Outcome {
    eventually("the stream is read whole", limits::LONG, async || {
        let (_, body) = agent
            .admin("/api/v1/health")
            .await
            .map_err(|failure| failure.to_string())?;
        let health: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
        let secrets = &health["secrets"];
        if secrets.is_object() && secrets["unproved_because"].is_null() {
            Ok(())
        } else {
            Err(secrets.to_string())
        }
    })
    .await
}

/// Makes it, and waits for its pod.
pub(super) async fn forge(world: &World, forgery: &Forgery<'_>) -> Outcome<String> {
    let of = forgery.of;
    let sets: Api<ReplicaSet> = world.api.within(&of.k8s_namespace);
    let mut set = serde_json::to_value(sets.get(&of.k8s_name).await?)?;
    let mut labels = set["metadata"]["labels"].clone();
    let id = json!(forgery.deployment_id);
    labels[DEPLOYMENT_ID] = id.clone();
    if forgery.is_marked {
        labels["krane.unkey.com/desired-by"] = json!("scheduler");
    }
    set["metadata"] = json!({
        "name": format!("forged-{}", of.k8s_name),
        "labels": labels,
        "annotations": {HOLD: in_an_hour()},
    });
    set["status"].take();
    set["spec"]["replicas"] = json!(1);
    set["spec"]["selector"]["matchLabels"][DEPLOYMENT_ID] = id.clone();
    let template = &mut set["spec"]["template"]["metadata"];
    template["labels"][DEPLOYMENT_ID] = id.clone();
    template["annotations"][DEPLOYMENT_ID] = id;
    let set: ReplicaSet = serde_json::from_value(set)?;
    let elsewhere: Api<ReplicaSet> = world.api.within(forgery.namespace);
    elsewhere.create(&PostParams::default(), &set).await?;
    let selector = format!("{DEPLOYMENT_ID}={}", forgery.deployment_id);
    running(world, forgery.namespace, &selector).await
}

/// Changes environment id and blob in the template of a deployment's own ReplicaSet, and its labels
/// where `relabels` is set; returns a new pod of it.
pub(super) async fn change_template(
    world: &World,
    of: &ApplyDeployment,
    environment_id: &str,
    blob: &[u8],
    relabels: bool,
) -> Outcome<String> {
    let sets: Api<ReplicaSet> = world.api.within(&of.k8s_namespace);
    let set = serde_json::to_value(sets.get(&of.k8s_name).await?)?;
    let mut template = set["spec"]["template"].clone();
    let id = json!(environment_id);
    template["metadata"]["labels"][ENVIRONMENT_ID] = id.clone();
    template["metadata"]["annotations"][ENVIRONMENT_ID] = id.clone();
    let variables = template["spec"]["containers"][0]["env"].as_array_mut();
    for variable in variables.into_iter().flatten() {
        if variable["name"] == "UNKEY_ENCRYPTED_ENV" {
            variable["value"] = json!(STANDARD.encode(blob));
        }
    }
    let mut patch = json!({
        "metadata": {"annotations": {HOLD: in_an_hour()}},
        "spec": {"template": template},
    });
    if relabels {
        patch["metadata"]["labels"] = json!({ENVIRONMENT_ID: id});
    }
    sets.patch(&of.k8s_name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    let pods: Api<Pod> = world.api.within(&of.k8s_namespace);
    let selector = format!("{DEPLOYMENT_ID}={}", of.deployment_id);
    let now = DeleteParams::default().grace_period(0);
    for pod in pods.list(&ListParams::default().labels(&selector)).await? {
        pods.delete(&pod.name_any(), &now).await?;
    }
    let selector = format!("{selector},{ENVIRONMENT_ID}={environment_id}");
    running(world, &of.k8s_namespace, &selector).await
}

/// Waits until the ReplicaSet makes its pods with this blob.
pub(super) async fn template_has(world: &World, of: &ApplyDeployment, blob: &[u8]) -> Outcome {
    let sets: Api<ReplicaSet> = world.api.within(&of.k8s_namespace);
    let encoded = STANDARD.encode(blob);
    eventually("the template has the blob", limits::LONG, async || {
        let set = sets.get(&of.k8s_name).await;
        let set = set.map_err(|error| error.to_string())?;
        let set = serde_json::to_string(&set).map_err(|error| error.to_string())?;
        set.contains(&encoded)
            .then_some(())
            .ok_or_else(|| "not yet".to_owned())
    })
    .await
}

/// The only running pod that is selected.
pub(super) async fn running(world: &World, namespace: &str, selector: &str) -> Outcome<String> {
    let pods: Api<Pod> = world.api.within(namespace);
    let params = ListParams::default().labels(selector);
    eventually("its pod runs", limits::LONG, async || {
        let found = pods
            .list(&params)
            .await
            .map_err(|error| error.to_string())?;
        let mut running = found.items.iter().filter(|pod| {
            let status = pod.status.as_ref();
            let phase = status.and_then(|status| status.phase.as_deref());
            pod.metadata.deletion_timestamp.is_none() && phase == Some("Running")
        });
        let pod = running.next().ok_or("none runs")?;
        Ok(pod.name_any())
    })
    .await
}

fn in_an_hour() -> String {
    let later = jiff::Timestamp::now() + Duration::from_secs(3_600);
    later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
