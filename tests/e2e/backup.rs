//! etcd is restored from a backup while krane runs (F3, D43).

use std::time::Instant;

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::samples;
use krane_testcluster::{Options, Revisions};
use krane_testharness::{Outcome, Quiet, World, limits};

use crate::KRANE;

const DEPLOYMENTS: usize = 12;
const NAMESPACES: usize = 3;
const NEW: usize = 4;

const WARNING: &str = "the cluster was restored from a backup";

/// After the backup: the first ones get more memory or another number of pods, the last ones go, and
/// new ones come, some of them in a namespace that is new as well.
fn change(world: &World, mut desired: Vec<ApplyDeployment>) -> [Vec<ApplyDeployment>; 2] {
    for (index, deployment) in desired.iter_mut().take(4).enumerate() {
        if index % 2 == 0 {
            deployment.memory_mib = 512;
        } else {
            deployment.replicas += 2;
        }
        world.control.push(samples::apply(deployment.clone()));
    }
    let gone = desired.split_off(DEPLOYMENTS - 2);
    world.control.push_all(gone.iter().map(samples::delete));
    let new = world.deployments(DEPLOYMENTS + NEW, NAMESPACES + 1);
    let new = new.into_iter().skip(DEPLOYMENTS);
    desired.extend(new);
    world.push_all(&desired[DEPLOYMENTS - 2..]);
    [desired, gone]
}

async fn is_in_sync_after(revisions: Revisions) -> Outcome {
    let world = World::own(KRANE, Options::default(), Quiet::Beside).await?;
    let desired = world.deployments(DEPLOYMENTS, NAMESPACES);
    world.push_all(&desired);
    let mut agent = world.agent().start().await?;
    world
        .settles("all run", &desired, &[], limits::VERY_LONG)
        .await?;
    let process = agent.id()?;

    let backup = world.cluster().back_up("first").await?;
    let [desired, gone] = change(&world, desired);
    world
        .settles("changed", &desired, &gone, limits::VERY_LONG)
        .await?;

    let mark = world.mark()?;
    let began = Instant::now();
    world.cluster().restore(&backup, revisions).await?;
    let ready = Instant::now();
    // Every address that is reported is that of a pod that is there. Nodes whose Leases in the backup
    // are too old have pods that are not Ready, and nothing in the test cluster changes that.
    world
        .is_told_truly("in sync", &desired, &gone, limits::VERY_LONG)
        .await?;
    println!(
        "{revisions:?}: the API server was away for {:?}, in sync {:?} after it was ready",
        ready - began,
        ready.elapsed()
    );
    // What the backup brings back of what is to be gone goes again; nothing else is deleted.
    let writes = world.writes(mark)?;
    let deleted = writes.iter().filter(|entry| entry.verb == "delete");
    let mut deleted: Vec<_> = deleted.map(|entry| entry.name.clone()).collect();
    deleted.sort();
    deleted.dedup();
    let mut expected: Vec<_> = gone.iter().map(|state| state.k8s_name.clone()).collect();
    expected.sort();
    assert_eq!(deleted, expected);
    assert!(agent.is_running());
    assert_eq!(agent.id()?, process);
    let lines = agent.log().lines()?;
    let warnings = lines
        .iter()
        .filter(|line| line.text("message").contains(WARNING));
    // When the cluster has passed the last version seen it cannot be told.
    let warnings = warnings.count();
    println!("{revisions:?}: {warnings} warnings of a restore");
    assert!(warnings <= 1, "{warnings}");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_restored_from_a_backup_is_in_sync_again_without_a_restart() -> Outcome {
    is_in_sync_after(Revisions::Plain).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_restored_with_bumped_revisions_is_in_sync_again_without_a_restart() -> Outcome {
    is_in_sync_after(Revisions::Bumped).await
}
