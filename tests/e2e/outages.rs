//! One side goes away and comes back.

use std::time::{Duration, Instant};

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Code, Kind, Method, samples};
use krane_testcluster::{Component, Options};
use krane_testharness::{Agent, Outcome, Quiet, World, eventually, limits};
use tokio::time::sleep;

use crate::KRANE;

const DEPLOYMENTS: usize = 60;
const NAMESPACES: usize = 12;

/// What changes while somebody is away: ten edits, ten new ones, five gone.
struct Changes {
    wanted: Vec<ApplyDeployment>,
    gone: Vec<ApplyDeployment>,
}

async fn settled_world(world: &World) -> Outcome<(Agent, Vec<ApplyDeployment>)> {
    let wanted = world.deployments(DEPLOYMENTS, NAMESPACES);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    world
        .settles("all run and are reported", &wanted, &[], limits::VERY_LONG)
        .await?;
    Ok((agent, wanted))
}

fn change(world: &World, mut wanted: Vec<ApplyDeployment>) -> Changes {
    for deployment in &mut wanted[..10] {
        deployment.memory_mib = 512;
        world.control.push(samples::apply(deployment.clone()));
    }
    let new = world
        .deployments(DEPLOYMENTS + 10, NAMESPACES)
        .split_off(DEPLOYMENTS);
    world.push_all(&new);
    let gone = wanted.split_off(DEPLOYMENTS - 5);
    world.control.push_all(gone.iter().map(samples::delete));
    wanted.extend(new);
    Changes { wanted, gone }
}

/// Waits until specs are as wanted, whatever pods and reports do; then until everything is.
/// The last figure is how long reports lag behind the cluster, whose own controllers have to recover, too.
async fn catches_up(world: &World, changes: &Changes, since: Instant) -> Outcome<[Duration; 3]> {
    let Changes { wanted, gone } = changes;
    eventually("everything is applied", limits::LONG, async || {
        let live = world.live().await.map_err(|failure| failure.to_string())?;
        let limit = |namespace: &String, name: &String| {
            let set = live.replica_sets.get(&(namespace.clone(), name.clone()))?;
            let spec = set.spec.as_ref()?.template.as_ref()?.spec.as_ref()?;
            spec.containers
                .first()?
                .resources
                .as_ref()?
                .limits
                .as_ref()?
                .get("memory")
                .cloned()
        };
        let open = wanted.iter().filter(|state| {
            let memory = limit(&state.k8s_namespace, &state.k8s_name);
            memory.map(|memory| memory.0) != Some(format!("{}Mi", state.memory_mib))
        });
        match (open.count(), live.replica_sets.len() == wanted.len()) {
            (0, true) => Ok(()),
            (open, _) => Err(format!("{open} open, {} there", live.replica_sets.len())),
        }
    })
    .await?;
    let applied = since.elapsed();
    eventually(
        "the cluster's own controllers have made the pods",
        limits::LONG,
        async || {
            let live = world.live().await.map_err(|failure| failure.to_string())?;
            let behind = live.replica_sets.values().filter(|set| {
                let status = set.status.as_ref().map(|status| status.replicas);
                status != set.spec.as_ref().and_then(|spec| spec.replicas)
            });
            match behind.count() {
                0 => Ok(()),
                count => Err(format!("{count} are behind")),
            }
        },
    )
    .await?;
    let made = Instant::now();
    // Nodes that could not renew their leases have pods that are not Ready.
    world
        .is_told_truly("everything is reported", wanted, gone, limits::LONG)
        .await?;
    Ok([applied, since.elapsed(), made.elapsed()])
}

