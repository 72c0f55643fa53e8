//! A control plane that says of many objects that it does not know them (D6, D7), to every kind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krane_domain::backlog::Standing;
use krane_domain::ids::{Moment, ObjectKey};
use krane_ports::{Answer, RpcFailure, RpcFailureKind};

use super::harness::World;
use super::kinds::{KINDS, Kind};
use crate::events::Happening;

const MANY: u64 = 1000;
/// Nothing that is asked for takes longer while deletions are held.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Waits until so many more passes over all objects have ended.
pub(super) async fn passes(world: &World, count: usize) {
    for _ in 0..count {
        let last = |world: &World| {
            world.memory(|memory| memory.last_resync.as_ref().map(|pass| pass.ended_at))
        };
        let before: Option<Moment> = last(world);
        world.until("a pass", |world| last(world) != before).await;
    }
}

fn held(world: &World) -> BTreeSet<ObjectKey> {
    world.workers.store().snapshot().held
}

fn forget_everything(world: &World) {
    world
        .control_plane
        .answer_as(|_| Some(Ok(Answer::NotFound)));
}

fn remember(world: &World) {
    world.control_plane.answer_as(|_| None);
}

/// What a person sees: how many, which, and beside each that it is held while it is in place.
fn check_shown(world: &World, kind: &Kind, count: u64) {
    let keys: BTreeSet<ObjectKey> = (1..=count).map(|number| kind.key(number)).collect();
    assert_eq!(held(world), keys, "{}", kind.name());
    let workloads = world.workers.store().workloads();
    assert_eq!(workloads.len(), keys.len());
    for workload in workloads {
        let is_in_place = matches!(workload.standing, Standing::InPlace { .. });
        assert!(workload.is_held && is_in_place, "{workload:?}");
    }
    let found = usize::try_from(count).expect("small");
    let events = world.board.events().newest_first();
    let told = events.iter().filter(|event| {
        event.controller == Some(kind.controller) && event.what == Happening::DeletesHeld { found }
    });
    assert_eq!(told.count(), 1, "{}: {events:?}", kind.name());
}

/// States, repairs and deletes that somebody asks for wait for nothing that is held.
async fn check_work_goes_on(world: &World, kind: &Kind, version: u64) {
    let plane = &world.control_plane;
    plane.push(kind.wants(version, MANY + 1, 1));
    plane.push(kind.wants(version + 1, 7, 2));
    plane.push(kind.unwants(version + 2, 8));
    let drifted = kind.reference(9);
    world.cluster.remove(&drifted);
    let time = world
        .until("work goes on", |world| {
            world.cursor() == version + 2
                && kind.edition(world, MANY + 1) == Some(1)
                && kind.edition(world, 7) == Some(2)
                && kind.edition(world, 8).is_none()
                && world.cluster.object(&drifted).is_some()
        })
        .await;
    assert!(time < AT_ONCE, "{}: {time:?}", kind.name());
    let held = held(world);
    assert!(!held.contains(&kind.key(7)), "it was named again");
    assert!(!held.contains(&kind.key(MANY + 1)), "nobody asked about it");
}

#[tokio::test(start_paused = true)]
async fn a_region_of_which_nothing_is_known_loses_nothing_and_works_on() {
    for kind in &KINDS {
        let world = kind.in_place(MANY).await;
        let before = world.cluster.uids();
        forget_everything(&world);
        passes(&world, 21).await;
        assert_eq!(world.cluster.uids(), before, "{}", kind.name());
        check_shown(&world, kind, MANY);
        check_work_goes_on(&world, kind, MANY + 1).await;
        let before = world.cluster.uids();
        passes(&world, 2).await;
        assert_eq!(world.cluster.uids(), before, "{}", kind.name());
        let all_but_the_deleted = usize::try_from(MANY).expect("small");
        assert_eq!(held(&world).len(), all_but_the_deleted);
        remember(&world);
        passes(&world, 1).await;
        assert_eq!(held(&world), BTreeSet::new(), "{}", kind.name());
        assert_eq!(world.cluster.uids(), before, "{}", kind.name());
    }
}

/// A new process has no states to compare with: it knows what lives, and is told of nothing.
#[tokio::test(start_paused = true)]
async fn a_new_process_before_an_empty_control_plane_deletes_nothing_either() {
    for kind in &KINDS {
        let mut world = kind.in_place(MANY).await;
        let before = world.cluster.uids();
        world.control_plane.restore([]);
        world.reboot().await;
        passes(&world, 21).await;
        assert_eq!(world.cluster.uids(), before, "{}", kind.name());
        assert_eq!(held(&world).len() as u64, MANY, "{}", kind.name());
        world.control_plane.push(kind.wants(1, 7, 2));
        let time = world
            .until("applied", |world| kind.edition(world, 7) == Some(2))
            .await;
        assert!(time < AT_ONCE, "{}: {time:?}", kind.name());
    }
}

