//! Desired states become objects.

use std::time::Duration;

use krane_domain::ids::ObjectKey;
use krane_domain::kinds::Rules;
use krane_domain::kinds::deployment::DeploymentInput;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_domain::refusal::RefusalClass;
use krane_domain::report::Report;

use super::harness::{Choices, World};
use crate::testing::cluster::Fault;
use crate::testing::{FakeCluster, FakeControlPlane, Op, input, unwants, wants};

fn workload_of(op: &Op) -> Option<&str> {
    match op {
        Op::Apply(reference) if reference.resource == Resource::ReplicaSet => Some(&reference.name),
        Op::Apply(_) | Op::Adopt(_) | Op::Delete(_) | Op::Metadata(_) | Op::Get(_) => None,
    }
}

fn rendered(world: &World, name: &str) -> Rendered {
    world.memory(|memory| {
        let state = memory
            .backlog
            .state(&ObjectKey::new("ns", name))
            .cloned()
            .expect("wanted");
        let Ok(krane_domain::desired::Change::Apply(desired)) = &state.change else {
            panic!("an apply")
        };
        desired.render(&Rules::default(), None)
    })
}

fn field(world: &World, name: &str, pointer: &str) -> Option<serde_json::Value> {
    world
        .cluster
        .workload("ns", name)?
        .value()
        .pointer(pointer)
        .cloned()
}

/// unkeyed/unkey 1ca1128c6a, PR #5309 (A15): everything a pod names exists before it.
#[tokio::test(start_paused = true)]
async fn namespace_and_isolation_exist_before_the_workload_is_written() {
    let world = World::start().await;
    world.cluster.set_call_time(Duration::from_secs(1));
    world.control_plane.push(wants(1, input("ns", "a")));
    world.until("applied", |world| world.cursor() == 1).await;
    let applied: Vec<Resource> = world
        .cluster
        .log()
        .iter()
        .filter_map(|op| match op {
            Op::Apply(reference) => Some(reference.resource),
            Op::Adopt(_) | Op::Delete(_) | Op::Metadata(_) | Op::Get(_) => None,
        })
        .collect();
    let order = [
        Resource::Namespace,
        Resource::CiliumNetworkPolicy,
        Resource::ReplicaSet,
    ];
    assert_eq!(applied, order);
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_everything_in_place_writes_nothing() {
    let mut world = World::start().await;
    for number in 0..50 {
        let namespace = format!("ns{}", number % 5);
        world
            .control_plane
            .push(wants(number + 1, input(&namespace, &format!("d{number}"))));
    }
    world.until("applied", |world| world.cursor() == 50).await;
    let writes = world.cluster.writes();
    assert_eq!(writes, 50 + 5 + 5);
    world.reboot().await;
    world.until("replayed", |world| world.cursor() == 50).await;
    world.pass(120).await;
    assert_eq!(world.cluster.writes(), writes);
}

async fn time_to_apply_100(poison: Option<DeploymentInput>) -> Duration {
    let cluster = FakeCluster::default();
    cluster.fault(|op| match workload_of(op) {
        Some("refused") => Some(Fault::Refuse(RefusalClass::Permanent)),
        Some("hangs") => Some(Fault::Hang),
        Some(_) | None => None,
    });
    let choices = Choices {
        max_lanes: 32,
        ..Choices::default()
    };
    let world = World::start_with(choices, cluster, FakeControlPlane::default()).await;
    world.cluster.set_call_time(Duration::from_millis(20));
    let mut version = 0;
    for number in 0..100 {
        version += 1;
        if let Some(poison) = poison.as_ref().filter(|_| number == 50) {
            world.control_plane.push(wants(version, poison.clone()));
            version += 1;
        }
        let namespace = format!("ns{}", number % 5);
        world
            .control_plane
            .push(wants(version, input(&namespace, &format!("h{number}"))));
    }
    let all = |world: &World| {
        (0..100).all(|n| {
            world
                .cluster
                .workload(&format!("ns{}", n % 5), &format!("h{n}"))
                .is_some()
        })
    };
    let time = world.until("all healthy ones applied", all).await;
    if let Some(poison) = poison {
        // One that hangs is cut off after its own 30 s and the limits of its two calls.
        world.pass(165).await;
        assert_eq!(world.cursor(), 50, "the cursor waits below the poison");
        let trouble: Vec<_> = world.memory(|memory| memory.backlog.in_trouble().collect());
        assert_eq!(trouble.len(), 1, "{trouble:?}");
        assert_eq!(trouble[0].version, 51);
        assert!(
            trouble[0].trouble.problem.contains(&poison.k8s_name),
            "{trouble:?}"
        );
        world
            .control_plane
            .push(unwants(version + 1, "ns3", &poison.k8s_name));
        world
            .until("replaced", |world| world.cursor() == version + 1)
            .await;
    }
    time
}

/// The exact claim: no healthy object waits for a poisoned one, however it fails.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_poisoned_state() {
    let undisturbed = time_to_apply_100(None).await;
    let mut invalid = input("ns3", "invalid");
    invalid.image = String::new();
    for poison in [invalid, input("ns3", "refused")] {
        let name = poison.k8s_name.clone();
        let time = time_to_apply_100(Some(poison)).await;
        assert!(
            time <= undisturbed,
            "{name}: {time:?} instead of {undisturbed:?}"
        );
    }
    // A lane that hangs is one of 32 until its deadline: the others share what is left.
    let time = time_to_apply_100(Some(input("ns3", "hangs"))).await;
    assert!(
        time <= undisturbed + Duration::from_millis(40),
        "{time:?}, {undisturbed:?}"
    );
}