/// rabbitmq/cluster-operator#709 (B11): the agent ended when the API server did, and rolled everything on its return.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_was_killed_finds_krane_alive_and_catching_up() -> Outcome {
    let world = World::own(KRANE, Options::default(), Quiet::Beside).await?;
    let (mut agent, wanted) = settled_world(&world).await?;
    let untouched = world.live().await?;
    world.cluster().kill_api_server()?;
    let killed = Instant::now();
    let changes = change(&world, wanted);
    sleep(Duration::from_secs(20)).await;
    world.cluster().start_api_server().await?;
    let ready = Instant::now();
    println!("API server away for {:?}", ready - killed);
    let [applied, reported, lag] = catches_up(&world, &changes, ready).await?;
    println!(
        "after it was ready: applied {applied:?}, reported {reported:?}, {lag:?} of it after the last pod was made"
    );
    assert!(agent.is_running());
    // No pod of a workload that was not changed was replaced.
    let live = world.live().await?;
    for state in &changes.wanted[10..DEPLOYMENTS - 5] {
        let key = (state.k8s_namespace.clone(), state.k8s_name.clone());
        let uid = |live: &krane_testharness::Live| {
            let pods = live
                .replica_sets
                .get(&key)
                .map(|set| live.pods_of(set).to_vec());
            pods.into_iter()
                .flatten()
                .map(|pod| pod.metadata.uid)
                .collect::<Vec<_>>()
        };
        assert_eq!(uid(&untouched), uid(&live), "{key:?}");
    }
    agent.stop().await
}

