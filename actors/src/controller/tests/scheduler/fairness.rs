//! Much is called for at once, or much is wanted by the control plane: neither starves the other.

use std::time::Duration;

use krane_domain::refusal::RefusalClass;
use krane_domain::scheduler::{Call, CallFailureKind};
use krane_ports::SchedulerDesk;
use tokio::task::JoinSet;

use super::{apply, desk, is_about, kind};
use crate::controller::tests::harness::World;
use crate::scheduler::Desk;
use crate::testing::cluster::Fault;
use crate::testing::{input, wants};

const CALL_TIME: Duration = Duration::from_millis(100);

/// So many callers, each calling for one thing after the other in namespaces of their own.
fn flood(desk: &Desk, callers: usize) -> JoinSet<()> {
    let mut flood = JoinSet::new();
    for caller in 0..callers {
        let desk = desk.clone();
        flood.spawn(async move {
            for round in 0.. {
                let namespace = format!("a{caller}-{round}");
                let _ = desk.call(apply(input(&namespace, "a"))).await;
            }
        });
    }
    flood
}

async fn time_of_a_state(world: &World, version: u64) -> Duration {
    let name = format!("live{version}");
    world
        .control_plane
        .push(wants(version, input(&format!("live-{version}"), &name)));
    let namespace = format!("live-{version}");
    world
        .until("applied", |world| {
            world.cluster.workload(&namespace, &name).is_some()
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_calls_delays_what_the_control_plane_wants_by_a_factor_of_two() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(CALL_TIME);
    let alone = time_of_a_state(&world, 1).await;
    let _flood = flood(&desk, 250);
    world.pass(5).await;
    for version in 2..=6 {
        let time = time_of_a_state(&world, version).await;
        assert!(time <= alone * 2, "{time:?}, alone {alone:?}");
        world.pass(11).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_done_in_the_order_in_which_they_came() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(CALL_TIME);
    let _flood = flood(&desk, 100);
    world.pass(3).await;
    for round in 0..4 {
        let began = world.board.now();
        let answer = desk.call(apply(input("zz", &format!("z{round}")))).await;
        let time = world.board.now() - began;
        assert_eq!(answer, Ok(()), "after {time:?}");
        assert!(time < Duration::from_secs(12), "{time:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_states_times_no_call_out() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(CALL_TIME);
    let began = world.board.now();
    assert_eq!(desk.call(apply(input("alone", "a"))).await, Ok(()));
    let alone = world.board.now() - began;
    for version in 1..=5_000 {
        let namespace = format!("ns{version}");
        world
            .control_plane
            .push(wants(version, input(&namespace, "a")));
    }
    world.pass(3).await;
    for round in 0..4 {
        let began = world.board.now();
        let answer = desk.call(apply(input("zz", &format!("z{round}")))).await;
        assert_eq!(answer, Ok(()));
        let time = world.board.now() - began;
        assert!(time <= alone * 2, "{time:?}, alone {alone:?}");
        world.pass(11).await;
    }
    assert!(world.memory(|memory| memory.backlog.ready()) > 100);
}

/// Whoever hangs up at once leaves something to be done, and nobody who waits for it.
#[tokio::test(start_paused = true)]
async fn calls_whose_callers_left_hold_up_nobody() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(CALL_TIME);
    let alone = time_of_a_state(&world, 1).await;
    let mut callers = JoinSet::new();
    for number in 0..1_000 {
        let desk = desk.clone();
        callers.spawn(async move {
            let call = desk.call(apply(input(&format!("a{number}"), "a")));
            let _ = tokio::time::timeout(Duration::from_millis(50), call).await;
        });
        if number % 100 == 0 {
            crate::testing::pass(CALL_TIME).await;
        }
    }
    while callers.join_next().await.is_some() {}
    let time = time_of_a_state(&world, 2).await;
    assert!(time <= alone * 2, "{time:?}, alone {alone:?}");
    let began = world.board.now();
    assert_eq!(desk.call(apply(input("zz", "z"))).await, Ok(()));
    assert!(world.board.now() - began < Duration::from_secs(3));
    world
        .until("all is done", |world| world.cluster.workloads() >= 1_000)
        .await;
}

/// A call that was refused is retried like anything else.
#[tokio::test(start_paused = true)]
async fn a_call_that_failed_is_preferred_no_more() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(CALL_TIME);
    world
        .cluster
        .fault(|op| is_about(op, "bad").then_some(Fault::Refuse(RefusalClass::Transient)));
    let bad = (0..200).map(|number| desk.call(apply(input(&format!("b{number}"), "bad"))));
    for answer in futures::future::join_all(bad).await {
        assert_eq!(kind(answer), Some(CallFailureKind::Unavailable));
    }
    // Its retries alone would keep all lanes busy.
    world.pass(20).await;
    for round in 0..5 {
        let began = world.board.now();
        let name = format!("z{round}");
        assert_eq!(desk.call(apply(input("zz", &name))).await, Ok(()));
        assert_eq!(desk.call(delete_in("zz", &name)).await, Ok(()));
        let time = world.board.now() - began;
        assert!(time < Duration::from_secs(3), "{time:?}");
    }
}

fn delete_in(namespace: &str, name: &str) -> Call {
    Call::DeleteDeployment {
        namespace: namespace.into(),
        name: name.into(),
    }
}
