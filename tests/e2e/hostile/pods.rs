//! Pods whose status nobody expects.

use k8s_openapi::api::core::v1::Pod;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Status, samples};
use krane_testharness::{Outcome, limits};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::no_panic;
use crate::world;

/// unkeyed/unkey fb7501c734, PR #5833 (A26); 1285ff3b24, PR #6968 (A27); D24, D25: odd statuses are reported as what
/// they are worth, and the others' reports go on.
#[tokio::test(flavor = "multi_thread")]
async fn pods_with_odd_statuses_are_reported_as_what_they_are() -> Outcome {
    let world = world().await?;
    let web = ApplyDeployment {
        replicas: 1,
        ..samples::deployment(&world.namespace(0), "web")
    };
    let beside = samples::deployment(&world.namespace(1), "beside");
    world.push_all(&[web.clone(), beside.clone()]);
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    let both = [web.clone(), beside.clone()];
    world.settles("both run", &both, &[], limits::LONG).await?;
    let live = world.live().await?;
    let set = &live.replica_sets[&(web.k8s_namespace.clone(), "web".to_owned())];
    let pod = live.pods_of(set)[0].name_any();

    let odd: [(Value, Option<(Status, &str)>); 5] = [
        (
            json!({"conditions": [{"type": "Ready", "status": "Unknown"}]}),
            Some((Status::Pending, "")),
        ),
        (
            json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "False"}]}),
            Some((Status::Pending, "")),
        ),
        (
            json!({"conditions": [{"type": "ContainersReady", "status": "True"}],
                "podIP": "fd00::1", "podIPs": [{"ip": "fd00::1"}]}),
            Some((Status::Running, "fd00--1.")),
        ),
        (
            json!({"conditions": [{"type": "Ready", "status": "perhaps"}]}),
            Some((Status::Pending, "fd00--1.")),
        ),
        (json!({"phase": "Failed", "reason": "Evicted"}), None),
    ];
    for (status, expected) in odd {
        if let Err(error) = world
            .cluster()
            .patch_pod_status(&web.k8s_namespace, &pod, &status)
            .await
        {
            println!("the API server refuses {status}: {error}");
            continue;
        }
        world
            .control
            .wait_for(&format!("{status} is reported"), limits::SHORT, |seen| {
                let report = seen.report("web")?;
                let mine = report
                    .instances()
                    .iter()
                    .find(|instance| instance.k8s_name == pod);
                let fits = match (mine, expected) {
                    (Some(mine), Some((status, address))) => {
                        mine.status() == status && mine.address.starts_with(address)
                    }
                    (None, None) => true,
                    _ => false,
                };
                fits.then_some(())
            })
            .await?;
    }
    // 200 KiB of annotations, as some tool may write them.
    let live = world.live().await?;
    let set = &live.replica_sets[&(beside.k8s_namespace.clone(), "beside".to_owned())];
    let other = live.pods_of(set)[0].name_any();
    let big = json!({"metadata": {"annotations": {"huge": "x".repeat(200 << 10), "krane.unkey.com/template": "é\n"}}});
    world
        .api
        .edit::<Pod>(&beside.k8s_namespace, &other, big)
        .await?;
    world
        .cluster()
        .set_pod_ready(&beside.k8s_namespace, &other, false)
        .await?;
    world
        .control
        .wait_for(
            "it is seen through its annotations",
            limits::SHORT,
            |seen| (!seen.running("beside")).then_some(()),
        )
        .await?;
    no_panic(&agent)?;
    agent.stop().await
}