/// unkeyed/unkey bdb79b273c, PR #7098 (A01): a passing failure is not skipped.
#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_retried_and_the_cursor_waits() {
    let world = World::start().await;
    world.cluster.fault(|op| {
        (workload_of(op) == Some("d7")).then_some(Fault::Refuse(RefusalClass::Transient))
    });
    world.control_plane.push(wants(7, input("ns", "d7")));
    world.control_plane.push(wants(8, input("ns", "d8")));
    world
        .until("d8 applied", |world| {
            world.cluster.workload("ns", "d8").is_some()
        })
        .await;
    world.pass(8).await;
    assert_eq!(world.cursor(), 6);
    world.control_plane.cut("unavailable");
    world
        .until("reconnected", |world| {
            world.control_plane.cursors().len() == 2
        })
        .await;
    assert_eq!(world.control_plane.cursors(), [0, 6]);
    world.cluster.heal();
    world
        .until("both applied", |world| world.cursor() == 8)
        .await;
}

/// Level-triggered rule, burst (C15): only the last version matters.
#[tokio::test(start_paused = true)]
async fn a_hundred_versions_of_one_object_cost_few_writes_and_hold_up_nobody() {
    let world = World::start().await;
    world.cluster.set_call_time(Duration::from_millis(300));
    for version in 1..=100 {
        let mut input = input("ns", "d1");
        input.image = format!("registry.example/app:{version}");
        world.control_plane.push(wants(version, input));
    }
    world.control_plane.push(wants(101, input("ns", "d2")));
    let time = world
        .until("d2", |world| world.cluster.workload("ns", "d2").is_some())
        .await;
    assert!(time < Duration::from_secs(3), "{time:?}");
    world.until("all", |world| world.cursor() == 101).await;
    let image = field(&world, "d1", "/spec/template/spec/containers/0/image");
    assert_eq!(image, Some("registry.example/app:100".into()));
    assert!(world.cluster.writes() <= 8, "{}", world.cluster.writes());
}

