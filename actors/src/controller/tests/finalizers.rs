//! Objects that somebody else's finalizer holds.

use krane_domain::backlog::TroubleKind;
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::report::Report;

use super::harness::World;
use crate::testing::{Op, input, unwants, wants};

/// Its pods run on until it goes: whoever is told too early routes to them, or bills nobody for them.
#[tokio::test(start_paused = true)]
async fn what_a_finalizer_holds_is_told_gone_when_it_is_and_not_before() {
    let world = World::start().await;
    let reference = ObjectRef::new(Resource::ReplicaSet, "ns", "d1");
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("made", |world| world.cursor() == 1).await;
    world.cluster.set_pod("ns", "d1", "d1-a", true);
    let is_told = |world: &World| {
        let report = world.control_plane.last_report("d1");
        matches!(report, Some(Report::Instances { instances, .. }) if instances.len() == 1)
    };
    world.until("told", is_told).await;

    world.cluster.hold(&reference);
    world.control_plane.push(unwants(2, "ns", "d1"));
    let is_waiting = |world: &World| {
        world.memory(|memory| {
            let mut troubles = memory.backlog.in_trouble();
            troubles.any(|trouble| trouble.trouble.kind == TroubleKind::Waiting)
        })
    };
    world.until("waits", is_waiting).await;
    world.pass(600).await;
    assert!(is_told(&world), "it is still there");
    let deletes = |op: &&Op| matches!(op, Op::Delete(_));
    assert_eq!(world.cluster.log().iter().filter(deletes).count(), 1);
    let remedy = world.memory(|memory| {
        let trouble = memory.backlog.in_trouble().next();
        trouble.and_then(|trouble| trouble.trouble.remedy)
    });
    assert!(remedy.is_some_and(|remedy| remedy.contains("finalizers")));

    world.cluster.let_go(&reference);
    let is_gone = |world: &World| {
        let report = world.control_plane.last_report("d1");
        matches!(report, Some(Report::Gone { .. }))
    };
    world.until("told gone", is_gone).await;
    assert_eq!(world.cursor(), 2);
}

/// One delete is enough: the answer to it says that the object stays for a while.
#[tokio::test(start_paused = true)]
async fn what_has_to_be_made_anew_and_is_held_is_deleted_once_and_made_when_it_is_gone() {
    let world = World::start().await;
    let reference = ObjectRef::new(Resource::ReplicaSet, "ns", "d1");
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("made", |world| world.cursor() == 1).await;
    let before = world.cluster.object(&reference).expect("made").uid;

    world.cluster.hold(&reference);
    let mut other = input("ns", "d1");
    other.deployment_id = "d_other".into();
    world.control_plane.push(wants(2, other));
    world.pass(60).await;
    let deletes = |op: &&Op| matches!(op, Op::Delete(_));
    assert_eq!(world.cluster.log().iter().filter(deletes).count(), 1);
    assert_eq!(world.cursor(), 1, "it waits");

    world.cluster.let_go(&reference);
    let is_another = |world: &World| {
        let live = world.cluster.object(&reference);
        live.is_some_and(|live| live.uid != before)
    };
    world.until("made anew", is_another).await;
    world.until("applied", |world| world.cursor() == 2).await;
}
