//! Kinds whose lists work and whose watches are not opened: krane may only list, or a proxy is in the
//! way (D43).

use std::time::Duration;

use krane_domain::ids::Moment;
use krane_domain::object::Resource;
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_domain::report::Report;
use krane_ports::WatchEnd;

use super::harness::World;
use crate::testing::cluster::{forbidden, unavailable};
use crate::testing::{input, wants};

/// Since when pods are said to be broken.
fn broken_since(world: &World) -> Option<Moment> {
    world.memory(|memory| {
        let broken = memory.broken_watches.get(&Resource::Pod);
        broken.map(|watch| watch.since)
    })
}

/// How often pods were listed or watched.
fn looks(world: &World) -> usize {
    let looks = world.cluster.looks().into_iter();
    looks
        .filter(|(resource, _)| *resource == Resource::Pod)
        .count()
}

/// From now on no watch of pods is opened.
async fn without_watches(refusal: Refusal) -> World {
    let world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "web")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.pass(5).await;
    world.cluster.refuse_watches(&[Resource::Pod], refusal);
    world.cluster.end_watches(&WatchEnd::Closed);
    world
        .until("broken", |world| broken_since(world).is_some())
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_watch_never_opens_is_listed_ever_more_rarely_and_never_said_to_work() {
    let missing = Refusal {
        class: RefusalClass::KindMissing,
        ..unavailable(404, None)
    };
    let answers = [
        unavailable(500, None),
        unavailable(503, Some(Duration::from_secs(1))),
        forbidden(Resource::Pod),
        missing,
    ];
    for answer in answers {
        let world = without_watches(answer.clone()).await;
        let (since, before) = (broken_since(&world), looks(&world));
        for _ in 0..600 {
            world.pass(1).await;
            assert_eq!(broken_since(&world), since, "{answer}");
        }
        // Each list is followed by a watch that is refused.
        let lists = (looks(&world) - before) / 2;
        assert!(
            (30..=60).contains(&lists),
            "{answer}: {lists} lists in 10 min"
        );

        world.cluster.open_watches();
        let works = |world: &World| broken_since(world).is_none();
        let time = world.until("it works", works).await;
        assert!(time <= Duration::from_secs(21), "{answer}: {time:?}");
        world.cluster.set_pod("ns", "web", "web-1", true);
        let is_told = |world: &World| {
            let report = world.control_plane.last_report("web");
            matches!(report, Some(Report::Instances { instances, .. }) if instances.len() == 1)
        };
        let time = world.until("told", is_told).await;
        assert!(time < Duration::from_secs(5), "{answer}: {time:?}");
    }
}

/// Also after many of them: a watch that stays open takes the pauses back.
#[tokio::test(start_paused = true)]
async fn watches_that_are_refused_for_seconds_are_open_seconds_later() {
    let world = without_watches(unavailable(500, None)).await;
    for blip in 1..=20 {
        world.pass(3).await;
        world.cluster.open_watches();
        let works = |world: &World| broken_since(world).is_none();
        let time = world.until("it works", works).await;
        assert!(time <= Duration::from_secs(5), "{blip}: {time:?}");
        world.pass(10).await;
        let answer = unavailable(500, None);
        world.cluster.refuse_watches(&[Resource::Pod], answer);
        world.cluster.end_watches(&WatchEnd::Closed);
        world
            .until("broken", |world| broken_since(world).is_some())
            .await;
    }
}
