//! A cluster that is restored from a backup while krane runs (F3, D43).

use std::time::Duration;

use krane_domain::object::{ObjectRef, Resource};
use krane_domain::report::Report;
use krane_ports::WatchEnd;

use super::harness::World;
use crate::testing::cluster::{Fault, Past, unavailable};
use crate::testing::{Op, input, unwants, wants};

/// A cluster of which every version is higher than before, as etcd's documentation advises.
const BUMP: u64 = 1_000_000_000;
/// What a restore may take until everything is in sync again.
const LIMIT: Duration = Duration::from_secs(300);

fn pods_told(world: &World, name: &str) -> Option<Vec<String>> {
    match world.control_plane.last_report(name)? {
        Report::Instances { instances, .. } => {
            let pods = instances.iter().map(|instance| instance.pod.to_string());
            Some(pods.collect())
        }
        Report::Health { .. } | Report::Gone { .. } => None,
    }
}

fn image(world: &World, name: &str) -> Option<String> {
    let live = world.cluster.workload("ns", name)?;
    let image = live.value()["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    Some(image.as_str()?.to_owned())
}

fn watched(world: &World) -> Vec<Resource> {
    let store = world.workers.store();
    let specs = store.controller().watches(store.rules()).into_iter();
    specs.map(|spec| spec.resource).collect()
}

fn deletes(world: &World) -> usize {
    let log = world.cluster.log();
    log.iter().filter(|op| matches!(op, Op::Delete(_))).count()
}

async fn applied(world: &World, version: u64) {
    let is_applied = |world: &World| world.cursor() == version;
    world.until("applied", is_applied).await;
}

/// `kept` and `gone` with a pod each are in the backup; afterwards `kept` gets another image and
/// another pod, `gone` goes and `new` comes.
async fn changed_since_backup() -> (World, Past) {
    let world = World::start().await;
    for (version, name) in [(1, "kept"), (2, "gone")] {
        world.control_plane.push(wants(version, input("ns", name)));
        applied(&world, version).await;
        let pod = format!("{name}-1");
        world.cluster.set_pod("ns", name, &pod, true);
        let is_told = |world: &World| pods_told(world, name) == Some(vec![pod.clone()]);
        world.until("reported", is_told).await;
    }
    let backup = world.cluster.now();
    let mut changed = input("ns", "kept");
    changed.image = "registry.example/app:2".to_owned();
    world.control_plane.push(wants(3, changed));
    world.control_plane.push(unwants(4, "ns", "gone"));
    world.control_plane.push(wants(5, input("other", "new")));
    applied(&world, 5).await;
    world.cluster.remove_pod("gone-1");
    world.cluster.remove_pod("kept-1");
    world.cluster.set_pod("ns", "kept", "kept-2", true);
    world.cluster.set_pod("other", "new", "new-1", true);
    world
        .until("reported", |world| {
            pods_told(world, "kept") == Some(vec!["kept-2".to_owned()])
                && pods_told(world, "new") == Some(vec!["new-1".to_owned()])
        })
        .await;
    (world, backup)
}

/// Everything is as it is desired, and as it is reported.
fn is_in_sync(world: &World) -> bool {
    let new = world.cluster.workload("other", "new");
    image(world, "kept").as_deref() == Some("registry.example/app:2")
        && new.is_some()
        && world.cluster.workload("ns", "gone").is_none()
        && pods_told(world, "kept") == Some(vec!["kept-1".to_owned()])
        && pods_told(world, "new") == Some(Vec::new())
}

/// The API server is away while the backup is put in its place.
async fn restore(world: &World, backup: &Past, bump: u64, passed_meanwhile: u64) {
    world.cluster.fail_lists(true);
    world.cluster.restore(backup, bump);
    world.cluster.skip_versions(passed_meanwhile);
    world.pass(3).await;
    world.cluster.fail_lists(false);
}

async fn is_in_sync_after(bump: u64, passed_meanwhile: u64) {
    let (world, backup) = changed_since_backup().await;
    let before = deletes(&world);
    restore(&world, &backup, bump, passed_meanwhile).await;
    let time = world.until("in sync", is_in_sync).await;
    assert!(time < LIMIT, "{time:?}");
    world.pass(600).await;
    assert!(is_in_sync(&world));
    let is_below = bump == 0 && passed_meanwhile == 0;
    assert_eq!(world.board.api_server().restores(), u64::from(is_below));
    // What came back and is to be gone is deleted again; nothing else is.
    assert_eq!(deletes(&world) - before, 1);
    for (path, cell) in world.board.all() {
        assert_eq!(cell.read().restarts, 0, "{path}");
    }
    // What happens from now on is told.
    world.cluster.set_pod("other", "new", "new-2", true);
    let is_told = |world: &World| pods_told(world, "new") == Some(vec!["new-2".to_owned()]);
    world.until("told", is_told).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_restored_from_a_backup_is_in_sync_within_five_minutes() {
    is_in_sync_after(0, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_restored_with_higher_versions_is_in_sync_within_five_minutes() {
    is_in_sync_after(BUMP, 0).await;
}

/// A watch from the last version seen would work, and would never tell what it missed.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_has_passed_the_last_version_seen_is_listed_all_the_same() {
    is_in_sync_after(0, 1000).await;
}

/// A cached list is older than what was seen; another server answers what is there.
#[tokio::test(start_paused = true)]
async fn a_list_of_a_server_that_lags_behind_changes_nothing() {
    let (world, backup) = changed_since_backup().await;
    world.pass(60).await;
    let writes = world.cluster.writes();
    let reports = world.control_plane.reports().len();
    world.cluster.lag(backup);
    world.cluster.end_watches(&WatchEnd::Expired);
    world.pass(30).await;
    assert_eq!(world.cluster.writes(), writes);
    assert_eq!(world.control_plane.reports().len(), reports);
    let gone = ObjectRef::new(Resource::ReplicaSet, "ns", "gone");
    assert!(world.memory(|memory| memory.view.get(&gone).is_none()));
    assert_eq!(world.board.api_server().restores(), 0);
}

/// What was deleted by krane itself came back with the uid it had.
#[tokio::test(start_paused = true)]
async fn an_object_that_the_backup_brings_back_is_seen_again() {
    let (world, backup) = changed_since_backup().await;
    world.cluster.fault(|op| {
        let is_delete = matches!(op, Op::Delete(_));
        is_delete.then_some(Fault::Hang)
    });
    restore(&world, &backup, 0, 0).await;
    let gone = ObjectRef::new(Resource::ReplicaSet, "ns", "gone");
    let is_seen = |world: &World| world.memory(|memory| memory.view.get(&gone).is_some());
    let time = world.until("seen", is_seen).await;
    assert!(time < LIMIT, "{time:?}");
}

/// A gateway that asks to wait does not know what happens behind it: watches are not resumed from
/// before the restore.
#[tokio::test(start_paused = true)]
async fn a_gateway_that_asks_to_wait_does_not_hide_a_restore() {
    let (world, backup) = changed_since_backup().await;
    let answer = unavailable(503, Some(Duration::from_secs(1)));
    world.cluster.refuse_watches(&watched(&world), answer);
    world.cluster.restore(&backup, 0);
    world.cluster.skip_versions(1000);
    world.pass(3).await;
    world.cluster.open_watches();
    let time = world.until("in sync", is_in_sync).await;
    assert!(time < Duration::from_secs(60), "{time:?}");
}

/// The others notice it when their watches stay silent, long before the pause is over.
#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_long_pause_does_not_hide_a_restore_that_another_kind_noticed() {
    let (world, backup) = changed_since_backup().await;
    let answer = unavailable(429, Some(Duration::from_secs(600)));
    world.cluster.refuse_watches(&[Resource::Pod], answer);
    world.cluster.restore(&backup, 0);
    let time = world.until("in sync", is_in_sync).await;
    assert!(time < LIMIT, "{time:?}");
    assert_eq!(world.board.api_server().restores(), 1);
}
