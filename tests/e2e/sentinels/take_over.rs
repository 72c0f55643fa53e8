//! Sentinels that another agent left behind.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use krane_proto::ctrl::v1::Health;
use krane_sim::control_plane::{PLATFORM, REGION, samples};
use krane_testharness::{Outcome, eventually, limits};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{NAMESPACE, all_five, has, is_told, policies, sentinel};
use crate::world;

/// The original's Deployment of April: fewer labels on the pods, both probe paths split.
fn deployment(name: &str, id: &str, environment: &str, workspace: &str) -> Value {
    let region = (PLATFORM, REGION);
    let config = include_str!("../../../domain/src/kinds/sentinel/tests/config.toml")
        .replace("\"sen_1\"", &format!("\"{id}\""))
        .replace("\"ws_1\"", &format!("\"{workspace}\""))
        .replace("\"env_1\"", &format!("\"{environment}\""))
        .replace("\"aws\"", &format!("\"{}\"", region.0))
        .replace("\"us-east-1\"", &format!("\"{}\"", region.1));
    let probe = |path: &str, delay: u32, period: u32, timeout: u32, failures: u32| {
        json!({
            "httpGet": { "path": format!("/_unkey/internal/health/{path}"), "port": 8040 },
            "initialDelaySeconds": delay, "periodSeconds": period, "timeoutSeconds": timeout,
            "failureThreshold": failures,
        })
    };
    let secret = |name: &str| json!({ "secretRef": { "name": name, "optional": true } });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": {
            "unkey.com/workspace.id": workspace, "unkey.com/project.id": format!("proj_{name}"),
            "unkey.com/app.id": "", "unkey.com/environment.id": environment,
            "unkey.com/sentinel.id": id, "app.kubernetes.io/managed-by": "krane",
            "app.kubernetes.io/component": "sentinel",
        } },
        "spec": {
            "replicas": 1,
            "progressDeadlineSeconds": 300,
            "selector": { "matchLabels": { "unkey.com/sentinel.id": id } },
            "strategy": { "type": "RollingUpdate",
                "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } },
            "template": {
                "metadata": {
                    "annotations": { "reloader.stakater.com/auto": "true" },
                    "labels": {
                        "unkey.com/workspace.id": workspace,
                        "unkey.com/environment.id": environment,
                        "unkey.com/sentinel.id": id,
                        "app.kubernetes.io/component": "sentinel",
                    },
                },
                "spec": {
                    "restartPolicy": "Always",
                    "tolerations": [{ "key": "node-class", "operator": "Equal",
                        "value": "sentinel", "effect": "NoSchedule" }],
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": { "matchLabels": { "unkey.com/sentinel.id": id } },
                    }],
                    "containers": [{
                        "name": "sentinel",
                        "image": samples::sentinel(name).image,
                        "imagePullPolicy": "IfNotPresent",
                        "args": ["run", "sentinel"],
                        "envFrom": [{ "secretRef": { "name": "database" } },
                            secret("otel"), secret("redis"), secret("pprof")],
                        "env": [{ "name": "UNKEY_CONFIG_DATA", "value": config }],
                        "ports": [
                            { "containerPort": 8040, "name": "sentinel", "protocol": "TCP" },
                            { "containerPort": 7946, "name": "gossip-lan", "protocol": "TCP" },
                            { "containerPort": 7946, "name": "gossip-lan-udp", "protocol": "UDP" },
                            { "containerPort": 9090, "name": "metrics", "protocol": "TCP" },
                        ],
                        "livenessProbe": probe("live", 10, 10, 5, 3),
                        "readinessProbe": probe("ready", 5, 5, 3, 2),
                        "resources": {
                            "requests": { "cpu": "125m", "memory": "256Mi" },
                            "limits": { "cpu": "250m", "memory": "256Mi" },
                        },
                    }],
                },
            },
        },
    })
}

