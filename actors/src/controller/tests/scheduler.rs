//! Calls of the scheduler beside the states of the control plane (D32).

use std::sync::Arc;
use std::time::Duration;

use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::deployment::DeploymentInput;
use krane_domain::object::{ObjectRef, Rendered, Resource};
use krane_domain::scheduler::{Call, CallFailure, CallFailureKind};
use krane_ports::SchedulerDesk;
use serde_json::json;

use super::harness::World;
use crate::lease::Leadership;
use crate::scheduler::Desk;
use crate::testing::cluster::Fault;
use crate::testing::{Op, input, sentinel_input};

mod beside;
mod fairness;
mod interleavings;
mod restart;
mod tenants;
mod watch;

/// The desk of a controller that is up.
async fn desk(world: &World) -> Desk {
    let path: Arc<str> = "root/reconciler".into();
    world
        .until("up", |world| {
            let reconciler = world.board.cell(&path, None).occupant();
            reconciler.is_some() && world.memory(|memory| *memory.is_listed)
        })
        .await;
    Desk::new(
        [world.workers.front()],
        Leadership::default(),
        world.board.clone(),
    )
}

fn apply(input: DeploymentInput) -> Call {
    Call::ApplyDeployment {
        input: Box::new(input),
        readiness_id: None,
    }
}

fn delete(name: &str) -> Call {
    Call::DeleteDeployment {
        namespace: "ns".into(),
        name: name.into(),
    }
}

fn with_image(name: &str, image: &str) -> DeploymentInput {
    DeploymentInput {
        image: image.into(),
        ..input("ns", name)
    }
}

fn image(world: &World, name: &str) -> Option<String> {
    let live = world.cluster.workload("ns", name)?.value();
    let image = live.pointer("/spec/template/spec/containers/0/image")?;
    image.as_str().map(str::to_owned)
}

fn mark(world: &World, name: &str) -> Option<String> {
    let live = world.cluster.workload("ns", name)?;
    live.label("krane.unkey.com/desired-by").map(str::to_owned)
}

fn kind(result: Result<(), CallFailure>) -> Option<CallFailureKind> {
    result.err().map(|failure| failure.kind)
}

/// What was called for, to be put into the cluster with an edit.
fn rendered(world: &World, name: &str) -> Rendered {
    let state = world.memory(|memory| memory.backlog.state(&ObjectKey::new("ns", name)).cloned());
    match state.map(|state| state.change.clone()) {
        Some(Ok(krane_domain::desired::Change::Apply(desired))) => {
            desired.render(world.workers.store().rules(), None)
        }
        other => panic!("{other:?}"),
    }
}

fn is_about(op: &Op, name: &str) -> bool {
    matches!(op, Op::Apply(reference)
        if reference.resource == Resource::ReplicaSet && *reference.name == *name)
}

#[tokio::test(start_paused = true)]
async fn a_call_is_written_once_with_everything_its_pods_name() {
    let world = World::start().await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(apply(input("ns", "a"))).await, Ok(()));
    assert_eq!(world.cluster.writes(), 3, "namespace, policy, workload");
    assert_eq!(mark(&world, "a").as_deref(), Some("scheduler"));
    assert_eq!(desk.call(apply(input("ns", "a"))).await, Ok(()));
    world.pass(200).await;
    assert_eq!(world.cluster.writes(), 3);
    let (cursor, unapplied) =
        world.memory(|memory| (memory.backlog.cursor(), memory.backlog.unapplied()));
    assert_eq!((cursor, unapplied), (0, 0));
    assert_eq!(world.control_plane.reports(), []);
    assert_eq!(world.control_plane.questions(), 0);
}

