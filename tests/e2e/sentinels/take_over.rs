//! Sentinels that another agent left behind.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, Service, ServiceAccount};
use krane_proto::ctrl::v1::Health;
use krane_sim::control_plane::{PLATFORM, REGION, samples};
use krane_testharness::{Outcome, World, eventually, limits};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{NAMESPACE, all_five, has, is_told, policies, sentinel};
use crate::{KRANE, world};

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

/// D15, D44: what the original agent left is taken over as it runs. Nothing is deleted, no pod
/// restarts before its turn, and objects that it did not label become ours.
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
    leave_for_a_workload(&world).await?;
    announced(&world, name, &gossip).await?;
    let agent = world
        .agent()
        .set("sentinel.probe_paths", "split")
        .set("safety.upgrades", "off")
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

/// What the original left in the namespace of a workload, and krane has no use for.
async fn leave_for_a_workload(world: &World) -> Outcome {
    let namespace = world.namespace(7);
    let labels =
        json!({ "app.kubernetes.io/managed-by": "krane", "unkey.com/deployment.id": "d_1" });
    let metadata = json!({ "name": "deploy-d-1", "namespace": namespace, "labels": labels });
    let all = kube::Api::<Namespace>::all(world.api.client());
    let made = json!({ "metadata": { "name": namespace } });
    all.create(&PostParams::default(), &serde_json::from_value(made)?)
        .await?;
    let secret = json!({ "metadata": metadata, "stringData": { "KEY": "plain" } });
    world
        .api
        .within::<Secret>(&namespace)
        .create(&PostParams::default(), &serde_json::from_value(secret)?)
        .await?;
    world
        .api
        .within::<ServiceAccount>(&namespace)
        .create(
            &PostParams::default(),
            &serde_json::from_value(json!({ "metadata": metadata }))?,
        )
        .await?;
    let policy = json!({
        "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
        "metadata": { "name": "allow-sentinel-ingress", "namespace": namespace },
        "spec": { "endpointSelector": {}, "ingress": [] },
    });
    policies(world, &namespace)
        .create(&PostParams::default(), &serde_json::from_value(policy)?)
        .await?;
    Ok(())
}

/// `krane check --takeover` says beforehand what happens, with the rights of whoever asks, and what
/// stays.
async fn announced(world: &World, name: &str, gossip: &str) -> Outcome {
    let config = format!(
        "region = {REGION:?}\nplatform = {PLATFORM:?}\n[sentinel]\nprobe_paths = \"split\"\n\
         [control]\nurl = {:?}\ntoken = {:?}\n",
        world.control.url(),
        world.control.token(),
    );
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("krane.toml");
    std::fs::write(&file, config)?;
    let check = async |output: &str| -> Outcome<String> {
        let done = tokio::process::Command::new(KRANE)
            .args(["check", "--takeover", "-o", output, "--config"])
            .arg(&file)
            .arg("--kubeconfig")
            .arg(world.cluster().kubeconfig())
            .output()
            .await?;
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "there are findings: {errors}");
        assert!(!errors.contains(world.control.token()), "{errors}");
        Ok(String::from_utf8(done.stdout)?)
    };
    println!("{}", check("text").await?);
    let found: Value = serde_json::from_str(&check("json").await?)?;
    let all = |part: &str, of: fn(&Value) -> String| -> Vec<String> {
        found[part]
            .as_array()
            .into_iter()
            .flatten()
            .map(of)
            .collect()
    };
    let changes = all("changes", |planned| {
        format!(
            "{} {}",
            planned["action"].as_str().unwrap_or_default(),
            planned["object"].as_str().unwrap_or_default()
        )
    });
    for expected in [
        format!("take_over Service {NAMESPACE}/{gossip}"),
        format!("take_over CiliumNetworkPolicy {NAMESPACE}/{gossip}"),
        format!("render_anew Deployment {NAMESPACE}/{name}"),
        format!("roll Deployment {NAMESPACE}/{name}"),
        format!("create Service {NAMESPACE}/{name}"),
        format!("create PodDisruptionBudget {NAMESPACE}/{name}"),
    ] {
        assert!(changes.contains(&expected), "{expected} in {changes:#?}");
    }
    let problems = all_texts(&found["problems"]);
    assert!(problems.is_empty(), "{problems:#?}");
    let namespace = world.namespace(7);
    let leftovers = all("leftovers", |left| {
        left["command"].as_str().unwrap_or_default().to_owned()
    });
    for expected in [
        format!("kubectl -n {namespace} delete secrets deploy-d-1"),
        format!("kubectl -n {namespace} delete serviceaccounts deploy-d-1"),
        format!("kubectl -n {namespace} delete ciliumnetworkpolicies allow-sentinel-ingress"),
    ] {
        assert!(
            leftovers.contains(&expected),
            "{expected} in {leftovers:#?}"
        );
    }
    Ok(())
}

fn all_texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

/// Name and uid of the pods of a sentinel that are not on their way out.
async fn pods(world: &World, id: &str) -> Outcome<BTreeMap<String, String>> {
    let params = ListParams::default().labels(&format!("unkey.com/sentinel.id={id}"));
    let pods = world.api.within::<Pod>(NAMESPACE).list(&params).await?;
    Ok(pods
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .map(|pod| (pod.name_any(), pod.uid().unwrap_or_default()))
        .collect())
}
