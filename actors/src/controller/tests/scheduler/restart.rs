//! After a restart the scheduler's objects are kept as they are, until it calls again.

use krane_ports::SchedulerDesk;
use serde_json::json;

use super::{apply, delete, desk, image, mark, rendered, with_image};
use crate::controller::tests::harness::World;
use crate::testing::{input, wants};

#[tokio::test(start_paused = true)]
async fn they_are_neither_asked_about_nor_deleted_nor_repaired_until_the_next_call() {
    let mut world = World::start().await;
    world.control_plane.push(wants(1, input("ns", "theirs")));
    let calls = desk(&world).await;
    for number in 0..5 {
        let name = format!("d{number}");
        assert_eq!(calls.call(apply(with_image(&name, "app:1"))).await, Ok(()));
    }
    let edited = rendered(&world, "d0");
    world.reboot().await;
    world.until("replayed", |world| world.cursor() == 1).await;
    let writes = world.cluster.writes();
    world.cluster.put(&edited, |body| {
        body["spec"]["template"]["spec"]["containers"][0]["image"] = json!("edited:1");
    });
    // Many passes, and two full replays.
    world.pass(1500).await;
    assert_eq!(world.cluster.writes(), writes);
    assert_eq!(world.cluster.workloads(), 6);
    assert_eq!(image(&world, "d0").as_deref(), Some("edited:1"));
    for number in 0..5 {
        assert_eq!(world.control_plane.asked(&format!("d_d{number}")), []);
        assert_eq!(world.control_plane.last_report(&format!("d{number}")), None);
    }
    assert!(!world.control_plane.asked("d_theirs").is_empty());
    let held = world.memory(|memory| memory.brake.held().len());
    assert_eq!(held, 0);

    let calls = desk(&world).await;
    assert_eq!(calls.call(apply(with_image("d0", "app:1"))).await, Ok(()));
    assert_eq!(image(&world, "d0").as_deref(), Some("app:1"));
    assert_eq!(calls.call(delete("d1")).await, Ok(()));
    assert_eq!(world.cluster.workloads(), 5);
    world.cluster.put(&edited, |body| {
        body["spec"]["template"]["spec"]["containers"][0]["image"] = json!("edited:2");
    });
    let is_repaired = |world: &World| image(world, "d0").as_deref() == Some("app:1");
    world.until("repaired again", is_repaired).await;
}

/// Their pods stay isolated: the policy is made for what is live, too (D18).
#[tokio::test(start_paused = true)]
async fn their_isolation_is_kept() {
    let mut world = World::start().await;
    assert_eq!(
        desk(&world).await.call(apply(input("ns", "a"))).await,
        Ok(())
    );
    let policies = |world: &World| {
        let objects = world.cluster.objects().into_iter();
        objects
            .filter(|live| {
                live.reference.resource == krane_domain::object::Resource::CiliumNetworkPolicy
            })
            .collect::<Vec<_>>()
    };
    let [policy] = &policies(&world)[..] else {
        panic!("one policy");
    };
    world.reboot().await;
    world.pass(20).await;
    world.cluster.remove(&policy.reference);
    world
        .until("made again", |world| policies(world).len() == 1)
        .await;
    world.pass(1500).await;
    assert_eq!(policies(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_state_takes_them_over_after_a_restart_too() {
    let mut world = World::start().await;
    assert_eq!(
        desk(&world).await.call(apply(input("ns", "a"))).await,
        Ok(())
    );
    world.reboot().await;
    world.control_plane.push(wants(1, input("ns", "a")));
    world.until("taken over", |world| world.cursor() == 1).await;
    assert_eq!(mark(&world, "a"), None);
    world
        .until("reported", |world| {
            world.control_plane.last_report("a").is_some()
        })
        .await;
}