#[tokio::test(start_paused = true)]
async fn drift_of_what_was_called_for_is_repaired() {
    let world = World::start().await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(apply(with_image("a", "app:1"))).await, Ok(()));
    let rendered = rendered(&world, "a");
    world.cluster.put(&rendered, |body| {
        body["spec"]["template"]["spec"]["containers"][0]["image"] = json!("evil:1");
    });
    let is_repaired = |world: &World| image(world, "a").as_deref() == Some("app:1");
    world.until("repaired", is_repaired).await;
    // Also when somebody takes the mark away: the store knows whose it is.
    world.cluster.put(&rendered, |body| {
        let labels = body["metadata"]["labels"].as_object_mut().expect("labels");
        labels.remove("krane.unkey.com/desired-by");
    });
    let is_marked = |world: &World| mark(world, "a").is_some();
    world.until("marked again", is_marked).await;
    world.pass(200).await;
    assert_eq!(world.control_plane.reports(), []);
    assert_eq!(world.control_plane.questions(), 0);
}

#[tokio::test(start_paused = true)]
async fn deleting_is_done_once_and_what_is_not_there_is_deleted_already() {
    let world = World::start().await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(delete("a")).await, Ok(()));
    assert_eq!(world.cluster.log(), []);
    desk.call(apply(input("ns", "a"))).await.expect("applied");
    for _ in 0..2 {
        assert_eq!(desk.call(delete("a")).await, Ok(()));
        assert_eq!(world.cluster.workload("ns", "a"), None);
    }
    assert_eq!(world.cluster.writes(), 4);
    assert_eq!(desk.call(apply(input("ns", "a"))).await, Ok(()));
    assert!(world.cluster.workload("ns", "a").is_some());
    world.pass(100).await;
    assert_eq!(world.control_plane.reports(), []);
}

/// A call that is refused harms no other one, and a better one replaces it.
#[tokio::test(start_paused = true)]
async fn a_poisoned_call_is_answered_and_holds_up_nobody() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let mut invalid = input("ns", "bad");
    invalid.image.clear();
    let failure = desk.call(apply(invalid)).await.expect_err("invalid");
    assert_eq!(failure.kind, CallFailureKind::InvalidArgument);
    assert!(failure.message.starts_with("image: "), "{failure}");
    assert_eq!(world.cluster.log(), []);

    for (class, expected) in [
        (
            krane_domain::refusal::RefusalClass::Permanent,
            CallFailureKind::InvalidArgument,
        ),
        (
            krane_domain::refusal::RefusalClass::Configuration,
            CallFailureKind::FailedPrecondition,
        ),
        (
            krane_domain::refusal::RefusalClass::Transient,
            CallFailureKind::Unavailable,
        ),
    ] {
        world
            .cluster
            .fault(move |op| is_about(op, "bad").then_some(Fault::Refuse(class)));
        let answers = tokio::join!(
            desk.call(apply(input("ns", "bad"))),
            desk.call(apply(with_image("good", class.name()))),
        );
        assert_eq!(kind(answers.0), Some(expected), "{class:?}");
        assert_eq!(answers.1, Ok(()), "{class:?}");
        let trouble = world.memory(|memory| memory.backlog.in_trouble().count());
        assert_eq!(trouble, 1, "{class:?}");
    }
    world.cluster.heal();
    assert_eq!(desk.call(apply(input("ns", "bad"))).await, Ok(()));
    let trouble = world.memory(|memory| memory.backlog.in_trouble().count());
    assert_eq!(trouble, 0);
}

#[tokio::test(start_paused = true)]
async fn what_shared_objects_are_refused_with_is_the_answer_too() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.fault(|op| {
        let is_namespace =
            matches!(op, Op::Apply(reference) if reference.resource == Resource::Namespace);
        is_namespace.then_some(Fault::Refuse(
            krane_domain::refusal::RefusalClass::Configuration,
        ))
    });
    let answer = desk.call(apply(input("ns", "a"))).await;
    assert_eq!(kind(answer), Some(CallFailureKind::FailedPrecondition));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_done_in_time_is_still_wanted() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world
        .cluster
        .set_missing(Resource::CiliumNetworkPolicy, true);
    let began = world.board.now();
    let failure = desk.call(apply(input("ns", "a"))).await.expect_err("late");
    assert_eq!(failure.kind, CallFailureKind::DeadlineExceeded);
    assert!(failure.message.contains("CRD"), "{failure}");
    assert_eq!(world.board.now() - began, Duration::from_secs(30));
    world
        .cluster
        .set_missing(Resource::CiliumNetworkPolicy, false);
    world
        .until("applied", |world| mark(world, "a").is_some())
        .await;
}