/// D15, D16: what the original agent left is taken over as it runs. Nothing is deleted, no pod
/// restarts, and objects that it did not label become ours.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_original_agent_left_is_taken_over_without_a_restart() -> Outcome {
    let world = world().await?;
    let front = sentinel(&world, "front", "prod");
    let (name, id) = (&front.k8s_name, &front.sentinel_id);
    let original = PatchParams {
        field_manager: Some("krane".to_owned()),
        ..PatchParams::default()
    };
    let left = deployment(name, id, &front.environment_id, &front.workspace_id);
    let deployments = world.api.within::<Deployment>(NAMESPACE);
    deployments
        .patch(name, &original, &Patch::Apply(&left))
        .await?;
    let gossip = format!("{name}-gossip-lan");
    let ids = json!({
        "unkey.com/environment.id": front.environment_id, "unkey.com/sentinel.id": id,
        "app.kubernetes.io/component": "gossip-lan",
    });
    let members = json!({ "unkey.com/environment.id": front.environment_id,
        "app.kubernetes.io/component": "sentinel" });
    let port = |name: &str, protocol: &str| json!({ "name": name, "port": 7946, "targetPort": 7946, "protocol": protocol });
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": gossip, "namespace": NAMESPACE, "labels": ids },
        "spec": { "type": "ClusterIP", "clusterIP": "None", "selector": members,
            "ports": [port("gossip-lan", "TCP"), port("gossip-lan-udp", "UDP")] },
    });
    let services = world.api.within::<Service>(NAMESPACE);
    let service = services
        .patch(&gossip, &original, &Patch::Apply(&service))
        .await?;
    let policy = json!({
        "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
        "metadata": { "name": gossip, "namespace": NAMESPACE, "labels": ids },
        "spec": { "endpointSelector": { "matchLabels": members }, "ingress": [] },
    });
    let policy = policies(&world, NAMESPACE)
        .patch(&gossip, &original, &Patch::Apply(&policy))
        .await?;
    // A foreign Service under the name of another sentinel's stays whose it is.
    let other = sentinel(&world, "other", "prod");
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": other.k8s_name, "namespace": NAMESPACE },
        "spec": { "ports": [{ "port": 1, "protocol": "TCP" }] },
    });
    let helm = PatchParams {
        field_manager: Some("helm".to_owned()),
        ..PatchParams::default()
    };
    services
        .patch(&other.k8s_name, &helm, &Patch::Apply(&foreign))
        .await?;
    let pods_before = eventually("its pod runs", limits::LONG, async || {
        let pods = pods(&world, id)
            .await
            .map_err(|failure| failure.to_string())?;
        let is_one = pods.len() == 1;
        is_one.then_some(pods).ok_or_else(|| "none yet".to_owned())
    })
    .await?;

    world.control.push(samples::apply_sentinel(front.clone()));
    world.control.push(samples::apply_sentinel(other.clone()));
    let agent = world
        .agent()
        .set("sentinel.probe_paths", "split")
        .start()
        .await?;
    has(&world, &front, &all_five(name)).await?;
    eventually("all are ours", limits::LONG, async || {
        let service = services
            .get(&gossip)
            .await
            .map_err(|error| error.to_string())?;
        match service.labels().get("app.kubernetes.io/managed-by") {
            Some(manager) if manager == "krane" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    is_told(&world, &front, Health::Healthy, 1, limits::LONG).await?;
    assert_eq!(services.get(&gossip).await?.uid(), service.uid());
    let taken = policies(&world, NAMESPACE).get(&gossip).await?;
    assert_eq!(taken.uid(), policy.uid());
    assert_eq!(pods(&world, id).await?, pods_before, "no pod restarts");
    let live = deployments.get(name).await?;
    let template = serde_json::to_value(live.spec)?["template"]["metadata"]["labels"].clone();
    assert_eq!(template, left["spec"]["template"]["metadata"]["labels"]);
    let stays = services.get(&other.k8s_name).await?;
    assert_eq!(stays.labels().get("app.kubernetes.io/managed-by"), None);
    services
        .delete(&other.k8s_name, &kube::api::DeleteParams::default())
        .await?;
    agent.stop().await
}

/// Name and uid of the pods of a sentinel that are not on their way out.
async fn pods(world: &krane_testharness::World, id: &str) -> Outcome<BTreeMap<String, String>> {
    let params = ListParams::default().labels(&format!("unkey.com/sentinel.id={id}"));
    let pods = world.api.within::<Pod>(NAMESPACE).list(&params).await?;
    Ok(pods
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .map(|pod| (pod.name_any(), pod.uid().unwrap_or_default()))
        .collect())
}
