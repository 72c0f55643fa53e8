//! What an earlier krane rendered otherwise (D44).

use std::sync::Arc;
use std::time::Duration;

use krane_domain::desired::Change;
use krane_domain::kinds::deployment::DeploymentInput;
use krane_domain::kinds::{Desired, Rules, render_shared};
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_domain::refusal::RefusalClass;
use serde_json::{Value, json};

use super::harness::{Choices, World};
use super::kinds::{KINDS, Kind};
use crate::testing::cluster::Fault;
use crate::testing::{FakeCluster, FakeControlPlane, Op, input, wants};

mod rolls;

/// So many workloads, as an earlier krane left them, in a cluster of slow answers.
async fn left_behind(count: usize, may_upgrade: bool) -> World {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    for (index, version) in (0..count).zip(1..) {
        let state = wants(version, input("ns", &format!("d{index}")));
        let Ok(Change::Apply(desired)) = &state.change else {
            panic!("an apply")
        };
        let rendered = desired.render(&Rules::default(), None);
        cluster.put(&rendered, |body| {
            body["metadata"]["annotations"]["krane.unkey.com/renderer"] = json!("0");
            body["spec"]["minReadySeconds"] = json!(1);
        });
        control_plane.push(state);
    }
    cluster.set_call_time(Duration::from_millis(100));
    let choices = Choices {
        may_upgrade,
        ..Choices::default()
    };
    World::start_with(choices, cluster, control_plane).await
}

fn seconds(world: &World, name: &str) -> Option<Value> {
    let live = world.cluster.workload("ns", name)?.value();
    live.pointer("/spec/minReadySeconds").cloned()
}

fn rewritten(world: &World) -> usize {
    let log = world.cluster.log();
    log.iter()
        .filter(|op| matches!(op, Op::Apply(object) if object.resource == Resource::ReplicaSet))
        .count()
}

/// A new version must not take all lanes; and what it has to write is not done before it is.
#[tokio::test(start_paused = true)]
async fn what_only_looks_older_is_written_in_a_quarter_of_the_lanes_before_the_cursor_passes() {
    for may_upgrade in [true, false] {
        let world = left_behind(20, may_upgrade).await;
        // The namespace is not there yet, and is written first.
        world.until("begun", |world| rewritten(world) > 2).await;
        assert!(world.cursor() < 20);
        assert!(world.to_upgrade() > 10, "they are counted");
        world
            .until("all applied", |world| world.cursor() == 20)
            .await;
        assert_eq!(rewritten(&world), 20, "once each");
        assert_eq!(world.cluster.most_calls(), 2, "of 8 lanes");
        assert_eq!(seconds(&world, "d7"), Some(json!(30)));
        assert_eq!(world.to_upgrade(), 0);
        crate::testing::pass(Duration::from_secs(30)).await;
        assert_eq!(rewritten(&world), 20);
    }
}

/// It looks older, too, for it only adds fields; but it came when everything had been replayed.
#[tokio::test(start_paused = true)]
async fn a_live_change_overtakes_what_only_looks_older() {
    let world = left_behind(400, true).await;
    world.pass(11).await;
    assert!(rewritten(&world) < 300);
    let probed = DeploymentInput {
        command: vec!["serve".to_owned()],
        ..input("ns", "d399")
    };
    world.control_plane.push(wants(401, probed));
    let is_served = |world: &World| {
        let live = world.cluster.workload("ns", "d399").map(|it| it.value());
        live.is_some_and(|live| {
            live.pointer("/spec/template/spec/containers/0/command")
                .is_some()
        })
    };
    let took = world.until("written", is_served).await;
    assert!(took <= Duration::from_millis(300), "{took:?}");
    let sixth = input("ns", "late");
    world.control_plane.push(wants(402, sixth));
    let is_there = |world: &World| world.cluster.workload("ns", "late").is_some();
    let took = world.until("made", is_there).await;
    assert!(took <= Duration::from_millis(500), "{took:?}");
    assert!(rewritten(&world) < 350, "the others wait");
    world
        .until("all applied", |world| world.cursor() == 402)
        .await;
}

fn probe(world: &World, name: &str) -> Option<Value> {
    let live = world.cluster.workload("ns", name)?.value();
    let probe = live.pointer("/spec/template/spec/containers/0/livenessProbe");
    probe.cloned()
}

