//! What pods do is told as it is.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Report, Status, samples};
use krane_testcluster::Behaviour;
use krane_testharness::{Agent, Failure, Outcome, World, eventually, limits};
use kube::{ResourceExt as _, api::ListParams};
use serde_json::{Value, json};

use crate::world;

/// What the cases allow from a change to its report; the targets are much shorter and measured by the bench.
const PROMPT: Duration = Duration::from_secs(2);

/// Pods that only do what the test writes into their status.
fn manual(world: &World, index: usize, replicas: i32) -> ApplyDeployment {
    ApplyDeployment {
        image: Behaviour::Manual.image(),
        replicas,
        ..samples::deployment(
            &world.namespace(index),
            &format!("{}d{index}", world.namespace(index)),
        )
    }
}

async fn start(world: &World, deployments: &[ApplyDeployment]) -> Outcome<Agent> {
    world.push_all(deployments);
    world.agent().start().await
}

/// The pods of a deployment that are not on their way out, once there are as many and all have a node.
async fn pods(world: &World, deployment: &ApplyDeployment, count: usize) -> Outcome<Vec<Pod>> {
    let selector = format!("unkey.com/deployment.id={}", deployment.deployment_id);
    let selector = ListParams::default().labels(&selector);
    eventually("the pods are there", limits::SHORT, async || {
        let pods = world
            .api
            .within::<Pod>(&deployment.k8s_namespace)
            .list(&selector)
            .await;
        let mut pods = pods.map_err(|error| error.to_string())?.items;
        pods.retain(|pod| {
            let phase = pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            pod.metadata.deletion_timestamp.is_none() && phase == Some("Pending")
        });
        let on_nodes = pods.iter().all(|pod| {
            pod.spec
                .as_ref()
                .is_some_and(|spec| spec.node_name.is_some())
        });
        if pods.len() == count && on_nodes {
            Ok(pods)
        } else {
            Err(format!("{} are", pods.len()))
        }
    })
    .await
}

async fn patch(world: &World, pod: &Pod, status: Value) -> Outcome {
    let namespace = pod.namespace().unwrap_or_default();
    Ok(world
        .cluster()
        .patch_pod_status(&namespace, &pod.name_any(), &status)
        .await?)
}

fn status(phase: &str, ip: Option<&str>, ready: &str) -> Value {
    let mut status = json!({
        "phase": phase,
        "conditions": [
            {"type": "ContainersReady", "status": ready},
            {"type": "Ready", "status": ready},
        ],
    });
    if let Some(ip) = ip {
        status["podIP"] = json!(ip);
        status["podIPs"] = json!([{"ip": ip}]);
    }
    status
}

/// Waits until the newest report has exactly these instances, by IP and status; says how long that took.
async fn is_told(
    world: &World,
    name: &str,
    expected: &[(&str, Status)],
    limit: Duration,
) -> Outcome<Duration> {
    let started = Instant::now();
    let mut expected: Vec<_> = expected
        .iter()
        .map(|(ip, status)| (ip.replace('.', "-"), *status))
        .collect();
    expected.sort();
    world
        .control
        .wait_for(&format!("{name} is told as {expected:?}"), limit, |seen| {
            let Some(Report::Update { instances, .. }) = seen.report(name) else {
                return None;
            };
            let mut told: Vec<_> = instances
                .iter()
                .map(|instance| {
                    let ip = instance.address.split('.').next().unwrap_or_default();
                    (ip.to_owned(), instance.status())
                })
                .collect();
            told.sort();
            (told == expected).then_some(())
        })
        .await?;
    Ok(started.elapsed())
}

/// unkeyed/unkey 8b161adf66, PR #5328 (A25): the ReplicaSet was watched and not its pods.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_told_at_each_change_whatever_its_replica_set_does() -> Outcome {
    let world = world().await?;
    let web = manual(&world, 0, 1);
    let agent = start(&world, std::slice::from_ref(&web)).await?;
    let pod = &pods(&world, &web, 1).await?[0];
    is_told(&world, &web.k8s_name, &[], limits::SHORT).await?;
    patch(&world, pod, status("Running", Some("10.9.0.1"), "False")).await?;
    let pending = is_told(
        &world,
        &web.k8s_name,
        &[("10.9.0.1", Status::Pending)],
        PROMPT,
    )
    .await?;
    patch(&world, pod, status("Running", Some("10.9.0.1"), "True")).await?;
    let running = is_told(
        &world,
        &web.k8s_name,
        &[("10.9.0.1", Status::Running)],
        PROMPT,
    )
    .await?;
    println!("told PENDING after {pending:?}, RUNNING after {running:?}");
    agent.stop().await
}

