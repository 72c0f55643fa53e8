//! kill -9, over and over.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use krane_sim::control_plane::{Kind, Seen};
use krane_testharness::{Action, Call, Outcome, Proxy, limits};

use crate::world;

const DEPLOYMENTS: usize = 200;
const NAMESPACES: usize = 40;
const KILLS: usize = 20;
/// Most writes of one process before it is killed: together fewer than all it takes.
const MOST_WRITES: usize = 20;

/// Sieve's intermediate states: whatever a crash interrupts, the next start finishes. Half of the
/// kills meet requests that never arrived, half meet requests that took effect and were not answered.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_amid_two_hundred_applies_leave_no_trace() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(DEPLOYMENTS, NAMESPACES);
    world.push_all(&wanted);
    let mut random = fastrand::Rng::with_seed(20);
    let proxy = Proxy::start(&world).await?;
    for round in 0..KILLS {
        let last = if round % 2 == 0 {
            Action::Hang
        } else {
            Action::Swallow
        };
        let writes = random.usize(0..=MOST_WRITES);
        let seen = Arc::new(AtomicUsize::new(0));
        proxy.script({
            let seen = Arc::clone(&seen);
            move |call: &Call| {
                if call.is_write() && seen.fetch_add(1, Ordering::Relaxed) >= writes {
                    last.clone()
                } else {
                    Action::Pass
                }
            }
        });
        let mut agent = world.agent().kubeconfig(proxy.kubeconfig()).spawn()?;
        proxy
            .wait_for("the write that is the last", limits::LONG, |_| {
                (seen.load(Ordering::Relaxed) > writes).then_some(())
            })
            .await?;
        agent.kill().await?;
    }
    let before = world.live().await?.replica_sets.len();
    println!("{before} of {DEPLOYMENTS} were applied by {KILLS} processes that were killed");
    assert!(
        before < DEPLOYMENTS,
        "every kill must find work to interrupt"
    );

    let agent = world.agent().start().await?;
    world
        .settles("all is as wanted", &wanted, &[], limits::VERY_LONG)
        .await?;
    let cursors = world
        .control
        .look(|seen: &Seen| seen.cursors(Kind::Deployments));
    assert_eq!(cursors, vec![0; KILLS + 1], "a new process starts at 0");
    agent.stop().await
}
