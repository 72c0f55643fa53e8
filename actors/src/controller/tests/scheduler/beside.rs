//! The control plane wins.

use std::time::Duration;

use krane_domain::report::Report;
use krane_domain::scheduler::CallFailureKind;
use krane_ports::Answer;
use krane_ports::SchedulerDesk;

use super::{apply, delete, desk, image, kind, mark, with_image};
use crate::controller::tests::harness::World;
use crate::testing::{input, unwants, wants};

const REFUSED: Option<CallFailureKind> = Some(CallFailureKind::FailedPrecondition);

#[tokio::test(start_paused = true)]
async fn what_the_control_plane_spoke_of_is_not_the_schedulers_to_change() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.control_plane.push(wants(1, input("ns", "wanted")));
    world.control_plane.push(unwants(2, "ns", "unwanted"));
    let mut invalid = input("ns", "invalid");
    invalid.image.clear();
    world.control_plane.push(wants(3, invalid));
    world
        .until("received", |world| {
            world.memory(|memory| memory.backlog.highest()) == 3
        })
        .await;
    world
        .until("applied", |world| world.cluster.workloads() == 1)
        .await;
    let writes = world.cluster.writes();
    for name in ["wanted", "unwanted", "invalid"] {
        for call in [apply(with_image(name, "other:1")), delete(name)] {
            assert_eq!(kind(desk.call(call).await), REFUSED, "{name}");
        }
    }
    world.pass(30).await;
    assert_eq!(world.cluster.writes(), writes);
    assert_eq!(mark(&world, "wanted"), None);
}

/// What is live and unmarked belongs to the control plane, though it has not spoken of it yet.
#[tokio::test(start_paused = true)]
async fn what_was_there_before_belongs_to_the_control_plane() {
    let mut world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "a")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.control_plane.restore([]);
    world.reboot().await;
    let desk = desk(&world).await;
    world
        .until("listed", |world| world.memory(|memory| *memory.is_listed))
        .await;
    for call in [apply(with_image("a", "other:1")), delete("a")] {
        assert_eq!(kind(desk.call(call).await), REFUSED);
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_takes_over_what_was_called_for_and_pods_are_reported_from_then_on() {
    let world = World::start().await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(apply(input("ns", "a"))).await, Ok(()));
    world.cluster.set_pod("ns", "a", "p1", true);
    world.pass(20).await;
    assert_eq!(world.control_plane.reports(), []);
    let before = world.cluster.workload("ns", "a").expect("there");
    world.control_plane.push(wants(4, input("ns", "a")));
    world.until("taken over", |world| world.cursor() == 4).await;
    let after = world.cluster.workload("ns", "a").expect("there");
    assert_eq!(mark(&world, "a"), None);
    assert_eq!(before.uid, after.uid);
    let template =
        |live: &krane_domain::object::LiveObject| live.value()["spec"]["template"].clone();
    assert_eq!(template(&before), template(&after), "no pod is outdated");
    world
        .until("reported", |world| {
            world.control_plane.last_report("a").is_some()
        })
        .await;
    assert_eq!(kind(desk.call(delete("a")).await), REFUSED);
    world.pass(120).await;
    assert!(!world.control_plane.asked("d_a").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delete_state_deletes_what_was_called_for() {
    let world = World::start().await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(apply(input("ns", "a"))).await, Ok(()));
    world.control_plane.push(unwants(4, "ns", "a"));
    world.until("deleted", |world| world.cursor() == 4).await;
    assert_eq!(world.cluster.workload("ns", "a"), None);
    assert!(matches!(
        world.control_plane.last_report("a"),
        None | Some(Report::Gone { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn who_waits_hears_at_once_that_the_control_plane_came_first() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.cluster.set_call_time(Duration::from_secs(3));
    let push = async {
        crate::testing::pass(Duration::from_secs(1)).await;
        world
            .control_plane
            .push(wants(1, with_image("a", "theirs:1")));
        world.board.now()
    };
    let call = async {
        let answer = desk.call(apply(with_image("a", "called:1"))).await;
        (answer, world.board.now())
    };
    let ((answer, at), pushed) = tokio::join!(call, push);
    assert_eq!(kind(answer), REFUSED);
    assert!(at - pushed < Duration::from_secs(1));
    world.until("applied", |world| world.cursor() == 1).await;
    assert_eq!(image(&world, "a").as_deref(), Some("theirs:1"));
    assert_eq!(mark(&world, "a"), None);
}

/// Reports carry no namespace, and the scheduler's object is in none of them.
#[tokio::test(start_paused = true)]
async fn an_object_of_the_scheduler_hides_no_other_one_of_its_name() {
    let world = World::start().await;
    let desk = desk(&world).await;
    assert_eq!(desk.call(apply(input("a-first", "x"))).await, Ok(()));
    world.control_plane.push(wants(1, input("ns", "x")));
    world
        .until("reported", |world| {
            world.control_plane.last_report("x").is_some()
        })
        .await;
    world.control_plane.push(unwants(2, "ns", "x"));
    world
        .until("reported as gone", |world| {
            let last = world.control_plane.last_report("x");
            last.is_some_and(|report| report.is_gone())
        })
        .await;
    assert!(world.cluster.workload("a-first", "x").is_some());
}

/// Ten percent of the control plane's objects, not of all.
#[tokio::test(start_paused = true)]
async fn the_brake_does_not_count_what_the_scheduler_wants() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let calls = (0..60).map(|number| desk.call(apply(input("ns", &format!("s{number}")))));
    for answer in futures::future::join_all(calls).await {
        assert_eq!(answer, Ok(()));
    }
    for number in 1..=4 {
        world
            .control_plane
            .push(wants(number, input("ns", &format!("c{number}"))));
    }
    world.until("applied", |world| world.cursor() == 4).await;
    for number in 1..=4 {
        let id = format!("d_c{number}");
        world.control_plane.answer(&id, Answer::NotFound);
    }
    world
        .until("held", |world| {
            world.memory(|memory| memory.brake.held().len()) == 4
        })
        .await;
    world.pass(120).await;
    assert_eq!(world.cluster.workloads(), 64);
}

/// The control plane disowned it; what the scheduler makes under that name later stays.
#[tokio::test(start_paused = true)]
async fn what_was_disowned_may_be_called_for() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.control_plane.push(wants(1, input("ns", "a")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.control_plane.restore([]);
    world
        .until("disowned", |world| world.cluster.workloads() == 0)
        .await;
    assert_eq!(desk.call(apply(input("ns", "a"))).await, Ok(()));
    world.pass(1500).await;
    assert_eq!(mark(&world, "a").as_deref(), Some("scheduler"));
}
