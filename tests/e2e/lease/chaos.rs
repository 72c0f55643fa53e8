//! Pauses, kills and partitions, while states keep coming.

use std::time::{Duration, Instant};

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::samples;
use krane_testharness::{Failure, Outcome, World, eventually, limits};
use parking_lot::Mutex;

use super::{
    proof,
    side::{Side, forget_the_lease},
};
use crate::world;

/// How many faults: more by night.
const FAULTS_VARIABLE: &str = "KRANE_LEASE_FAULTS";
const FAULTS: usize = 60;
/// The seed of a run to be repeated.
const SEED_VARIABLE: &str = "KRANE_LEASE_SEED";
const DEPLOYMENTS: usize = 16;
const NAMESPACES: usize = 4;
/// Between two states.
const PACE: Duration = Duration::from_millis(150);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// States change all the time, each time in a way that costs a write.
async fn feed(world: &World, wanted: &Mutex<Vec<ApplyDeployment>>, seed: u64) -> Outcome {
    let mut random = fastrand::Rng::with_seed(seed);
    loop {
        tokio::time::sleep(PACE).await;
        let changed = {
            let mut wanted = wanted.lock();
            let index = random.usize(..wanted.len());
            wanted[index].cpu_millicores = random.i64(100..1_000);
            wanted[index].clone()
        };
        world.control.push(samples::apply(changed));
    }
}

async fn faults(world: &World, sides: &mut [Side; 2], count: usize, seed: u64) -> Outcome {
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..count {
        tokio::time::sleep(Duration::from_millis(random.u64(50..1_200))).await;
        // The one that leads is hit more often.
        let leader = sides[0].leads().await.unwrap_or_default();
        let who = if random.u8(..4) == 0 {
            usize::from(leader)
        } else {
            usize::from(!leader)
        };
        let time = Duration::from_millis(random.u64(200..4_500));
        let side = &mut sides[who];
        let kind = random.u8(..10);
        println!("{round}: side {who}, fault {kind}, {time:?}");
        match kind {
            0..=3 => side.pause(time).await?,
            4 | 5 => side.kill(world).await?,
            6 => side.restart(world).await?,
            7 | 8 => side.part(time).await,
            9 if random.bool() => side.refuse(time).await,
            _ => side.lose_answers(time).await,
        }
    }
    Ok(())
}

/// S4: no write starts after the deadline of its process's lease, whatever happens to the two; at
/// most the one under way at a pause comes late; and in the end the cluster is as wanted.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_two_processes_only_the_holder_writes() -> Outcome {
    let count =
        number(FAULTS_VARIABLE).map_or(FAULTS, |count| usize::try_from(count).unwrap_or(FAULTS));
    let seed = number(SEED_VARIABLE).unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("{count} faults; {SEED_VARIABLE}={seed} repeats them");
    let world = world().await?;
    forget_the_lease(&world).await?;
    let mark = world.mark()?;
    let wanted = Mutex::new(world.deployments(DEPLOYMENTS, NAMESPACES));
    world.push_all(&wanted.lock().clone());
    let mut sides = [
        Side::start(&world, "a").await?,
        Side::start(&world, "b").await?,
    ];
    one_leads(&sides).await?;
    let began = Instant::now();
    tokio::select! {
        done = faults(&world, &mut sides, count, seed) => done?,
        fed = feed(&world, &wanted, seed) => fed?,
    }
    println!("{count} faults took {:?}", began.elapsed());
    let began = Instant::now();
    one_leads(&sides).await?;
    let wanted = wanted.into_inner();
    world
        .settles("all is as wanted", &wanted, &[], limits::LONG)
        .await?;
    eventually(
        "every object is of its newest state",
        limits::LONG,
        async || equals(&world, &wanted).await,
    )
    .await?;
    println!("settled {:?} after the last fault", began.elapsed());
    let mut lives = Vec::new();
    for side in sides {
        lives.extend(side.stop().await?);
    }
    let entries = world.requests(mark)?;
    let proof = proof::check(&entries, &lives).map_err(Failure::new)?;
    println!("{} processes, {proof:?}", lives.len());
    assert!(
        proof.writes > count && proof.handovers > count / 10,
        "{proof:?}"
    );
    Ok(())
}

/// Whether each ReplicaSet has what its newest state wants.
async fn equals(world: &World, wanted: &[ApplyDeployment]) -> Result<(), String> {
    let live = world.live().await.map_err(|failure| failure.to_string())?;
    for state in wanted {
        let name = (state.k8s_namespace.clone(), state.k8s_name.clone());
        let set = serde_json::to_value(live.replica_sets.get(&name));
        let set = set.map_err(|error| error.to_string())?;
        let cpu = &set["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"];
        let expected = format!("{}m", state.cpu_millicores);
        if *cpu != expected {
            return Err(format!("{name:?} has {cpu}, wanted is {expected}"));
        }
    }
    Ok(())
}

async fn one_leads(sides: &[Side; 2]) -> Outcome {
    eventually("exactly one leads", limits::SHORT, async || {
        let mut leading = 0;
        for side in sides {
            let leads = side.leads().await.map_err(|failure| failure.to_string())?;
            leading += u32::from(leads);
        }
        (leading == 1)
            .then_some(())
            .ok_or_else(|| format!("{leading} lead"))
    })
    .await
}
