//! All desired states are read again now and then (D8).

use std::time::Duration;

use krane_domain::desired::State;
use krane_domain::ids::Controller;
use krane_domain::invalid::Invalid;
use krane_ports::Answer;

use super::harness::World;
use crate::testing::{input, wants};

/// Between two replays, at most, and the time a replay takes.
const ROUND: u64 = 615;

fn with_image(version: u64, name: &str, image: &str) -> State {
    let mut input = input("ns", name);
    image.clone_into(&mut input.image);
    wants(version, input)
}

fn image(world: &World, name: &str) -> Option<String> {
    let live = world.cluster.workload("ns", name)?.value();
    let image = live.pointer("/spec/template/spec/containers/0/image")?;
    Some(image.as_str()?.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_state_that_became_visible_behind_the_cursor_is_found() {
    let world = World::that_applied(Controller::Deployments, &[wants(9, input("ns", "d1"))]).await;
    let late = [wants(4, input("ns", "late")), wants(9, input("ns", "d1"))];
    world.control_plane.restore(late);
    world.pass(ROUND).await;
    assert!(world.cluster.workload("ns", "late").is_some());
    assert_eq!(world.cursor(), 9, "never backwards");
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_restored_from_an_older_copy_is_followed_from_version_zero() {
    let states = [
        with_image(100, "d1", "registry.example/app:2"),
        wants(101, input("ns", "d2")),
    ];
    let world = World::that_applied(Controller::Deployments, &states).await;
    let older = [
        with_image(5, "d1", "registry.example/app:1"),
        wants(6, input("ns", "d2")),
    ];
    world.control_plane.restore(older);
    world
        .until("the older state is applied", |world| {
            image(world, "d1").as_deref() == Some("registry.example/app:1")
        })
        .await;
    world
        .until("the cursor begins again", |world| world.cursor() == 6)
        .await;
    assert_eq!(world.memory(|memory| memory.stream.adopted), 2);
    assert_eq!(world.control_plane.cursors().last(), Some(&0));
    world.control_plane.push(wants(7, input("ns", "d3")));
    let time = world.until("followed", |world| world.cursor() == 7).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

/// A replay used to end at the cursor, however far behind the newest state that was.
#[tokio::test(start_paused = true)]
async fn a_bad_state_that_holds_the_cursor_does_not_hide_a_restored_control_plane() {
    let bad = State {
        change: Err(Invalid::new("image", "is bad", "send another")),
        ..wants(3, input("ns", "bad"))
    };
    let world = World::start().await;
    world.control_plane.push(bad.clone());
    let newer = with_image(100, "d1", "registry.example/app:2");
    world.control_plane.push(newer);
    world
        .until("applied", |world| image(world, "d1").is_some())
        .await;
    assert_eq!(world.cursor(), 2);
    world.control_plane.answer("d_d1", Answer::Empty);
    let older = with_image(50, "d1", "registry.example/app:1");
    world.control_plane.restore([bad, older]);
    world
        .until("the older state is applied", |world| {
            image(world, "d1").as_deref() == Some("registry.example/app:1")
        })
        .await;
}

/// A replica that lags shows an older state once.
#[tokio::test(start_paused = true)]
async fn an_older_state_shown_once_is_not_believed() {
    let newer = with_image(100, "d1", "registry.example/app:2");
    let world = World::that_applied(Controller::Deployments, std::slice::from_ref(&newer)).await;
    let older = with_image(5, "d1", "registry.example/app:1");
    world.control_plane.restore([older.clone()]);
    // The resync is told nothing.
    world.control_plane.answer("d_d1", Answer::Empty);
    let replays = world.control_plane.cursors().len();
    world
        .until("a replay began", |world| {
            world.control_plane.cursors().len() > replays
        })
        .await;
    world.pass(15).await;
    world.control_plane.restore([newer]);
    world.pass(2 * ROUND).await;
    assert_eq!(
        image(&world, "d1").as_deref(),
        Some("registry.example/app:2")
    );
    assert_eq!(world.memory(|memory| memory.stream.adopted), 0);
}

#[tokio::test(start_paused = true)]
async fn absence_from_replays_deletes_nothing() {
    let world = World::that_applied(Controller::Deployments, &[wants(1, input("ns", "d1"))]).await;
    world.control_plane.restore([]);
    world.control_plane.answer("d_d1", Answer::Empty);
    world.pass(4 * ROUND).await;
    assert!(world.cluster.workload("ns", "d1").is_some());
}
