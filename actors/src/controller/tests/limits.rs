//! An API server that takes its time (F32, D49).

use std::collections::BTreeMap;
use std::time::Duration;

use krane_domain::backlog::TroubleKind;
use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_domain::object::Resource;
use krane_ports::WatchEnd;
use tokio::time::timeout;

use super::harness::{Choices, World};
use crate::chance::Chance;
use crate::status::StatusBoard;
use crate::store::Store;
use crate::testing::cluster::Fault;
use crate::testing::{FakeCluster, FakeControlPlane, Office, Op, input, pass, unwants, wants};
use crate::watch;

const MINUTE: Duration = Duration::from_secs(60);

fn name_of(op: &Op) -> &str {
    match op {
        Op::Apply(object)
        | Op::Adopt(object)
        | Op::Delete(object)
        | Op::Metadata(object)
        | Op::Get(object) => &object.name,
    }
}

/// Two ignorable webhooks of 30 s each stand in the way of every write.
#[tokio::test(start_paused = true)]
async fn a_lane_whose_calls_take_a_minute_each_comes_to_its_end() {
    let world = World::start().await;
    world.cluster.set_call_time(MINUTE);
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    // Namespace, policy and workload, once each.
    assert_eq!(world.cluster.writes(), 3);
    world.control_plane.push(unwants(2, "ns", "d1"));
    world.until("gone", |world| world.cursor() == 2).await;
    assert_eq!(world.cluster.writes(), 4);
    let scraped = world.scrape();
    let overruns = "controller_runtime_reconcile_timeouts_total{controller=\"deployments\"} 0";
    assert!(scraped.contains(overruns), "{scraped}");
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_outlasts_its_calls_is_cut_off_and_webhooks_are_named() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.cluster.fault(|_| Some(Fault::Hang));
    world.control_plane.push(unwants(2, "ns", "d1"));
    let is_told = |world: &World| world.memory(|memory| memory.backlog.in_trouble().count() == 1);
    // Its own 30 s, and those of one delete.
    let time = world.until("cut off", is_told).await;
    assert!(
        time >= Duration::from_secs(94) && time < Duration::from_secs(96),
        "{time:?}"
    );
    let trouble = world.memory(|memory| memory.backlog.in_trouble().next());
    let trouble = trouble.expect("it is in trouble").trouble;
    assert_eq!(trouble.kind, TroubleKind::Quarantined);
    assert!(
        trouble
            .to_string()
            .contains("validatingwebhookconfigurations"),
        "{trouble}"
    );
}

#[tokio::test(start_paused = true)]
async fn keys_whose_writes_hang_leave_most_lanes_to_the_others() {
    let world = World::start().await;
    world.cluster.fault(|op| {
        let is_slow = matches!(op, Op::Apply(_)) && name_of(op).starts_with("slow");
        is_slow.then_some(Fault::Late(Duration::from_secs(20)))
    });
    // The newest go first.
    for number in 0..30 {
        let state = wants(100 + number, input("ns", &format!("slow{number}")));
        world.control_plane.push(state);
    }
    let all_tried =
        |world: &World| world.memory(|memory| memory.backlog.in_trouble().count() == 30);
    world.until("all of them failed", all_tried).await;
    world.pass(60).await;
    for number in 0..80 {
        let state = wants(1 + number, input("ns", &format!("quick{number}")));
        world.control_plane.push(state);
    }
    let is_done = |world: &World| {
        (0..80).all(|number| {
            world
                .cluster
                .workload("ns", &format!("quick{number}"))
                .is_some()
        })
    };
    let time = world.until("the others are applied", is_done).await;
    // As long as the lane takes that is the first to end.
    assert!(time < Duration::from_secs(21), "{time:?}");
}