/// A region that the control plane has no row of is unknown with everything in it, until a
/// heartbeat was taken.
#[tokio::test(start_paused = true)]
async fn a_region_that_is_not_known_yet_is_not_believed_even_about_a_few() {
    for kind in &KINDS {
        let world = kind.in_place(2).await;
        world.is_region_known.store(false, Ordering::Relaxed);
        let before = world.cluster.uids();
        forget_everything(&world);
        passes(&world, 21).await;
        assert_eq!(world.cluster.uids(), before, "{}", kind.name());
        assert_eq!(held(&world), BTreeSet::new());
        world.is_region_known.store(true, Ordering::Relaxed);
        world
            .until("believed", |world| {
                (1..=2).all(|number| kind.edition(world, number).is_none())
            })
            .await;
    }
}

/// What one pass of a storm is told.
#[derive(Clone, Copy, Debug)]
enum Weather {
    Calm,
    /// Nothing is known.
    Amnesia,
    /// Every second object is unknown.
    Half,
    /// Nothing is known when asked first, everything when asked again.
    FirstOnly,
    /// Errors in between.
    Errors,
}

impl Weather {
    const ALL: [Self; 5] = [
        Self::Calm,
        Self::Amnesia,
        Self::Half,
        Self::FirstOnly,
        Self::Errors,
    ];
}

#[tokio::test(start_paused = true)]
async fn storms_that_come_and_go_delete_nothing_and_leave_nothing_held() {
    for kind in &KINDS {
        for seed in 1..=3 {
            let world = kind.in_place(200).await;
            let before = world.cluster.uids();
            let mut chance = fastrand::Rng::with_seed(seed);
            for _ in 0..20 {
                let weather = chance.choice(Weather::ALL).expect("some");
                let_it_be(&world, weather);
                passes(&world, 1).await;
                assert_eq!(
                    world.cluster.uids(),
                    before,
                    "{}, seed {seed}: {weather:?}",
                    kind.name()
                );
            }
            remember(&world);
            passes(&world, 1).await;
            assert_eq!(held(&world), BTreeSet::new(), "{}, {seed}", kind.name());
            assert_eq!(world.cluster.uids(), before, "{}, {seed}", kind.name());
        }
    }
}

fn let_it_be(world: &World, weather: Weather) {
    let mut asked = BTreeSet::new();
    let mut count = 0_u64;
    world.control_plane.answer_as(move |question| {
        count += 1;
        let is_first = asked.insert(question.key.clone());
        let is_even = question.key.name.ends_with(['0', '2', '4', '6', '8']);
        match weather {
            Weather::Calm => None,
            Weather::Half => is_even.then_some(Ok(Answer::NotFound)),
            Weather::FirstOnly => is_first.then_some(Ok(Answer::NotFound)),
            Weather::Errors if count.is_multiple_of(3) => Some(Err(failure())),
            Weather::Amnesia | Weather::Errors => Some(Ok(Answer::NotFound)),
        }
    });
}

fn failure() -> RpcFailure {
    RpcFailure {
        kind: RpcFailureKind::Answered,
        code: "internal",
        message: "as the test wants it".to_owned(),
    }
}

/// A few may go, and come back when the control plane speaks of them again: with all that is theirs.
#[tokio::test(start_paused = true)]
async fn what_went_in_a_small_storm_comes_back_when_it_is_over() {
    for kind in &KINDS {
        let world = kind.in_place(30).await;
        let before: BTreeSet<_> = world.cluster.uids().into_keys().collect();
        let unknown = [kind.key(4), kind.key(5)];
        let is_over = Arc::new(AtomicBool::new(false));
        let storm = Arc::clone(&is_over);
        world.control_plane.answer_as(move |question| {
            let is_unknown = unknown.contains(&question.key) && !storm.load(Ordering::Relaxed);
            is_unknown.then_some(Ok(Answer::NotFound))
        });
        world
            .until("deleted", |world| {
                kind.edition(world, 4).is_none() && kind.edition(world, 5).is_none()
            })
            .await;
        is_over.store(true, Ordering::Relaxed);
        let time = world
            .until("all is back", |world| {
                let now: BTreeSet<_> = world.cluster.uids().into_keys().collect();
                now == before
            })
            .await;
        assert!(time < Duration::from_secs(630), "{}: {time:?}", kind.name());
    }
}

/// A controller that lost its memory, or its turn to write, has not won a new allowance by that.
#[tokio::test(start_paused = true)]
async fn an_allowance_that_is_spent_stays_spent_when_a_controller_begins_anew() {
    for kind in &KINDS {
        let mut world = kind.in_place(100).await;
        forget_from_to(&world, kind, 1, 8);
        world
            .until("deleted", |world| {
                (1..=8).all(|number| kind.edition(world, number).is_none())
            })
            .await;
        let before = world.cluster.uids();
        let rows = (9..=100).map(|number| kind.wants(number, number, 1));
        world.control_plane.restore(rows);
        world.reboot().await;
        forget_from_to(&world, kind, 9, 16);
        passes(&world, 3).await;
        assert_eq!(world.cluster.uids(), before, "{}", kind.name());
        assert_eq!(held(&world).len(), 8, "{}", kind.name());
    }
}

fn forget_from_to(world: &World, kind: &Kind, from: u64, to: u64) {
    let unknown: BTreeSet<ObjectKey> = (from..=to).map(|number| kind.key(number)).collect();
    world.control_plane.answer_as(move |question| {
        unknown
            .contains(&question.key)
            .then_some(Ok(Answer::NotFound))
    });
}
