//! A control plane that speaks of the wrong thing, to every kind.

use std::time::Duration;

use krane_domain::desired::State;
use krane_domain::ids::{ObjectKey, WorkKey};
use krane_domain::invalid::Invalid;
use krane_domain::object::ObjectRef;
use krane_ports::{Answer, Question};

use super::amnesia::passes;
use super::harness::World;
use super::kinds::{KINDS, Kind};
use crate::testing::Op;

const OBJECTS: u64 = 20;

/// The number at the end of an object's name.
fn number(question: &Question) -> u64 {
    let digits = question
        .key
        .name
        .trim_start_matches(|c: char| c.is_alphabetic());
    digits.parse().expect("a number")
}

/// What another kind says of its object of this number, under the name of the one asked about.
fn renamed(other: &Kind, number: u64, key: &ObjectKey) -> Answer {
    match other.answer(number, 2) {
        Answer::State { change, .. } => Answer::State {
            key: key.clone(),
            change,
        },
        answer @ (Answer::NotFound | Answer::Empty) => answer,
    }
}

type Wrong = fn(&Kind, &Kind, &Question) -> Answer;

/// Answers that are about something else than what was asked.
const WRONG: [(&str, Wrong); 6] = [
    ("another kind, by its own name", |_, other, question| {
        other.answer(number(question), 2)
    }),
    (
        "another kind, by the name asked about",
        |_, other, question| renamed(other, number(question), &question.key),
    ),
    ("the next object", |kind, _, question| {
        kind.answer(number(question) + 1, 2)
    }),
    ("an object of another region", |kind, _, question| {
        kind.answer(number(question) + 10 * OBJECTS, 2)
    }),
    (
        "the wish that another object be gone",
        |kind, _, question| Answer::State {
            key: kind.key(number(question) + 1),
            change: Ok(krane_domain::desired::Change::Delete),
        },
    ),
    ("nothing", |_, _, _| Answer::Empty),
];

fn all_are_in_edition(world: &World, kind: &Kind, edition: u64) -> bool {
    (1..=OBJECTS).all(|number| kind.edition(world, number) == Some(edition))
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_something_else_writes_nothing_and_deletes_nothing() {
    for kind in &KINDS {
        for other in kind.others() {
            for (case, wrong) in WRONG {
                let case = format!("{} asked, {} answered: {case}", kind.name(), other.name());
                let world = kind.in_place(OBJECTS).await;
                let (before, writes) = (world.cluster.uids(), world.cluster.writes());
                world
                    .control_plane
                    .answer_as(move |question| Some(Ok(wrong(kind, other, question))));
                passes(&world, 3).await;
                assert_eq!(world.cluster.uids(), before, "{case}");
                assert_eq!(world.cluster.writes(), writes, "{case}");
                let troubles = world.workers.store().snapshot().troubles;
                assert!(troubles.is_empty(), "{case}: {troubles:?}");
                // What is wanted is known as well as before.
                world.cluster.remove(&kind.reference(3));
                world
                    .until("repaired", |world| all_are_in_edition(world, kind, 1))
                    .await;
            }
        }
    }
}

/// A state as it arrives on the stream of another kind.
fn strayed(other: &Kind, version: u64, number: u64, key: ObjectKey) -> State {
    State {
        key,
        ..other.wants(version, number, 2)
    }
}

fn writes_about(world: &World, object: &ObjectRef) -> usize {
    let is_of_it = |op: &&Op| matches!(op, Op::Apply(it) | Op::Delete(it) if it == object);
    world.cluster.log().iter().filter(is_of_it).count()
}

/// It is set aside under the name it has: the cursor waits for better words about it, nothing else
/// does.
#[tokio::test(start_paused = true)]
async fn a_stream_that_brings_another_kinds_state_makes_nothing_of_it_and_goes_on() {
    for kind in &KINDS {
        for other in kind.others() {
            let case = format!("{} read, {} sent", kind.name(), other.name());
            let world = kind.in_place(OBJECTS).await;
            let before = world.cluster.uids();
            let plane = &world.control_plane;
            // By its own name, and by the name of an object that lives.
            let strays = [other.key(3), kind.key(3)];
            let mut version = OBJECTS;
            for key in &strays {
                version += 1;
                plane.push(strayed(other, version, 3, key.clone()));
            }
            plane.push(kind.wants(version + 1, 4, 3));
            let time = world
                .until("others go on", |world| kind.edition(world, 4) == Some(3))
                .await;
            assert!(time < Duration::from_secs(1), "{case}: {time:?}");
            // Questions are answered with the strays, too.
            passes(&world, 3).await;
            assert_eq!(world.cluster.uids(), before, "{case}");
            let stray = other.reference(3);
            assert_eq!(writes_about(&world, &stray), 0, "{case}");
            assert_eq!(kind.edition(&world, 3), Some(1), "{case}");
            assert_eq!(world.cursor(), OBJECTS, "{case}");
            check_set_aside(&world, &strays, &case);
            for key in strays {
                version += 1;
                let words = if key == kind.key(3) {
                    kind.wants(version + 1, 3, 4)
                } else {
                    State {
                        key,
                        ..kind.unwants(version + 1, 3)
                    }
                };
                plane.push(words);
            }
            world
                .until("all is well", |world| {
                    kind.edition(world, 3) == Some(4) && world.cursor() == version + 1
                })
                .await;
        }
    }
}

fn check_set_aside(world: &World, strays: &[ObjectKey], case: &str) {
    let troubles = world.workers.store().snapshot().troubles;
    for key in strays {
        let work = WorkKey::Workload(key.clone());
        let trouble = troubles.iter().find(|trouble| trouble.key == work);
        let words = trouble.map(|trouble| trouble.trouble.to_string());
        let is_told = words.is_some_and(|words| words.contains("another kind"));
        assert!(is_told, "{case}: {troubles:?}");
    }
    assert_eq!(troubles.len(), strays.len(), "{case}: {troubles:?}");
}

/// A state that makes no sense at all has the same effect, whatever the kind.
#[tokio::test(start_paused = true)]
async fn a_state_that_makes_no_sense_is_set_aside_and_what_lives_is_kept() {
    for kind in &KINDS {
        let world = kind.in_place(OBJECTS).await;
        let before = world.cluster.uids();
        let bad = State {
            change: Err(Invalid::new("message", "makes no sense", "send another")),
            ..kind.wants(OBJECTS + 1, 3, 2)
        };
        world.control_plane.push(bad);
        world.control_plane.push(kind.wants(OBJECTS + 2, 4, 2));
        world
            .until("others go on", |world| kind.edition(world, 4) == Some(2))
            .await;
        passes(&world, 3).await;
        assert_eq!(world.cluster.uids(), before, "{}", kind.name());
        assert_eq!(kind.edition(&world, 3), Some(1), "{}", kind.name());
        assert_eq!(world.cursor(), OBJECTS, "{}", kind.name());
    }
}