/// D22: another process may write by now.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_term_drops_the_requests_in_flight() {
    let office = Office::of(MINUTE);
    let choices = Choices {
        office: Some(office.clone()),
        ..Choices::default()
    };
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    let world = World::start_with(choices, cluster, control_plane).await;
    let in_flight = |world: &World| world.memory(|memory| memory.backlog.in_flight());
    world.cluster.fault(|_| Some(Fault::Hang));
    world.control_plane.push(wants(1, input("ns", "d1")));
    world
        .until("it writes", |world| in_flight(world) == 1)
        .await;
    let time = world.until("dropped", |world| in_flight(world) == 0).await;
    assert!(time <= MINUTE, "{time:?}");
    assert!(!office.leadership().is_leader(world.board.now()));
    let troubles = world.memory(|memory| memory.backlog.in_trouble().count());
    assert_eq!(troubles, 0, "it did not fail");

    world.cluster.heal();
    world.pass(5).await;
    assert_eq!(world.cluster.workloads(), 0, "a standby writes nothing");
    office.renew();
    let time = world.until("applied", |world| world.cursor() == 1).await;
    assert!(time < Duration::from_secs(5), "{time:?}");
}

/// Asks for the first lists as a controller does that cannot start, for this long. Returns how often
/// each kind was listed.
async fn first_lists(
    cluster: &FakeCluster,
    (store, board): &(Store, StatusBoard),
    seconds: u64,
) -> BTreeMap<Resource, usize> {
    let trying = async {
        while watch::first_lists(store, cluster, board).await.is_err() {
            pass(Duration::from_secs(1)).await;
        }
    };
    let _ = timeout(Duration::from_secs(seconds), trying).await;
    let mut counts = BTreeMap::new();
    for (kind, _) in cluster.looks() {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn store() -> (Store, StatusBoard) {
    let (rules, chance) = (Rules::default(), Chance::new(7));
    let store = Store::new(Controller::Deployments, rules, 1 << 20, chance);
    (store, StatusBoard::new())
}

#[tokio::test(start_paused = true)]
async fn one_list_that_fails_does_not_make_the_other_kinds_list_again() {
    let (cluster, store) = (FakeCluster::default(), store());
    cluster.refuse_lists_of(Some((Resource::Pod, Duration::ZERO)));
    let mut counts = first_lists(&cluster, &store, 120).await;
    assert!(
        counts
            .remove(&Resource::Pod)
            .is_some_and(|count| count > 100)
    );
    assert!(
        !counts.is_empty() && counts.values().all(|count| *count == 1),
        "{counts:?}"
    );
    assert!(!store.0.was_read());
    // What was listed long ago is listed once more.
    let mut counts = first_lists(&cluster, &store, 200).await;
    counts.remove(&Resource::Pod);
    assert!(counts.values().all(|count| *count == 2), "{counts:?}");
    cluster.refuse_lists_of(None);
    first_lists(&cluster, &store, 2).await;
    assert!(store.0.was_read());
}

#[tokio::test(start_paused = true)]
async fn a_first_list_is_not_asked_for_again_before_the_server_wants_it() {
    let (cluster, store) = (FakeCluster::default(), store());
    cluster.refuse_lists_of(Some((Resource::Pod, Duration::from_secs(40))));
    let counts = first_lists(&cluster, &store, 100).await;
    assert_eq!(counts[&Resource::Pod], 3);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_not_asked_for_again_before_the_server_wants_it() {
    let asked_for = Duration::from_secs(40);
    let world = World::start().await;
    let pods = |world: &World| -> Vec<_> {
        let looks = world.cluster.looks().into_iter();
        looks
            .filter(|(kind, _)| *kind == Resource::Pod)
            .map(|(_, at)| at)
            .collect()
    };
    world
        .until("it watches", |world| pods(world).len() == 2)
        .await;
    world
        .cluster
        .refuse_lists_of(Some((Resource::Pod, asked_for)));
    world.cluster.end_watches(&WatchEnd::Expired);
    world.pass(200).await;
    let later: Vec<_> = pods(&world).split_off(2);
    assert!(later.len() >= 4, "{later:?}");
    let pauses = later.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(pauses.clone().all(|pause| pause >= asked_for), "{later:?}");
}