/// unkeyed/unkey 34e6be4844, PR #4030 (A11): what is gone already is no error.
#[tokio::test(start_paused = true)]
async fn deleting_what_never_existed_succeeds_and_is_reported() {
    let world = World::start().await;
    world.control_plane.push(unwants(3, "ns", "d9"));
    world.control_plane.push(unwants(4, "nowhere", "d8"));
    world.control_plane.push(wants(5, input("ns", "d10")));
    world.until("all", |world| world.cursor() == 5).await;
    let is_gone = |world: &World, name: &str| {
        matches!(
            world.control_plane.last_report(name),
            Some(Report::Gone { .. })
        )
    };
    world
        .until("reported", |world| {
            is_gone(world, "d9") && is_gone(world, "d8")
        })
        .await;
    assert!(world.cluster.workload("ns", "d10").is_some());
}

#[tokio::test(start_paused = true)]
async fn an_older_state_never_replaces_a_newer_one() {
    let world = World::start().await;
    world.control_plane.push(unwants(9, "ns", "d1"));
    world.until("deleted", |world| world.cursor() == 9).await;
    world.control_plane.push(wants(4, input("ns", "d1")));
    world.control_plane.push(wants(10, input("ns", "d2")));
    world
        .until("d2", |world| world.cluster.workload("ns", "d2").is_some())
        .await;
    world.pass(60).await;
    assert!(world.cluster.workload("ns", "d1").is_none());
    assert_eq!(world.memory(|memory| memory.stream.stale), 1);
}

#[tokio::test(start_paused = true)]
async fn drift_is_undone_when_the_watch_shows_it() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.pass(1).await;
    let rendered = rendered(&world, "d1");
    world
        .cluster
        .put(&rendered, |body| body["spec"]["replicas"] = 7.into());
    let time = world
        .until("undone", |world| {
            field(world, "d1", "/spec/replicas") == Some(1.into())
        })
        .await;
    assert!(time < Duration::from_millis(100), "{time:?}");
    world.cluster.remove(&rendered.reference);
    world
        .until("made again", |world| {
            world.cluster.workload("ns", "d1").is_some()
        })
        .await;
}

/// To a watch by label it looks like a deletion; one GET tells them apart.
#[tokio::test(start_paused = true)]
async fn our_label_taken_from_an_object_of_ours_is_put_back() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    let uid = world.cluster.workload("ns", "d1").expect("there").uid;
    let rendered = rendered(&world, "d1");
    world.cluster.put(&rendered, |body| {
        body["metadata"]["labels"] = serde_json::json!({});
    });
    let is_ours = |world: &World| {
        world
            .cluster
            .workload("ns", "d1")
            .is_some_and(|live| live.is_ours())
    };
    world.until("ours again", is_ours).await;
    assert_eq!(
        world.cluster.workload("ns", "d1").map(|live| live.uid),
        Some(uid)
    );
    let known = world.memory(|memory| memory.view.workload(&ObjectKey::new("ns", "d1")).is_some());
    assert!(known, "the view has it back");
}

