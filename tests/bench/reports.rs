//! From a pod's readiness to the control plane, steady: one change after the other.

use std::time::{Duration, SystemTime};

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::Status;
use krane_testcluster::ADMIN_USER;
use krane_testharness::{Failure, Outcome, World, limits};
use kube::ResourceExt as _;

use crate::figures::{Figures, Target};

const FLIPS: usize = 400;

pub(crate) async fn measure(
    world: &World,
    workloads: &[ApplyDeployment],
    figures: &mut Figures,
) -> Outcome {
    println!("readiness of pods to reports");
    let live = world.live().await?;
    let mark = world.mark()?;
    // When each flip was told, on the wall clock that the audit log has.
    let mut told = Vec::with_capacity(FLIPS);
    for flip in 0..FLIPS {
        let state = &workloads[(flip / 2) % workloads.len()];
        let key = (state.k8s_namespace.clone(), state.k8s_name.clone());
        let pods = live.replica_sets.get(&key).map(|set| live.pods_of(set));
        let pod = pods
            .and_then(|pods| pods.first())
            .ok_or_else(|| Failure::new("no pod"))?;
        let is_ready = flip % 2 == 1;
        world
            .cluster()
            .set_pod_ready(&state.k8s_namespace, &pod.name_any(), is_ready)
            .await?;
        let expected = if is_ready {
            Status::Running
        } else {
            Status::Pending
        };
        let is_told = |seen: &krane_sim::control_plane::Seen| {
            let delivered = seen.reports.get(&state.k8s_name)?;
            let instance = delivered.report.instances().first()?;
            (instance.status() == expected).then_some(delivered.at)
        };
        let at = world
            .control
            .wait_for("the flip is told", limits::SHORT, is_told)
            .await?;
        told.push((pod.name_any(), SystemTime::now() - at.elapsed()));
    }
    let entries = world.cluster().requests(mark)?;
    let mut flips = entries.iter().filter(|entry| {
        entry.user == ADMIN_USER && entry.subresource == "status" && entry.resource == "pods"
    });
    let mut latencies = Vec::with_capacity(FLIPS);
    for (pod, at) in told {
        let flip = flips.find(|entry| entry.name == pod);
        let flip =
            flip.ok_or_else(|| Failure::new(format!("no flip of {pod} in the audit log")))?;
        let sent = SystemTime::from(flip.received);
        latencies.push(at.duration_since(sent).unwrap_or(Duration::ZERO));
    }
    figures.durations(
        "status written until the report arrives",
        latencies,
        Target::Below(50.0),
        Target::Below(250.0),
    );
    Ok(())
}