/// (F4) Whether a field is there says nothing of who wants it: a state is applied when all of it
/// is written, whatever `safety.upgrades` says.
#[tokio::test(start_paused = true)]
async fn a_state_that_adds_or_removes_a_field_of_an_older_object_is_written_before_it_counts() {
    for may_upgrade in [true, false] {
        let world = left_behind(2, may_upgrade).await;
        world.until("in place", |world| world.cursor() == 2).await;
        let probed = DeploymentInput {
            healthcheck: Some(br#"{"method":"GET","path":"/up"}"#.to_vec()),
            command: vec!["serve".to_owned()],
            ..input("ns", "d1")
        };
        world.control_plane.push(wants(3, probed));
        world.until("passed", |world| world.cursor() == 3).await;
        assert!(probe(&world, "d1").is_some(), "{may_upgrade}");
        world.control_plane.push(wants(4, input("ns", "d1")));
        world.until("passed", |world| world.cursor() == 4).await;
        assert_eq!(probe(&world, "d1"), None, "{may_upgrade}");
    }
}

/// As an earlier krane rendered it, which knew one more label.
fn make_older(cluster: &FakeCluster, rendered: &Rendered) {
    cluster.put(rendered, |body| {
        body["metadata"]["annotations"]["krane.unkey.com/renderer"] = json!("0");
        body["metadata"]["labels"]["unkey.com/legacy"] = json!("x");
    });
}

fn older_objects(cluster: &FakeCluster) -> usize {
    let objects = cluster.uids().into_keys();
    let is_older = |object: &ObjectRef| {
        let live = cluster.object(object);
        live.is_some_and(|live| live.label("unkey.com/legacy").is_some())
    };
    objects.filter(is_older).count()
}

fn desired(kind: &Kind, number: u64) -> Desired {
    let Ok(Change::Apply(desired)) = kind.wants(1, number, 1).change else {
        panic!("an apply")
    };
    desired
}

/// Everything of one object, what it shares with others included.
fn leave_behind(cluster: &FakeCluster, kind: &Kind, number: u64) {
    let (rules, desired) = (Rules::default(), desired(kind, number));
    for shared in desired.needs(&rules) {
        let rendered = render_shared(&shared, &[desired.member()], &rules);
        make_older(cluster, &rendered.expect("somebody needs it"));
    }
    make_older(cluster, &desired.render(&rules, None));
    let live = cluster.object(&kind.reference(number));
    for dependant in desired.dependants(&rules, &live.expect("it was put")) {
        make_older(cluster, &dependant);
    }
}

/// (F4) However many objects a state stands for: it counts as applied when all of them are written.
#[tokio::test(start_paused = true)]
async fn of_every_kind_a_state_is_applied_when_none_of_its_objects_looks_older() {
    for kind in &KINDS {
        let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
        for number in 1..=12 {
            leave_behind(&cluster, kind, number);
            control_plane.push(kind.wants(number, number, 1));
        }
        let before = older_objects(&cluster);
        assert!(before > 12, "{}", kind.name());
        cluster.set_call_time(Duration::from_millis(20));
        let choices = Choices {
            controller: kind.controller,
            max_lanes: 4,
            ..Choices::default()
        };
        let world = World::start_with(choices, cluster, control_plane).await;
        world
            .until("applied", |world| {
                let (left, cursor) = (older_objects(&world.cluster), world.cursor());
                assert!(left == 0 || cursor < 12, "{}: {left}", kind.name());
                cursor == 12
            })
            .await;
        assert_eq!(world.cluster.most_calls(), 1, "{}", kind.name());
        assert_eq!(world.cluster.writes(), before, "{}: once each", kind.name());
    }
}

/// Nothing of the numbers of renderers is a reason to write.
#[tokio::test(start_paused = true)]
async fn a_restart_with_everything_in_place_writes_nothing() {
    for kind in &KINDS {
        let mut world = kind.in_place(6).await;
        let before = world.cluster.writes();
        world.reboot().await;
        world.until("read again", |world| world.cursor() == 6).await;
        world.pass(65).await;
        assert_eq!(world.cluster.writes(), before, "{}", kind.name());
    }
}

/// (F4) Others may refuse what only looks older; a live change does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_live_change_is_written_though_what_it_shares_only_looks_older_and_is_refused() {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    let rules = Rules::default();
    let state = wants(1, input("ns", "d1"));
    let Ok(Change::Apply(desired)) = &state.change else {
        panic!("an apply")
    };
    for shared in desired.needs(&rules) {
        let rendered = render_shared(&shared, &[desired.member()], &rules);
        make_older(&cluster, &rendered.expect("d1 needs it"));
    }
    cluster.put(&desired.render(&rules, None), |_| ());
    cluster.fault(|op| {
        let is_shared = matches!(op, Op::Apply(object) if object.resource != Resource::ReplicaSet);
        is_shared.then_some(Fault::Refuse(RefusalClass::Configuration))
    });
    control_plane.push(state);
    let world = World::start_with(Choices::default(), cluster, control_plane).await;
    world.pass(11).await;
    let changed = DeploymentInput {
        command: vec!["serve".to_owned()],
        ..input("ns", "d1")
    };
    world.control_plane.push(wants(2, changed));
    let is_served = |world: &World| {
        let live = world.cluster.workload("ns", "d1").map(|it| it.value());
        live.is_some_and(|live| {
            live.pointer("/spec/template/spec/containers/0/command")
                .is_some()
        })
    };
    let took = world.until("written", is_served).await;
    assert!(took <= Duration::from_secs(2), "{took:?}");
    assert!(world.cursor() < 2, "not all of the state is written");
    world.cluster.heal();
    world.until("applied", |world| world.cursor() == 2).await;
    assert_eq!(older_objects(&world.cluster), 0);
}
