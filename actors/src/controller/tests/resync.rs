//! Desired state is re-read.

use std::sync::atomic::Ordering;
use std::time::Duration;

use krane_domain::desired::Change;
use krane_domain::ids::ObjectKey;
use krane_domain::kinds::deployment::{DeploymentInput, validate};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::report::Report;
use krane_ports::{Answer, RpcFailureKind};

use super::harness::World;
use crate::testing::{input, unwants, wants};

fn answer(input: DeploymentInput) -> Answer {
    let key = ObjectKey::new(&*input.k8s_namespace, &*input.k8s_name);
    let change = validate(input, &Rules::default())
        .map(|desired| Change::Apply(Desired::Deployment(Box::new(desired))));
    Answer::State { key, change }
}

fn image(world: &World, name: &str) -> Option<serde_json::Value> {
    let live = world.cluster.workload("ns", name)?.value();
    live.pointer("/spec/template/spec/containers/0/image")
        .cloned()
}

async fn with_workloads(count: u64) -> World {
    let world = World::start().await;
    for number in 1..=count {
        let name = format!("d{number}");
        world
            .control_plane
            .answer(&format!("d_{name}"), answer(input("ns", &name)));
        world.control_plane.push(wants(number, input("ns", &name)));
    }
    world
        .until("applied", |world| world.cursor() == count)
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_quiet_minute_costs_questions_and_no_writes() {
    let world = with_workloads(20).await;
    let writes = world.cluster.writes();
    world.pass(200).await;
    assert_eq!(world.cluster.writes(), writes);
    assert!(
        world.control_plane.questions() >= 60,
        "{}",
        world.control_plane.questions()
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_the_stream_never_told_of_is_found() {
    let world = with_workloads(3).await;
    let mut changed = input("ns", "d2");
    changed.image = "registry.example/app:new".to_owned();
    world.control_plane.answer("d_d2", answer(changed));
    let time = world
        .until("adopted", |world| {
            image(world, "d2") == Some("registry.example/app:new".into())
        })
        .await;
    assert!(time < Duration::from_secs(130), "{time:?}");
}

/// unkeyed/unkey ce0572d7b7, PR #4991 (A38): not_found means gone, asked twice.
#[tokio::test(start_paused = true)]
async fn what_the_control_plane_does_not_know_is_deleted_and_reported() {
    let world = with_workloads(3).await;
    world.control_plane.answer("d_d1", Answer::NotFound);
    world
        .until("deleted", |world| {
            world.cluster.workload("ns", "d1").is_none()
        })
        .await;
    world
        .until("reported", |world| {
            matches!(
                world.control_plane.last_report("d1"),
                Some(Report::Gone { .. })
            )
        })
        .await;
    assert_eq!(world.cluster.workloads(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_that_forgot_everything_deletes_nothing_however_often_it_says_so() {
    let world = with_workloads(100).await;
    for number in 1..=100 {
        world
            .control_plane
            .answer(&format!("d_d{number}"), Answer::NotFound);
    }
    world.pass(1800).await;
    assert_eq!(world.cluster.workloads(), 100);
    assert_eq!(world.memory(|memory| memory.brake.held().len()), 100);
    // Remembering one of them releases that one from the brake.
    world
        .control_plane
        .answer("d_d5", answer(input("ns", "d5")));
    world.pass(120).await;
    assert_eq!(world.memory(|memory| memory.brake.held().len()), 99);
    // A person lets the others go.
    assert_eq!(world.workers.operator().allow_deletes().len(), 99);
    world
        .until("deleted", |world| world.cluster.workloads() == 1)
        .await;
    assert_eq!(world.workers.operator().allow_deletes().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn not_found_is_not_believed_before_a_heartbeat_was_taken() {
    let world = with_workloads(2).await;
    world.is_region_known.store(false, Ordering::Relaxed);
    world.control_plane.answer("d_d1", Answer::NotFound);
    world.pass(600).await;
    assert_eq!(world.cluster.workloads(), 2);
    world.is_region_known.store(true, Ordering::Relaxed);
    world
        .until("deleted", |world| {
            world.cluster.workload("ns", "d1").is_none()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn errors_of_any_kind_delete_nothing() {
    let world = with_workloads(2).await;
    for kind in [RpcFailureKind::Transport, RpcFailureKind::Answered] {
        world.control_plane.fail(Some(kind));
        world.pass(300).await;
        assert_eq!(world.cluster.workloads(), 2);
    }
    world.control_plane.fail(None);
    world.control_plane.answer("d_d1", Answer::Empty);
    world.pass(300).await;
    assert_eq!(world.cluster.workloads(), 2);
}

/// unkeyed/unkey ea6f501c5a, PR #5624 (A40): a page of objects with a bad one at its end was fetched
/// for ever. A pass asks about each once, and ends.
#[tokio::test(start_paused = true)]
async fn questions_that_fail_hold_up_no_others_and_the_pass_ends() {
    let world = with_workloads(30).await;
    for number in 11..=20 {
        world.control_plane.refuse_question(&format!("d_d{number}"));
    }
    let mut changed = input("ns", "d30");
    changed.image = "registry.example/app:new".to_owned();
    world.control_plane.answer("d_d30", answer(changed));
    let summary = |world: &World| world.memory(|memory| memory.last_resync.clone());
    world
        .until("a pass ended", |world| summary(world).is_some())
        .await;
    for number in 1..=30 {
        let asked = world.control_plane.asked(&format!("d_d{number}"));
        assert_eq!(asked.len(), 1, "d{number}");
    }
    let summary = summary(&world).expect("it ended");
    assert_eq!((summary.asked, summary.failed), (30, 10));
    world
        .until("the last one's answer counts", |world| {
            image(world, "d30") == Some("registry.example/app:new".into())
        })
        .await;
    assert_eq!(world.cluster.workloads(), 30);
}

/// Sieve, stale state on the side of deletes (C04): an answer that was on its way for three seconds
/// brings back what the stream deleted meanwhile.
#[tokio::test(start_paused = true)]
async fn a_late_answer_brings_nothing_back() {
    let world = with_workloads(1).await;
    world.control_plane.set_answer_time(Duration::from_secs(3));
    world
        .until("asked", |world| world.control_plane.questions() == 1)
        .await;
    world.control_plane.push(unwants(11, "ns", "d1"));
    let time = world
        .until("deleted", |world| world.cluster.workloads() == 0)
        .await;
    assert!(time < Duration::from_secs(2), "before the answer: {time:?}");
    world.pass(130).await;
    assert_eq!(world.cluster.workloads(), 0);
    let reports = world.control_plane.reports();
    let deletions = reports.iter().filter(|report| report.is_gone());
    assert_eq!(deletions.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_another_object_changes_nothing() {
    let world = with_workloads(2).await;
    let mut other = input("ns", "d2");
    other.image = "registry.example/app:evil".to_owned();
    world.control_plane.answer("d_d1", answer(other));
    world.pass(300).await;
    assert_eq!(image(&world, "d2"), Some("registry.example/app:1".into()));
    assert_eq!(world.cluster.workloads(), 2);
}

/// D12: the replay is over at some point even in a region where something changes all the time.
#[tokio::test(start_paused = true)]
async fn a_region_that_is_never_silent_is_asked_about_all_the_same() {
    let world = World::start().await;
    for version in 1..=100 {
        world.control_plane.push(wants(version, input("ns", "d1")));
        world.pass(4).await;
    }
    assert!(world.control_plane.questions() > 0);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_a_person_asks_for_begins_at_once_and_after_the_one_under_way() {
    use crate::operator::Heard;
    let world = with_workloads(3).await;
    assert_eq!(world.workers.operator().resync(), Heard::AfterReplay);
    world.pass(90).await;
    let asked = world.control_plane.questions();
    assert_eq!(world.workers.operator().resync(), Heard::Begins);
    assert_eq!(world.workers.operator().resync(), Heard::Begins);
    world.pass(5).await;
    let asked = world.control_plane.questions() - asked;
    assert_eq!(asked, 6, "two passes over three objects");
}