/// unkeyed/unkey fb7501c734, PR #5833 (A26): a starting pod was failed, a cold one took traffic.
#[tokio::test(flavor = "multi_thread")]
async fn every_state_of_a_pod_is_told_by_the_rule() -> Outcome {
    let world = world().await?;
    let web = manual(&world, 0, 6);
    let agent = start(&world, std::slice::from_ref(&web)).await?;
    let pods = pods(&world, &web, 6).await?;
    let no_condition =
        json!({"phase": "Running", "podIP": "10.9.0.4", "podIPs": [{"ip": "10.9.0.4"}]});
    let states = [
        status("Running", Some("10.9.0.1"), "True"),
        status("Running", Some("10.9.0.2"), "False"),
        status("Running", Some("10.9.0.3"), "Unknown"),
        no_condition,
        status("Pending", Some("10.9.0.5"), "False"),
        status("Pending", None, "False"),
    ];
    for (pod, state) in pods.iter().zip(states) {
        patch(&world, pod, state).await?;
    }
    let expected = [
        ("10.9.0.1", Status::Running),
        ("10.9.0.2", Status::Pending),
        ("10.9.0.3", Status::Pending),
        ("10.9.0.4", Status::Pending),
        ("10.9.0.5", Status::Pending),
    ];
    is_told(&world, &web.k8s_name, &expected, limits::SHORT).await?;
    agent.stop().await
}

/// unkeyed/unkey 1285ff3b24, PR #6968 (A27): each replaced pod left a dead instance in the report for ever.
#[tokio::test(flavor = "multi_thread")]
async fn finished_pods_are_told_no_more_and_no_pod_at_all_is_told_too() -> Outcome {
    let world = world().await?;
    let web = manual(&world, 0, 1);
    let agent = start(&world, std::slice::from_ref(&web)).await?;
    for round in 1..=4 {
        let pod = &pods(&world, &web, 1).await?[0];
        let ip = format!("10.9.0.{round}");
        patch(&world, pod, status("Running", Some(&ip), "True")).await?;
        is_told(
            &world,
            &web.k8s_name,
            &[(&ip, Status::Running)],
            limits::SHORT,
        )
        .await?;
        // The ReplicaSet makes another one, which has no address yet; the old one keeps its own.
        if round == 4 {
            patch(&world, pod, json!({"phase": "Succeeded"})).await?;
        } else {
            world
                .cluster()
                .fail_pod(&web.k8s_namespace, &pod.name_any())
                .await?;
        }
        is_told(&world, &web.k8s_name, &[], limits::SHORT).await?;
    }
    agent.stop().await
}

/// linkerd/linkerd2#5394, PR #5412 (B13): a finished pod's address belongs to somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_was_given_on_is_told_for_its_new_owner_only() -> Outcome {
    let world = world().await?;
    let (first, second) = (manual(&world, 0, 1), manual(&world, 1, 1));
    let agent = start(&world, &[first.clone(), second.clone()]).await?;
    let old = &pods(&world, &first, 1).await?[0];
    patch(&world, old, status("Running", Some("10.9.0.7"), "True")).await?;
    is_told(
        &world,
        &first.k8s_name,
        &[("10.9.0.7", Status::Running)],
        limits::SHORT,
    )
    .await?;
    world
        .cluster()
        .fail_pod(&first.k8s_namespace, &old.name_any())
        .await?;
    let new = &pods(&world, &second, 1).await?[0];
    patch(&world, new, status("Running", Some("10.9.0.7"), "True")).await?;
    is_told(
        &world,
        &second.k8s_name,
        &[("10.9.0.7", Status::Running)],
        limits::SHORT,
    )
    .await?;
    is_told(&world, &first.k8s_name, &[], limits::SHORT).await?;
    agent.stop().await
}

/// knative/serving#12048, #11337 (B17): the status stayed READY while all pods crash-looped.
#[tokio::test(flavor = "multi_thread")]
async fn flapping_pods_are_told_at_every_flip() -> Outcome {
    let world = world().await?;
    let web = ApplyDeployment {
        replicas: 2,
        ..world.deployments(1, 1).remove(0)
    };
    let agent = start(&world, std::slice::from_ref(&web)).await?;
    world
        .settles("both run", std::slice::from_ref(&web), &[], limits::LONG)
        .await?;
    let live = world.live().await?;
    let names: Vec<String> = live
        .pods
        .values()
        .flatten()
        .map(kube::ResourceExt::name_any)
        .collect();
    let are_told = async |status: Status| {
        let started = Instant::now();
        let all = |seen: &krane_sim::control_plane::Seen| {
            let instances = seen.report(&web.k8s_name)?.instances();
            let all = instances.iter().all(|instance| instance.status() == status);
            (instances.len() == 2 && all).then_some(())
        };
        world
            .control
            .wait_for("the flip is told", PROMPT, all)
            .await?;
        Ok::<_, Failure>(started.elapsed())
    };
    let mut slowest = Duration::ZERO;
    for _ in 0..5 {
        for name in &names {
            world.cluster().crash_pod(&web.k8s_namespace, name).await?;
        }
        slowest = slowest.max(are_told(Status::Pending).await?);
        for name in &names {
            world
                .cluster()
                .set_pod_ready(&web.k8s_namespace, name, true)
                .await?;
        }
        slowest = slowest.max(are_told(Status::Running).await?);
    }
    println!("the slowest of ten flips was told after {slowest:?}");
    agent.stop().await
}