#[tokio::test(start_paused = true)]
async fn of_two_calls_for_one_object_the_later_counts() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(Duration::from_secs(1));
    let (first, second) = tokio::join!(
        desk.call(apply(with_image("a", "app:1"))),
        desk.call(apply(with_image("a", "app:2"))),
    );
    assert_eq!(kind(first), Some(CallFailureKind::Aborted));
    assert_eq!(second, Ok(()));
    assert_eq!(image(&world, "a").as_deref(), Some("app:2"));
}

/// A reconciler that dies with a call in its hands.
#[tokio::test(start_paused = true)]
async fn a_call_outlives_the_reconciler_or_is_answered() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(Duration::from_secs(1));
    let kill = async {
        crate::testing::pass(Duration::from_millis(1500)).await;
        assert!(world.kill("reconciler"));
    };
    let (answer, ()) = tokio::join!(desk.call(apply(input("ns", "a"))), kill);
    assert_eq!(answer, Ok(()));
    assert!(mark(&world, "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn too_many_calls_at_once_are_not_taken() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(Duration::from_millis(200));
    let calls = (0..300).map(|number| desk.call(apply(input("ns", &format!("d{number}")))));
    let answers = futures::future::join_all(calls).await;
    let of = |expected: Option<CallFailureKind>| {
        let answers = answers.iter().cloned();
        answers
            .filter(|answer| kind(answer.clone()) == expected)
            .count()
    };
    assert_eq!(of(Some(CallFailureKind::Unavailable)), 44);
    assert_eq!(of(None), 256);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_taken_before_the_cluster_is_known_and_while_the_controller_is_down() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.workers.reset()();
    for call in [apply(input("ns", "a")), delete("a")] {
        let answer = desk.call(call).await;
        assert_eq!(kind(answer), Some(CallFailureKind::Unavailable));
    }
    assert!(desk.watch().await.is_err());
    drop(world);
    let answer = desk.call(apply(input("ns", "a"))).await;
    assert_eq!(kind(answer), Some(CallFailureKind::Unavailable));
}

/// Another process would be told that it stands by; this one ends.
#[tokio::test(start_paused = true)]
async fn a_krane_that_stops_says_so() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.workers.store().halt();
    let refused = desk.call(apply(input("ns", "a"))).await.unwrap_err();
    assert_eq!(refused.kind, CallFailureKind::Unavailable);
    assert!(refused.message.contains("is stopping"), "{refused}");
}

fn sentinel(name: &str) -> Call {
    Call::ApplySentinel {
        namespace: "sentinel".into(),
        input: Box::new(sentinel_input(name)),
    }
}

#[tokio::test(start_paused = true)]
async fn a_sentinel_comes_and_goes_with_all_its_objects() {
    let world = World::of(Controller::Sentinels).await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(sentinel("s1")).await, Ok(()));
    let of_it = || {
        let objects = world.cluster.objects().into_iter();
        objects.filter(|live| live.reference.resource != Resource::Namespace)
    };
    assert_eq!(of_it().count(), 5);
    for live in of_it() {
        let mark = live.label("krane.unkey.com/desired-by");
        assert_eq!(mark, Some("scheduler"), "{}", live.reference);
    }
    let gone = Call::DeleteSentinel {
        namespace: "sentinel".into(),
        name: "s1".into(),
    };
    assert_eq!(desk.call(gone).await, Ok(()));
    let deployment = ObjectRef::new(Resource::Deployment, "sentinel", "s1");
    assert_eq!(world.cluster.object(&deployment), None);
    world.pass(100).await;
    assert_eq!(world.control_plane.reports(), []);
    assert_eq!(world.control_plane.questions(), 0);
}
