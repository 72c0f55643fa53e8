//! Sentinels whose pod template another renderer made: their pods would roll (D44).

use super::*;

/// The Deployment of a sentinel.
fn deployment(number: u64) -> ObjectRef {
    sentinels().reference(number)
}

fn sentinels() -> &'static Kind {
    let mut kinds = KINDS.iter();
    let is_theirs = |kind: &&Kind| kind.controller.primary() == Resource::Deployment;
    kinds.find(is_theirs).expect("a kind")
}

/// So many sentinels whose pods run what an earlier krane rendered from the states that are wanted.
async fn left_running(count: u64, may_upgrade: bool) -> World {
    let (cluster, control_plane) = (FakeCluster::default(), FakeControlPlane::default());
    for number in 1..=count {
        let rendered = desired(sentinels(), number).render(&Rules::default(), None);
        cluster.put(&rendered, |body| {
            body["metadata"]["annotations"]["krane.unkey.com/renderer"] = json!("1");
            body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(61);
        });
        cluster.roll_out(&rendered.reference, true);
        control_plane.push(sentinels().wants(number, number, 1));
    }
    let choices = Choices {
        controller: sentinels().controller,
        may_upgrade,
        ..Choices::default()
    };
    World::start_with(choices, cluster, control_plane).await
}

/// The sentinels whose pods have rolled, or do.
fn rolled(world: &World) -> Vec<u64> {
    let runs_older = |number: &u64| {
        let live = world.cluster.object(&deployment(*number)).expect("live");
        let grace = "/spec/template/spec/terminationGracePeriodSeconds";
        live.value().pointer(grace) == Some(&json!(61))
    };
    (1..=4).filter(|number| !runs_older(number)).collect()
}

fn waiting(world: &World) -> usize {
    world.memory(|memory| memory.rolls.waiting())
}

#[tokio::test(start_paused = true)]
async fn sentinels_roll_one_at_a_time_and_the_next_when_the_last_is_available() {
    let world = left_running(4, true).await;
    world.until("applied", |world| world.cursor() == 4).await;
    assert_eq!((rolled(&world), waiting(&world)), (vec![], 4), "they run");
    world.until("one", |world| rolled(world) == [1]).await;
    assert_eq!(waiting(&world), 3);
    world.pass(100).await;
    assert_eq!(rolled(&world), [1], "it is not available yet");
    world.cluster.roll_out(&deployment(1), false);
    world.pass(100).await;
    assert_eq!(rolled(&world), [1], "one of its pods is not");
    world.cluster.roll_out(&deployment(1), true);
    world.until("two", |world| rolled(world) == [1, 2]).await;
    world.cluster.remove(&deployment(2));
    world.pass(5).await;
    for number in 2..=4 {
        world.cluster.roll_out(&deployment(number), true);
        world.pass(20).await;
    }
    assert_eq!((rolled(&world), waiting(&world)), (vec![1, 2, 3, 4], 0));
    let repaired = world.scrape();
    assert!(
        !repaired.contains("krane_drift_repaired_total{controller=\"sentinels\"} 4"),
        "nobody drifted"
    );
}

#[tokio::test(start_paused = true)]
async fn with_upgrades_off_they_wait_and_are_counted_until_the_control_plane_wants_another() {
    let world = left_running(4, false).await;
    world.until("applied", |world| world.cursor() == 4).await;
    world.pass(100).await;
    assert_eq!((rolled(&world), waiting(&world)), (vec![], 4));
    let metric = "krane_objects_to_upgrade{controller=\"sentinels\"} 4";
    // Its collector belongs to the server; the number is the store's.
    assert_eq!(world.to_upgrade(), 4, "{metric}");
    world.control_plane.push(sentinels().wants(5, 3, 2));
    world.until("applied", |world| world.cursor() == 5).await;
    assert_eq!((rolled(&world), waiting(&world)), (vec![3], 3));
    let explained = |number| world.workers.store().explain(&sentinels().key(number), 0);
    let waits = |number| {
        let objects = explained(number).expect("wanted").objects;
        let primary = objects
            .into_iter()
            .find(|it| it.reference == deployment(number));
        primary
            .and_then(|it| it.explanation)
            .is_some_and(|it| it.waits_to_roll)
    };
    assert_eq!((waits(2), waits(3)), (true, false), "and shown");
}

/// The process that let one roll is gone; what rolls is not.
#[tokio::test(start_paused = true)]
async fn after_a_restart_the_next_waits_for_the_one_that_rolls() {
    let mut world = left_running(4, true).await;
    world.until("one", |world| rolled(world) == [1]).await;
    world.reboot().await;
    world.pass(20).await;
    assert_eq!((rolled(&world), waiting(&world)), (vec![1], 3));
    world.cluster.roll_out(&deployment(1), true);
    world.until("two", |world| rolled(world) == [1, 2]).await;
}

/// One that fails must not hold up the others.
#[tokio::test(start_paused = true)]
async fn a_sentinel_that_cannot_be_written_gives_its_turn_to_the_next() {
    use crate::testing::cluster::Fault;
    use krane_domain::refusal::RefusalClass;

    let world = left_running(4, true).await;
    world.until("applied", |world| world.cursor() == 4).await;
    let first: Arc<ObjectRef> = Arc::new(deployment(1));
    world.cluster.fault(move |op| {
        let is_refused = matches!(op, Op::Apply(object) if *object == *first);
        is_refused.then_some(Fault::Refuse(RefusalClass::Permanent))
    });
    world.until("another", |world| rolled(world) == [2]).await;
    world.cluster.heal();
    for number in 2..=4 {
        world.cluster.roll_out(&deployment(number), true);
        world.pass(20).await;
    }
    world
        .until("all", |world| rolled(world) == [1, 2, 3, 4])
        .await;
}
