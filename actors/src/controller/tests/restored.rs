//! A control plane that was restored from an old copy (D8), to every kind.

use std::collections::BTreeSet;
use std::time::Duration;

use super::amnesia::passes;
use super::harness::World;
use super::kinds::{KINDS, Kind};

const OBJECTS: u64 = 100;
/// What the copy knows already.
const KNOWN: u64 = 60;
/// Versions of the edition that the copy has not heard of.
const NEWER: u64 = 5000;

/// Objects in place in edition 2, of which the copy knows the first ones in edition 1.
async fn restored(kind: &Kind) -> World {
    let world = kind.in_place(OBJECTS).await;
    for number in 1..=OBJECTS {
        let newer = kind.wants(NEWER + number, number, 2);
        world.control_plane.push(newer);
    }
    world
        .until("in edition 2", |world| world.cursor() == NEWER + OBJECTS)
        .await;
    let copy = (1..=KNOWN).map(|number| kind.wants(number, number, 1));
    world.control_plane.restore(copy);
    world
}

fn in_edition(world: &World, kind: &Kind, edition: u64) -> u64 {
    let numbers = 1..=OBJECTS;
    let of_it = numbers.filter(|number| kind.edition(world, *number) == Some(edition));
    of_it.count() as u64
}

#[tokio::test(start_paused = true)]
async fn an_old_copy_is_followed_and_what_it_never_knew_is_kept() {
    for kind in &KINDS {
        let world = restored(kind).await;
        let before = world.cluster.uids();
        let time = world
            .until("back in edition 1", |world| {
                world.cursor() == KNOWN && in_edition(world, kind, 1) == KNOWN
            })
            .await;
        // One replay interval, the second look, and what each of them takes.
        assert!(time < Duration::from_secs(700), "{}: {time:?}", kind.name());
        passes(&world, 20).await;
        assert_eq!(world.cluster.uids(), before, "{}", kind.name());
        assert_eq!(in_edition(&world, kind, 2), OBJECTS - KNOWN);
        let held = world.workers.store().snapshot().held;
        let unknown: BTreeSet<_> = (KNOWN + 1..=OBJECTS).map(|n| kind.key(n)).collect();
        assert_eq!(held, unknown, "{}", kind.name());
    }
}

/// The copy counts on from where it was: its new versions are lower than those krane knew, and
/// some of them were other objects' before.
#[tokio::test(start_paused = true)]
async fn what_the_old_copy_says_next_is_taken_at_once() {
    for kind in &KINDS {
        let world = restored(kind).await;
        world
            .until("the cursor begins again", |world| world.cursor() == KNOWN)
            .await;
        let plane = &world.control_plane;
        plane.push(kind.wants(KNOWN + 1, 3, 3));
        plane.push(kind.wants(KNOWN + 2, OBJECTS, 3));
        plane.push(kind.wants(KNOWN + 3, OBJECTS + 1, 3));
        plane.push(kind.unwants(KNOWN + 4, 4));
        let time = world
            .until("followed", |world| {
                world.cursor() == KNOWN + 4
                    && [3, OBJECTS + 1].map(|n| kind.edition(world, n)) == [Some(3), Some(3)]
                    && kind.edition(world, 4).is_none()
            })
            .await;
        assert!(time < Duration::from_secs(1), "{}: {time:?}", kind.name());
        // Of what the copy never knew a version beyond is remembered until it has caught up.
        passes(&world, 2).await;
        assert_eq!(kind.edition(&world, OBJECTS), Some(3), "{}", kind.name());
        let held = world.workers.store().snapshot().held;
        assert!(!held.contains(&kind.key(OBJECTS)), "{}", kind.name());
    }
}

/// Restored, and restored again from the newest copy before anybody believed the first.
#[tokio::test(start_paused = true)]
async fn an_old_copy_that_is_shown_once_changes_no_version() {
    for kind in &KINDS {
        let world = restored(kind).await;
        let newest = (1..=OBJECTS).map(|number| kind.wants(NEWER + number, number, 2));
        passes(&world, 3).await;
        world.control_plane.restore(newest);
        passes(&world, 20).await;
        assert_eq!(in_edition(&world, kind, 2), OBJECTS, "{}", kind.name());
        assert_eq!(world.cursor(), NEWER + OBJECTS, "{}", kind.name());
        assert_eq!(world.memory(|memory| memory.stream.adopted), 0);
        assert_eq!(world.workers.store().snapshot().held, BTreeSet::new());
    }
}