/// unkeyed/unkey 5084861c76, PR #5214; 0fee273ab0 (A33): CPU and memory in reports were always 0.
#[tokio::test(flavor = "multi_thread")]
async fn reports_carry_the_limits_of_the_container() -> Outcome {
    let world = world().await?;
    let sizes = [(500, 256), (1000, 1024), (1, 4), (2500, 3000)];
    let deployments: Vec<_> = sizes
        .iter()
        .zip(world.deployments(sizes.len(), 2))
        .map(
            |((cpu_millicores, memory_mib), deployment)| ApplyDeployment {
                cpu_millicores: *cpu_millicores,
                memory_mib: *memory_mib,
                ..deployment
            },
        )
        .collect();
    let agent = start(&world, &deployments).await?;
    world
        .settles("all run", &deployments, &[], limits::LONG)
        .await?;
    for (size, deployment) in sizes.iter().zip(&deployments) {
        let report = world.control.reports()[&deployment.k8s_name].report.clone();
        let told = report
            .instances()
            .first()
            .map(|i| (i.cpu_millicores, i.memory_mib));
        assert_eq!(told, Some(*size));
    }
    agent.stop().await
}

/// unkeyed/unkey 152f760a48, PR #6561; 01902778cf; 58f79d68ca (A17): a toleration that does not match its taint.
/// All nodes of the test cluster are tainted.
#[tokio::test(flavor = "multi_thread")]
async fn workloads_and_sentinels_are_scheduled_on_the_nodes_for_them() -> Outcome {
    let world = world().await?;
    let deployments = world.deployments(3, 1);
    let front = samples::sentinel(&format!("{}-front", world.namespace(0)));
    world.control.push(samples::apply_sentinel(front.clone()));
    let agent = start(&world, &deployments).await?;
    world
        .settles("all run", &deployments, &[], limits::LONG)
        .await?;
    for pod in world.live().await?.pods.values().flatten() {
        let node = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.node_name.as_deref())
            .unwrap_or_default();
        assert!(node.starts_with("untrusted-"), "{node}");
    }
    let selector = format!("unkey.com/sentinel.id={}", front.sentinel_id);
    let selector = ListParams::default().labels(&selector);
    eventually("the sentinel has a node", limits::LONG, async || {
        let pods = world.api.within::<Pod>("sentinel").list(&selector).await;
        let mut pods = pods.map_err(|error| error.to_string())?.into_iter();
        let node = pods.find_map(|pod| pod.spec?.node_name).unwrap_or_default();
        if node.starts_with("sentinel-") {
            Ok(())
        } else {
            Err(format!("it is on {node:?}"))
        }
    })
    .await?;
    agent.stop().await
}

const UNREACHABLE: &str = "krane_reports_total{controller=\"deployments\",result=\"unreachable\"}";

/// unkeyed/unkey 8b161adf66, pod_watch.go (C14), level-triggered rule, edge lost: the report of the only change fails, and no later event comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_while_the_control_plane_is_away_is_told_when_it_is_back() -> Outcome {
    let world = world().await?;
    let web = manual(&world, 0, 1);
    let agent = start(&world, std::slice::from_ref(&web)).await?;
    let pod = &pods(&world, &web, 1).await?[0];
    patch(&world, pod, status("Running", Some("10.9.0.1"), "False")).await?;
    is_told(
        &world,
        &web.k8s_name,
        &[("10.9.0.1", Status::Pending)],
        limits::SHORT,
    )
    .await?;
    world.control.stop().await;
    patch(&world, pod, status("Running", Some("10.9.0.1"), "True")).await?;
    eventually("the report fails", limits::LONG, async || {
        let metrics = agent.metrics().await.map_err(|it| it.to_string())?;
        let failed = metrics.get(UNREACHABLE).unwrap_or_default();
        let is_spared = metrics.deployments("krane_breaker_state") > 1.5;
        if failed > 0.0 && is_spared {
            Ok(())
        } else {
            Err(format!("{failed} failed, breaker open: {is_spared}"))
        }
    })
    .await?;
    world.control.start_again().await?;
    let told = is_told(
        &world,
        &web.k8s_name,
        &[("10.9.0.1", Status::Running)],
        limits::LONG,
    )
    .await?;
    println!("told {told:?} after the control plane was back");
    agent.stop().await
}
