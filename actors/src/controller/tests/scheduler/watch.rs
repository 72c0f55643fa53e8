//! What followers are told.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::report::InstanceStatus;
use krane_domain::scheduler::{Call, CallFailureKind, Watched};
use krane_ports::{SchedulerDesk, Watching};

use super::{apply, delete, desk};
use crate::controller::tests::harness::World;
use crate::scheduler::MOST_FOLLOWERS;
use crate::testing::{input, wants};

async fn next(watching: &mut Watching) -> Option<Arc<Watched>> {
    let next = tokio::time::timeout(Duration::from_secs(5), watching.next()).await;
    next.ok().flatten().map(|state| state.expect("goes on"))
}

/// Everything that is told until nothing is for a while.
async fn told(watching: &mut Watching) -> Vec<(String, usize)> {
    let mut told = Vec::new();
    while let Some(state) = next(watching).await {
        told.push(gist(&state));
    }
    told
}

fn gist(state: &Watched) -> (String, usize) {
    let name = state.key().name.to_string();
    match state {
        Watched::Deployment { instances, .. } => (name, instances.len()),
        Watched::Sentinel { available, .. } => (name, *available as usize),
    }
}

fn said(name: &str, number: usize) -> (String, usize) {
    (name.to_owned(), number)
}

#[tokio::test(start_paused = true)]
async fn the_present_state_comes_first_and_then_every_change() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let call = Call::ApplyDeployment {
        input: Box::new(input("ns", "called")),
        readiness_id: Some("ready-7".into()),
    };
    assert_eq!(desk.call(call).await, Ok(()));
    world.control_plane.push(wants(1, input("ns", "wanted")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.cluster.set_pod("ns", "wanted", "p1", true);
    world.pass(1).await;
    let mut watching = desk.watch().await.expect("follows");
    let first = told(&mut watching).await;
    assert_eq!(first, [said("called", 0), said("wanted", 1)]);

    world.cluster.set_pod("ns", "called", "p2", false);
    let state = next(&mut watching).await.expect("told");
    let Watched::Deployment {
        key,
        instances,
        readiness_id,
    } = &*state
    else {
        panic!("{state:?}");
    };
    assert_eq!(key.to_string(), "ns/called");
    assert_eq!(readiness_id.as_deref(), Some("ready-7"));
    let instance = &instances[0];
    assert_eq!(instance.status, InstanceStatus::Pending);
    assert_eq!(&*instance.pod, "p2");
    assert_eq!((instance.cpu_millicores, instance.memory_mib), (100, 64));
    assert_eq!(instance.address, "10-0-0-7.ns.pod.cluster.local:8080");

    world.cluster.set_pod("ns", "called", "p2", true);
    let state = next(&mut watching).await.expect("told");
    let Watched::Deployment { instances, .. } = &*state else {
        panic!("{state:?}");
    };
    assert_eq!(instances[0].status, InstanceStatus::Running);
    assert_eq!(told(&mut watching).await, []);

    assert_eq!(desk.call(delete("called")).await, Ok(()));
    assert_eq!(told(&mut watching).await, [said("called", 0)]);
    // By hand, too; and it is made again.
    let wanted = ObjectRef::new(Resource::ReplicaSet, "ns", "wanted");
    world.cluster.remove(&wanted);
    let after = told(&mut watching).await;
    assert!(
        after.iter().all(|one| *one == said("wanted", 0)),
        "{after:?}"
    );
    assert!(!after.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_reads_nothing_holds_little_and_ends_with_what_is_true() {
    let world = World::start().await;
    let desk = desk(&world).await;
    for name in ["a", "b"] {
        assert_eq!(desk.call(apply(input("ns", name))).await, Ok(()));
    }
    let mut slow = desk.watch().await.expect("follows");
    for round in 0..200 {
        world.cluster.set_pod("ns", "a", "p1", round % 2 == 0);
        let name = format!("passing{round}");
        assert_eq!(desk.call(apply(input("ns", &name))).await, Ok(()));
        assert_eq!(desk.call(delete(&name)).await, Ok(()));
    }
    world.cluster.set_pod("ns", "a", "p1", true);
    world.pass(1).await;
    let known = world.memory(|memory| memory.followers.known(memory.view.controller()).len());
    assert_eq!(known, 2);
    let mut told = told(&mut slow).await;
    told.sort();
    assert_eq!(told, [said("a", 1), said("b", 0)]);
}

#[tokio::test(start_paused = true)]
async fn many_follow_and_all_hear_the_same() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let mut followers = Vec::new();
    for _ in 0..MOST_FOLLOWERS {
        followers.push(desk.watch().await.expect("follows"));
    }
    let refused = desk.watch().await.map(drop).expect_err("too many");
    assert_eq!(refused.kind, CallFailureKind::Unavailable);
    for number in 0..20 {
        let name = format!("d{number:02}");
        assert_eq!(desk.call(apply(input("ns", &name))).await, Ok(()));
    }
    let expected: Vec<_> = (0..20)
        .map(|number| said(&format!("d{number:02}"), 0))
        .collect();
    for follower in &mut followers {
        let mut told = told(follower).await;
        told.sort();
        assert_eq!(told, expected);
    }
    followers.pop();
    assert!(desk.watch().await.is_ok(), "who left makes room");
}

/// What was told of is forgotten with the store: better an end than a gap.
#[tokio::test(start_paused = true)]
async fn a_controller_that_starts_over_ends_its_followers() {
    let mut world = World::start().await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(apply(input("ns", "a"))).await, Ok(()));
    let mut watching = desk.watch().await.expect("follows");
    assert_eq!(told(&mut watching).await, [said("a", 0)]);
    world.reboot().await;
    let last = watching.next().await.expect("a last word");
    assert_eq!(
        last.expect_err("the end").kind,
        CallFailureKind::Unavailable
    );
    assert!(watching.next().await.is_none());
    let desk = super::desk(&world).await;
    let mut again = desk.watch().await.expect("follows");
    assert_eq!(told(&mut again).await, [said("a", 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_reporter_leaves_no_gap() {
    let world = World::start().await;
    let desk = desk(&world).await;
    for name in ["a", "b"] {
        assert_eq!(desk.call(apply(input("ns", name))).await, Ok(()));
    }
    let mut watching = desk.watch().await.expect("follows");
    told(&mut watching).await;
    assert!(world.kill("reporter"));
    world.cluster.set_pod("ns", "a", "p1", true);
    let gone = ObjectRef::new(Resource::ReplicaSet, "ns", "b");
    world.memory(|memory| {
        *memory.backlog = krane_domain::backlog::Backlog::default();
    });
    world.cluster.remove(&gone);
    let mut told = told(&mut watching).await;
    told.sort();
    assert_eq!(told, [said("a", 1), said("b", 0)]);
}
