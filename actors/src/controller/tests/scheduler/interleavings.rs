//! A call and a state for one object never race, in whatever order and however slow the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krane_domain::object::ObjectRef;
use krane_domain::refusal::RefusalClass;
use krane_domain::scheduler::CallFailureKind;
use krane_ports::SchedulerDesk;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{apply, delete, desk, image, kind, mark, with_image};
use crate::controller::tests::harness::World;
use crate::testing::cluster::Fault;
use crate::testing::{Op, unwants, wants};

/// Every request takes this long: two about one object that begin within it are a race.
const CALL_TIME: Duration = Duration::from_millis(40);
const SEEDS: u64 = 60;

type Requests = Arc<Mutex<BTreeMap<ObjectRef, Instant>>>;

/// Notes when requests about each object begin; some fail.
fn watch_for_races(world: &World, seed: u64) -> Arc<Mutex<Vec<String>>> {
    let (last, races) = (Requests::default(), Arc::<Mutex<Vec<String>>>::default());
    let told = Arc::clone(&races);
    let mut chance = fastrand::Rng::with_seed(seed ^ 0xfa17);
    world.cluster.fault(move |op| {
        let (Op::Apply(object)
        | Op::Adopt(object)
        | Op::Delete(object)
        | Op::Metadata(object)
        | Op::Get(object)) = op;
        let now = Instant::now();
        let before = last.lock().insert(object.clone(), now);
        if before.is_some_and(|before| now - before < CALL_TIME) {
            told.lock().push(format!("{op:?}"));
        }
        (chance.u8(..) < 20).then_some(Fault::Refuse(RefusalClass::Transient))
    });
    races
}

#[tokio::test(start_paused = true)]
async fn calls_and_states_in_any_order() {
    let mut answers = BTreeMap::<Option<CallFailureKind>, usize>::new();
    for seed in 0..SEEDS {
        let mut chance = fastrand::Rng::with_seed(seed);
        let world = World::start().await;
        let desk = desk(&world).await;
        world.cluster.set_call_time(CALL_TIME);
        let races = watch_for_races(&world, seed);
        let mut calls = JoinSet::new();
        let mut states: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut called: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut version = 0;
        for step in 0..40 {
            let name = format!("d{}", chance.u8(..3));
            let wanted = chance.bool().then(|| format!("app:{step}"));
            if chance.u8(..10) < 2 {
                version += 1;
                world.control_plane.push(match &wanted {
                    Some(image) => wants(version, with_image(&name, image)),
                    None => unwants(version, "ns", &name),
                });
                states.insert(name, wanted);
            } else {
                let call = match &wanted {
                    Some(image) => apply(with_image(&name, image)),
                    None => delete(&name),
                };
                called.insert(name, wanted);
                let desk = desk.clone();
                calls.spawn(async move { desk.call(call).await });
            }
            crate::testing::pass(Duration::from_millis(chance.u64(..150))).await;
        }
        while let Some(answer) = calls.join_next().await {
            let answer = kind(answer.expect("no call panics"));
            *answers.entry(answer).or_default() += 1;
        }
        world.cluster.heal();
        world
            .until("settled", |world| {
                let (trouble, unapplied) = world.memory(|memory| {
                    let backlog = &memory.backlog;
                    let busy = backlog.in_flight() + backlog.ready();
                    (backlog.in_trouble().count() + busy, backlog.unapplied())
                });
                trouble + unapplied == 0
            })
            .await;
        assert_eq!(*races.lock(), Vec::<String>::new(), "seed {seed}");
        assert_eq!(world.cursor(), version, "seed {seed}");
        for (name, wanted) in &called {
            let (wanted, marked) = match states.get(name) {
                Some(wanted) => (wanted, None),
                None => (wanted, wanted.as_ref().map(|_| "scheduler")),
            };
            assert_eq!(&image(&world, name), wanted, "seed {seed}: {name}");
            assert_eq!(mark(&world, name).as_deref(), marked, "seed {seed}: {name}");
        }
    }
    // What may become of a call, each of it often.
    for answer in [
        None,
        Some(CallFailureKind::FailedPrecondition),
        Some(CallFailureKind::Aborted),
        Some(CallFailureKind::Unavailable),
    ] {
        let times = answers.get(&answer).copied().unwrap_or_default();
        assert!(times > 20, "{answer:?}: {answers:?}");
    }
}