/// The first attempt used to cost krane the memory that the object was its own.
#[tokio::test(start_paused = true)]
async fn our_label_is_put_back_though_the_first_attempt_fails() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    let rendered = rendered(&world, "d1");
    let mut refusals = 1;
    world.cluster.fault(move |op| {
        let is_meant = workload_of(op).is_some() && refusals > 0;
        refusals -= usize::from(is_meant);
        is_meant.then_some(Fault::Refuse(RefusalClass::Transient))
    });
    world.cluster.put(&rendered, |body| {
        body["metadata"]["labels"] = serde_json::json!({});
    });
    let is_ours = |world: &World| {
        let live = world.cluster.workload("ns", "d1");
        live.is_some_and(|live| live.is_ours())
    };
    world.until("ours again", is_ours).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_keeps_undoing_repairs_is_met_with_patience_not_with_a_fight() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    let rendered = rendered(&world, "d1");
    let before = world.cluster.writes();
    for _ in 0..600 {
        world
            .cluster
            .put(&rendered, |body| body["spec"]["replicas"] = 7.into());
        world.pass(1).await;
    }
    let repairs = world.cluster.writes() - before;
    assert!(
        (6..40).contains(&repairs),
        "{repairs} repairs in ten minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_crd_workloads_wait_and_go_on_soon_after_it_appears() {
    let cluster = FakeCluster::default();
    cluster.set_missing(Resource::CiliumNetworkPolicy, true);
    let world = World::start_with(Choices::default(), cluster, FakeControlPlane::default()).await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.pass(300).await;
    assert!(
        world.cluster.workload("ns", "d1").is_none(),
        "never unisolated"
    );
    world
        .cluster
        .set_missing(Resource::CiliumNetworkPolicy, false);
    let time = world.until("applied", |world| world.cursor() == 1).await;
    assert!(time <= Duration::from_secs(65), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn without_the_crd_workloads_run_when_isolation_is_not_required() {
    let cluster = FakeCluster::default();
    cluster.set_missing(Resource::CiliumNetworkPolicy, true);
    let rules = Rules {
        is_cilium_required: false,
        ..Rules::default()
    };
    let choices = Choices {
        rules,
        ..Choices::default()
    };
    let world = World::start_with(choices, cluster, FakeControlPlane::default()).await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_our_label_is_left_alone_and_named() {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "other")));
    world.until("applied", |world| world.cursor() == 1).await;
    let foreign = Rendered::new(
        ObjectRef::new(Resource::ReplicaSet, "ns", "d1"),
        serde_json::json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": { "name": "d1", "namespace": "ns" },
            "spec": { "template": { "spec": { "containers": [] } } },
        }),
    );
    world.cluster.put(&foreign, |_| {});
    world.control_plane.push(wants(2, input("ns", "d1")));
    let in_trouble =
        |world: &World| world.memory(|memory| memory.backlog.in_trouble().count() == 1);
    world.until("in trouble", in_trouble).await;
    world.pass(600).await;
    let trouble = world
        .memory(|memory| memory.backlog.in_trouble().next())
        .expect("still");
    let reason = trouble.trouble.problem;
    assert!(
        reason.contains("managed-by") && reason.contains("ns/d1"),
        "{reason}"
    );
    assert_eq!(
        world
            .cluster
            .workload("ns", "d1")
            .map(|live| live.is_ours()),
        Some(false)
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_made_by_others_is_used_as_it_is() {
    let world = World::start().await;
    let foreign = Rendered::new(
        ObjectRef::new(Resource::Namespace, "", "ns"),
        serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "ns" },
        }),
    );
    world.cluster.put(&foreign, |_| {});
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    assert!(
        !world
            .cluster
            .object(&foreign.reference)
            .expect("there")
            .is_ours()
    );
}

/// Anvil, lost reply (C17): the write had its effect.
#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_was_lost_is_recognised_as_done() {
    let world = World::start().await;
    let mut lost = std::collections::BTreeSet::new();
    world.cluster.fault(move |op| match op {
        Op::Apply(_) | Op::Adopt(_) | Op::Delete(_) => {
            lost.insert(format!("{op:?}")).then_some(Fault::LoseAnswer)
        }
        Op::Metadata(_) | Op::Get(_) => None,
    });
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    assert_eq!(world.cluster.workloads(), 1);
    world.control_plane.push(unwants(2, "ns", "d1"));
    world.until("deleted", |world| world.cursor() == 2).await;
    assert_eq!(world.cluster.workloads(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_backlog_stops_the_reading_and_nothing_else() {
    let choices = Choices {
        max_backlog: 1_000,
        ..Choices::default()
    };
    let world =
        World::start_with(choices, FakeCluster::default(), FakeControlPlane::default()).await;
    world.cluster.set_call_time(Duration::from_secs(1));
    for version in 1..=200 {
        world
            .control_plane
            .push(wants(version, input("ns", &format!("d{version}"))));
    }
    let mut most = 0;
    for _ in 0..20 {
        world.pass(1).await;
        most = most.max(world.memory(|memory| memory.backlog.bytes()));
    }
    // What is in the mailbox when the limit is met still gets in.
    assert!(most <= 1_000 + 65 * 100, "{most}");
    world
        .until("all applied", |world| world.cursor() == 200)
        .await;
    assert_eq!(world.memory(|memory| memory.backlog.bytes()), 0);
}
