//! The whole way: from the control plane's wish to a pod, and back as a report.

use krane_sim::control_plane::{Report, Status, samples};
use krane_testharness::{Failure, Outcome, address_of, limits};
use kube::ResourceExt as _;

use crate::world;

#[tokio::test(flavor = "multi_thread")]
async fn a_wanted_deployment_becomes_a_replica_set_and_its_pod_is_reported_running() -> Outcome {
    let world = world().await?;
    let web = samples::deployment(&world.namespace(0), "web");
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().start().await?;
    world
        .settles(
            "web runs and is reported",
            std::slice::from_ref(&web),
            &[],
            limits::LONG,
        )
        .await?;

    let live = world.live().await?;
    let set = live
        .replica_sets
        .values()
        .next()
        .ok_or_else(|| Failure::new("no ReplicaSet"))?;
    let pods = live.pods_of(set);
    let addresses: Vec<_> = pods
        .iter()
        .filter_map(|pod| address_of(pod, 8080))
        .collect();
    let reports = world.control.reports();
    let Report::Update { instances, .. } = &reports["web"].report else {
        return Err(Failure::new("the newest report is no update"));
    };
    assert_eq!(instances.len(), 1);
    let instance = &instances[0];
    assert_eq!(instance.k8s_name, pods[0].name_any());
    assert_eq!(instance.address, addresses[0]);
    assert_eq!(instance.status(), Status::Running);
    assert_eq!((instance.cpu_millicores, instance.memory_mib), (250, 256));
    assert!(
        instance.address.ends_with(".pod.cluster.local:8080"),
        "{}",
        instance.address
    );
    agent.stop().await
}
