//! One side goes away and comes back, in ways and for times that real clocks have no patience for.

use std::time::Duration;

use krane_domain::object::{ObjectRef, Resource};
use krane_domain::refusal::RefusalClass;
use krane_domain::report::{InstanceStatus, Report};
use krane_ports::{RpcFailureKind, WatchEnd};

use super::harness::World;
use crate::testing::cluster::Fault;
use crate::testing::{Op, input, unwants, wants};

/// Two workloads, each with a pod that is ready, all of it reported.
async fn settled() -> World {
    let world = World::start().await;
    for (version, name) in [(1, "d1"), (2, "d2")] {
        world.control_plane.push(wants(version, input("ns", name)));
        world
            .until("applied", |world| world.cursor() == version)
            .await;
        world
            .cluster
            .set_pod("ns", name, &format!("{name}-p"), true);
        world
            .until("reported", |world| is_told(world, name, true))
            .await;
    }
    world
}

fn is_told(world: &World, name: &str, is_ready: bool) -> bool {
    let wanted = if is_ready {
        InstanceStatus::Running
    } else {
        InstanceStatus::Pending
    };
    match world.control_plane.last_report(name) {
        Some(Report::Instances { instances, .. }) => {
            instances.len() == 1 && instances[0].status == wanted
        }
        _ => false,
    }
}

fn uid(world: &World, name: &str) -> Option<String> {
    let live = world.cluster.workload("ns", name)?;
    Some(live.uid.to_string())
}

/// EmbarkStudios/quilkin#731, #734 (B05): pauses grew without a cap, and later with every blip of
/// a long life, for no success took them back.
#[tokio::test(start_paused = true)]
async fn after_many_blips_the_next_is_over_as_soon_as_the_first() {
    let world = settled().await;
    for blip in 1..=26 {
        world.cluster.fail_lists(true);
        world
            .cluster
            .end_watches(&WatchEnd::Failed("cut".to_owned()));
        world.control_plane.fail(Some(RpcFailureKind::Transport));
        world.control_plane.cut("unavailable");
        world.pass(2).await;
        world.cluster.fail_lists(false);
        world.control_plane.fail(None);
        let is_seeing = |world: &World| world.memory(|memory| memory.broken_watches.is_empty());
        let is_open = |world: &World| world.memory(|memory| memory.stream.opened_at.is_some());
        let open = world.until("the stream is open", is_open).await;
        assert!(open < Duration::from_millis(5_100), "{blip}: {open:?}");
        // The pauses of the outage itself, and two seconds of silence to believe that it is over.
        let seeing = open + world.until("all watches work", is_seeing).await;
        assert!(seeing < Duration::from_millis(6_100), "{blip}: {seeing:?}");
        let is_ready = blip % 2 == 0;
        world.cluster.set_pod("ns", "d1", "d1-p", is_ready);
        let told = world
            .until("told", |world| is_told(world, "d1", is_ready))
            .await;
        assert!(told < Duration::from_secs(5), "{blip}: {told:?}");
        world.pass(58).await;
    }
}

/// A list that failed waits once, not once for its failure and once more for being early.
#[tokio::test(start_paused = true)]
async fn after_a_long_outage_the_lists_are_there_within_five_seconds() {
    let world = settled().await;
    for outage in 1..=20 {
        world.cluster.fail_lists(true);
        world.cluster.end_watches(&WatchEnd::Expired);
        world.pass(61).await;
        let before = world.cluster.lists();
        world.cluster.fail_lists(false);
        let are_there = |world: &World| world.cluster.lists() >= before + 5;
        let time = world.until("all lists are there", are_there).await;
        assert!(time <= Duration::from_millis(5_050), "{outage}: {time:?}");
        world.pass(30).await;
    }
}

/// kube-rs/kube#1316, kubernetes-client/python#1148, kubernetes-client/javascript#596 (B07): the
/// network drops an idle watch without a word, and its reader waits for ever.
#[tokio::test(start_paused = true)]
async fn a_watch_whose_connection_died_silently_is_replaced_within_ninety_seconds() {
    let world = settled().await;
    world.cluster.cut_watches_silently();
    world.cluster.set_pod("ns", "d1", "d1-p", false);
    let time = world
        .until("told", |world| is_told(world, "d1", false))
        .await;
    assert!(time <= Duration::from_secs(90), "{time:?}");
    world.cluster.set_pod("ns", "d1", "d1-p", true);
    let time = world
        .until("told", |world| is_told(world, "d1", true))
        .await;
    assert!(time < Duration::from_secs(1), "it is replaced: {time:?}");
}