/// (F31) The startup probe killed krane when the API server was away for a minute. What it asks must not depend
/// on the API server at all: then no length of the outage matters.
#[tokio::test(flavor = "multi_thread")]
async fn without_an_api_server_krane_has_started_and_is_ready_once_it_is_there() -> Outcome {
    let world = World::own(KRANE, Options::default(), Quiet::Beside).await?;
    let wanted = world.deployments(3, 1);
    world.push_all(&wanted);
    world.cluster().kill_api_server()?;
    let mut agent = world.agent().spawn()?;
    let status = async |which: &str| agent.health(which).await.map(|(code, _)| code);
    eventually("it has started", limits::SHORT, async || {
        match status("startup").await {
            Ok(200) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    // Longer than any backoff, with every list failing meanwhile.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        assert_eq!(status("startup").await?, 200);
        assert_eq!(status("live").await?, 200);
        assert_eq!(status("ready").await?, 503);
        sleep(Duration::from_millis(200)).await;
    }
    world.cluster().start_api_server().await?;
    agent.ready(limits::LONG).await?;
    world
        .settles("all run and are reported", &wanted, &[], limits::LONG)
        .await?;
    assert!(agent.is_running());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_api_server_finds_krane_alive_and_catching_up() -> Outcome {
    let world = World::own(KRANE, Options::default(), Quiet::Beside).await?;
    let (mut agent, wanted) = settled_world(&world).await?;
    world.cluster().pause(Component::ApiServer)?;
    let changes = change(&world, wanted);
    sleep(Duration::from_secs(20)).await;
    world.cluster().resume(Component::ApiServer)?;
    let [applied, reported, lag] = catches_up(&world, &changes, Instant::now()).await?;
    println!(
        "after SIGCONT of the API server: applied {applied:?}, reported {reported:?}, {lag:?} of it after the last pod was made"
    );
    assert!(agent.is_running());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_that_was_killed_finds_krane_alive_and_catching_up() -> Outcome {
    let world = crate::world().await?;
    let (mut agent, wanted) = settled_world(&world).await?;
    world.control.stop().await;
    let changes = change(&world, wanted);
    sleep(Duration::from_secs(30)).await;
    world.control.start_again().await?;
    let [applied, reported, lag] = catches_up(&world, &changes, Instant::now()).await?;
    println!(
        "after the control plane was back: applied {applied:?}, reported {reported:?}, {lag:?} of it after the last pod was made"
    );
    assert!(agent.is_running());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_control_plane_finds_krane_alive_and_catching_up() -> Outcome {
    let world = crate::world().await?;
    let (mut agent, wanted) = settled_world(&world).await?;
    world.control.freeze();
    let changes = change(&world, wanted);
    sleep(Duration::from_secs(20)).await;
    world.control.thaw();
    let [applied, reported, lag] = catches_up(&world, &changes, Instant::now()).await?;
    println!(
        "after the control plane thawed: applied {applied:?}, reported {reported:?}, {lag:?} of it after the last pod was made"
    );
    assert!(agent.is_running());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_agent_catches_up_when_it_goes_on() -> Outcome {
    let world = crate::world().await?;
    let (agent, wanted) = settled_world(&world).await?;
    agent.pause()?;
    let changes = change(&world, wanted);
    sleep(Duration::from_secs(20)).await;
    agent.resume()?;
    let [applied, reported, lag] = catches_up(&world, &changes, Instant::now()).await?;
    println!(
        "after SIGCONT of the agent: applied {applied:?}, reported {reported:?}, {lag:?} of it after the last pod was made"
    );
    agent.stop().await
}

/// connectrpc/connect-es#463, bvis/aegis-hass PR #247, restatedev/restate PR #3816 (B38): the link drops silently,
/// the reader waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_silently_dead_link_is_replaced_and_the_cursor_is_kept() -> Outcome {
    let world = crate::world().await?;
    let mut wanted = world.deployments(3, 1);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    let newest = world.control.newest(Kind::Deployments);
    world.control.blackhole();
    let started = Instant::now();
    wanted[0].memory_mib = 512;
    world.control.push(samples::apply(wanted[0].clone()));
    world
        .settles("the change is applied", &wanted, &[], limits::LONG)
        .await?;
    println!("applied {:?} after the link went dead", started.elapsed());
    let two = |seen: &krane_sim::control_plane::Seen| {
        let cursors = seen.cursors(Kind::Deployments);
        (cursors.len() == 2).then_some(cursors)
    };
    let cursors = world
        .control
        .wait_for("the next stream", limits::SHORT, two)
        .await?;
    assert_eq!(cursors, [0, newest]);
    agent.stop().await
}

/// unkeyed/unkey e8385fab29, PR #4782 (A06): the code a stream ended with was never looked at.
#[tokio::test(flavor = "multi_thread")]
async fn every_end_of_a_stream_is_counted_by_code_and_followed_by_a_calm_reconnect() -> Outcome {
    let world = crate::world().await?;
    let watch = Method::Watch(Kind::Deployments);
    for code in [Code::Unauthenticated, Code::PermissionDenied, Code::Ok] {
        world.control.fail(watch, code, u32::MAX);
        let others = [Kind::Sentinels, Kind::Policies];
        let opened = |seen: &krane_sim::control_plane::Seen| {
            others.map(|kind| seen.of(Method::Watch(kind)).count())
        };
        let before_start = world.control.look(opened);
        let agent = world.agent().start().await?;
        let before = world.control.look(|seen| seen.of(watch).count());
        let arrivals = |seen: &krane_sim::control_plane::Seen| {
            let all: Vec<Instant> = seen
                .of(watch)
                .skip(before)
                .map(|request| request.at)
                .collect();
            (all.len() >= 4).then_some(all)
        };
        let arrivals = world
            .control
            .wait_for("three reconnects", limits::LONG, arrivals)
            .await?;
        for pair in arrivals.windows(2) {
            let pause = pair[1] - pair[0];
            assert!(
                pause >= Duration::from_millis(990),
                "{code:?}: again after {pause:?}"
            );
        }
        let others = world.control.look(opened);
        assert_eq!(others, before_start.map(|count| count + 1), "{code:?}");
        let name = if code == Code::Unauthenticated {
            "unauthenticated"
        } else if code == Code::PermissionDenied {
            "permission_denied"
        } else {
            "ok"
        };
        let metrics = agent.metrics().await?;
        let ends = metrics.get(&format!(
            "krane_stream_ends_total{{code=\"{name}\",controller=\"deployments\"}}"
        ));
        assert!(ends.unwrap_or(0.0) >= 2.0, "{name}: {ends:?}");
        let lines = agent.log().lines()?;
        let told = lines
            .iter()
            .filter(|line| line.json().to_string().contains(name))
            .count();
        assert!(
            (1..=4).contains(&told),
            "told once per cause, not at each end: {told}"
        );
        agent.stop().await?;
    }
    world.control.heal();
    Ok(())
}
