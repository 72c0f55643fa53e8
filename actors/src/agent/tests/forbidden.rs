//! A kind that krane may not list keeps nobody else from working (F31, D38b).

use std::time::Duration;

use krane_domain::ids::Controller;
use krane_domain::object::Resource;
use krane_supervision::root::Exit;
use krane_supervision::status::Activity;

use super::{agent, servers, until};
use crate::status::StatusBoard;
use crate::store::Store;
use crate::testing::{FakeCluster, FakeControlPlane, input, wants};

#[tokio::test(start_paused = true)]
async fn a_controller_whose_primary_kind_is_forbidden_does_not_start_and_the_others_do() {
    for (forbidden, stays_down) in [
        (Resource::Deployment, Controller::Sentinels),
        (Resource::CiliumNetworkPolicy, Controller::Cilium),
    ] {
        let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
        cluster.forbid(forbidden, true);
        control_plane.push(wants(1, input("ns", "d1")));
        let board = StatusBoard::new();
        let agent = agent(&cluster, &control_plane, &board);
        let stores = agent.stores();
        let root = agent.start(servers()).await.expect("starts");
        let is_started = |store: &Store| store.inside(|memory| *memory.is_listed);
        until("all others started, and nobody waits for it", || {
            let mut stores = stores.iter();
            stores.all(|store| {
                let is_down = store.controller() == stays_down;
                is_started(store) != is_down && store.was_read()
            })
        })
        .await;
        crate::testing::pass(Duration::from_secs(1_200)).await;
        let path = format!("root/{stays_down}");
        let controller = board.get(&path).expect("declared");
        assert!(
            !matches!(controller.activity, Activity::Parked { .. }),
            "{controller:?}"
        );
        let is_applied = cluster.workload("ns", "d1").is_some();
        assert_eq!(is_applied, forbidden == Resource::Deployment);
        cluster.forbid(forbidden, false);
        until("it starts", || stores.iter().all(|store| is_started(store))).await;
        until("applied", || cluster.workload("ns", "d1").is_some()).await;
        assert_eq!(root.stop().await, Exit::Stopped);
    }
}

/// No answer is no refusal: whether the kind is there is not known, and somebody will answer.
#[tokio::test(start_paused = true)]
async fn a_list_without_an_answer_is_waited_for() {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    cluster.fail_lists(true);
    let board = StatusBoard::new();
    let agent = agent(&cluster, &control_plane, &board);
    let stores = agent.stores();
    let root = agent.start(servers()).await.expect("starts");
    crate::testing::pass(Duration::from_secs(120)).await;
    assert!(!stores.iter().any(|store| store.was_read()));
    cluster.fail_lists(false);
    until("read", || stores.iter().all(|store| store.was_read())).await;
    assert_eq!(root.stop().await, Exit::Stopped);
}