/// kube-rs/kube#219, projectcalico/typha#227 (B01): after a 410 the same version was watched from
/// again, and so on. Even a server that calls every version too old costs a list per pause.
#[tokio::test(start_paused = true)]
async fn versions_that_are_always_too_old_cost_one_list_per_pause() {
    let world = settled().await;
    let before = world.cluster.lists();
    world.cluster.expire_watches(true);
    world.cluster.end_watches(&WatchEnd::Expired);
    world.pass(60).await;
    let lists = (world.cluster.lists() - before) / 5;
    assert!((5..=30).contains(&lists), "{lists} lists of each kind");
    world.cluster.expire_watches(false);
    world.pass(6).await;
    world.cluster.set_pod("ns", "d1", "d1-p", false);
    let time = world
        .until("told", |world| is_told(world, "d1", false))
        .await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

/// unkeyed/unkey 6f45edf7f7, PR #4603 (A23): an ERROR event ended the agent. However a watch ends,
/// the change right after is told.
#[tokio::test(start_paused = true)]
async fn whatever_ends_a_watch_the_next_change_is_told() {
    let world = settled().await;
    let ends = [
        WatchEnd::Expired,
        WatchEnd::Failed("ERROR event 500 InternalError".to_owned()),
        WatchEnd::Closed,
    ];
    for (end, is_ready) in ends.into_iter().zip([false, true, false]) {
        world.cluster.end_watches(&end);
        world.cluster.set_pod("ns", "d1", "d1-p", is_ready);
        let time = world
            .until("told", |world| is_told(world, "d1", is_ready))
            .await;
        assert!(time < Duration::from_secs(6), "{end:?}: {time:?}");
    }
    for (path, cell) in world.board.all() {
        assert_eq!(cell.read().restarts, 0, "{path}");
    }
}

/// rabbitmq/cluster-operator#709 (B11): the operator ended with the API server, and rolled
/// everything when both were back.
#[tokio::test(start_paused = true)]
async fn six_minutes_without_an_api_server_cost_nothing_but_time() {
    let world = settled().await;
    let kept = uid(&world, "d2");
    world
        .cluster
        .fault(|_| Some(Fault::Refuse(RefusalClass::Transient)));
    world.cluster.fail_lists(true);
    world
        .cluster
        .end_watches(&WatchEnd::Failed("refused".to_owned()));
    let mut changed = input("ns", "d1");
    changed.image = "registry.example/app:2".to_owned();
    world.control_plane.push(wants(3, changed));
    world.control_plane.push(wants(4, input("ns", "d3")));
    world.control_plane.push(wants(5, input("ns", "d4")));
    world.pass(360).await;
    let since = world.cluster.log().len();
    world.cluster.heal();
    world.cluster.fail_lists(false);
    let time = world
        .until("all three applied", |world| world.cursor() == 5)
        .await;
    assert!(time <= Duration::from_secs(30), "{time:?}");
    world.pass(120).await;
    let untouched = ObjectRef::new(Resource::ReplicaSet, "ns", "d2");
    let log = world.cluster.log();
    let writes = log[since..].iter().filter(|op| match op {
        Op::Apply(it) | Op::Adopt(it) | Op::Delete(it) => *it == untouched,
        Op::Metadata(_) | Op::Get(_) => false,
    });
    assert_eq!((writes.count(), uid(&world, "d2")), (0, kept));
    for (path, cell) in world.board.all() {
        assert_eq!(cell.read().restarts, 0, "{path}");
    }
}

/// Sieve, stale state, instaclustr/cassandra-operator#404 (C02): a new process reads from an API
/// server that is behind, and acts on what is long gone.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_behind_brings_nothing_back_and_takes_nothing_away() {
    for is_deletion_told in [true, false] {
        let mut world = settled().await;
        let past = world.cluster.now();
        world.control_plane.push(unwants(3, "ns", "d1"));
        world.control_plane.push(wants(4, input("ns", "new")));
        world.until("both", |world| world.cursor() == 4).await;
        world.cluster.remove_pod("d1-p");
        world
            .until("told", |world| {
                matches!(
                    world.control_plane.last_report("d1"),
                    Some(Report::Gone { .. })
                )
            })
            .await;
        let newer = uid(&world, "new");
        let mut rows = vec![wants(2, input("ns", "d2")), wants(4, input("ns", "new"))];
        if is_deletion_told {
            rows.push(unwants(3, "ns", "d1"));
        }
        world.control_plane.restore(rows);
        let since = world.cluster.log().len();
        world.cluster.lag(past);
        world.reboot().await;
        let gone = ObjectRef::new(Resource::ReplicaSet, "ns", "d1");
        if !is_deletion_told {
            let is_shown = |world: &World| world.memory(|it| it.view.get(&gone).is_some());
            world.until("the past is shown", is_shown).await;
        }
        world.pass(30).await;
        world.cluster.catch_up();
        let time = world
            .until("the truth is told", |world| {
                matches!(
                    world.control_plane.last_report("d1"),
                    Some(Report::Gone { .. })
                )
            })
            .await;
        assert!(time < Duration::from_secs(5), "{time:?}");
        world.pass(130).await;
        assert_eq!(uid(&world, "d1"), None);
        assert_eq!(uid(&world, "new"), newer);
        let log = world.cluster.log();
        for op in &log[since..] {
            match op {
                Op::Apply(reference) => assert_ne!(&*reference.name, "d1"),
                Op::Delete(reference) => assert_eq!(&*reference.name, "d1"),
                Op::Adopt(_) | Op::Metadata(_) | Op::Get(_) => {}
            }
        }
    }
}
