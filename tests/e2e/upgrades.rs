//! What an earlier version of krane left is taken over as it runs, and rewritten piece by piece
//! (D16).

mod older;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use krane_proto::ctrl::v1::{ApplyCiliumNetworkPolicy, ApplyDeployment, ApplySentinel};
use krane_sim::control_plane::samples;
use krane_testcluster::AuditEntry;
use krane_testharness::{Agent, Outcome, World, eventually, limits};
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use crate::sentinels::{NAMESPACE, all_five, has, sentinel, settled_cursor};
use crate::world;

/// Of each kind.
const EACH: usize = 6;
const SECOND: Duration = Duration::from_secs(1);
/// In a second, all controllers together.
const MOST_WRITES: usize = 10;

struct Wanted {
    workloads: Vec<ApplyDeployment>,
    sentinels: Vec<ApplySentinel>,
    policies: Vec<ApplyCiliumNetworkPolicy>,
    /// The newest versions: of workloads, sentinels and policies.
    newest: [u64; 3],
}

impl Wanted {
    fn push(world: &World) -> Self {
        let workloads = world.deployments(EACH, 2);
        let sentinels: Vec<_> = (0..EACH)
            .map(|number| sentinel(world, &format!("s{number}"), &format!("e{}", number / 2)))
            .collect();
        let policies: Vec<_> = (0..EACH)
            .map(|number| samples::policy(&world.namespace(number % 2), &format!("p{number}")))
            .collect();
        let mut newest = [0; 3];
        for one in &workloads {
            newest[0] = world.control.push(samples::apply(one.clone()));
        }
        for one in &sentinels {
            newest[1] = world.control.push(samples::apply_sentinel(one.clone()));
        }
        for one in &policies {
            newest[2] = world.control.push(samples::apply_policy(one.clone()));
        }
        Self {
            workloads,
            sentinels,
            policies,
            newest,
        }
    }

    /// Everything is as wanted, as far as krane knows.
    async fn are_in_place(&self, agent: &Agent) -> Outcome {
        for (controller, version) in ["deployments", "sentinels", "cilium"]
            .iter()
            .zip(self.newest)
        {
            settled_cursor(agent, controller, version).await?;
        }
        Ok(())
    }
}

/// Name and uid of every pod that is not on its way out.
async fn pods(world: &World) -> Outcome<BTreeMap<String, String>> {
    let pods = world.api.all::<Pod>().list(&ListParams::default()).await?;
    let living = pods
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(living
        .map(|pod| (pod.name_any(), pod.uid().unwrap_or_default()))
        .collect())
}

/// Each sentinel runs as its Deployment now says, and nothing of before is left.
async fn have_rolled(world: &World, wanted: &Wanted) -> Outcome {
    let deployments = world.api.within::<Deployment>(NAMESPACE);
    for one in &wanted.sentinels {
        let what = format!("{} has rolled", one.k8s_name);
        eventually(&what, limits::VERY_LONG, async || {
            let live = deployments.get(&one.k8s_name).await;
            let live = live.map_err(|error| error.to_string())?;
            let status = live.status.unwrap_or_default();
            let all = Some(one.replicas);
            let is_so = status.observed_generation == live.metadata.generation
                && status.updated_replicas == all
                && status.replicas == all
                && status.available_replicas == all;
            is_so.then_some(()).ok_or_else(|| format!("{status:?}"))
        })
        .await?;
    }
    Ok(())
}

/// The most of them that came within this time.
fn most_within(time: Duration, writes: &[AuditEntry]) -> usize {
    let mut times: Vec<_> = writes.iter().map(|write| write.received).collect();
    times.sort();
    let within = |(index, first)| {
        let soon = times[index..].iter();
        soon.take_while(|at| at.duration_since(first).unsigned_abs() < time)
            .count()
    };
    let starts = times.iter().copied().enumerate();
    starts.map(within).max().unwrap_or_default()
}

/// How often each object was written.
fn per_object(writes: &[AuditEntry]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for write in writes {
        let object = format!("{} {}/{}", write.resource, write.namespace, write.name);
        *counts.entry(object).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_version_left_runs_on_and_is_rewritten_slowly_or_not_at_all() -> Outcome {
    let world = world().await?;
    let mut wanted = Wanted::push(&world);
    let agent = world.agent().start().await?;
    wanted.are_in_place(&agent).await?;
    world
        .settles("workloads run", &wanted.workloads, &[], limits::LONG)
        .await?;
    for one in &wanted.sentinels {
        has(&world, one, &all_five(&one.k8s_name)).await?;
    }
    agent.stop().await?;
    let made_older = older::make(&world, &wanted).await?;
    have_rolled(&world, &wanted).await?;
    let pods_before = pods(&world).await?;
    let objects_before = older::left(&world).await?;
    assert_eq!(objects_before.len(), made_older);
    println!(
        "{made_older} objects as an earlier version left them, {} pods",
        pods_before.len()
    );

    // Paused: what only looks older stays, what changes is written with all that is new.
    let mark = world.mark()?;
    let agent = world.agent().set("safety.upgrades", "off").start().await?;
    wanted.are_in_place(&agent).await?;
    let writes = world.writes(mark)?;
    assert!(writes.is_empty(), "{writes:#?}");
    change_one_of_each(&world, &mut wanted);
    wanted.are_in_place(&agent).await?;
    let left = older::left(&world).await?;
    let changed: Vec<&String> = objects_before
        .keys()
        .filter(|it| !left.contains_key(*it))
        .collect();
    println!("changed while paused: {changed:#?}");
    assert!(changed.len() >= 3, "one of each kind");
    for object in changed {
        let is_of_them = ["x0", "-s0", "p0"]
            .iter()
            .any(|end| object.ends_with(end) || object.ends_with(&format!("{end}-gossip-lan")));
        assert!(is_of_them, "{object} has not changed, and was written");
    }
    agent.stop().await?;

    let mark = world.mark()?;
    let began = Instant::now();
    let agent = world.agent().start().await?;
    wanted.are_in_place(&agent).await?;
    eventually("nothing looks older", limits::VERY_LONG, async || {
        let left = older::left(&world).await;
        match left.map_err(|failure| failure.to_string())?.len() {
            0 => Ok(()),
            left => Err(format!("{left} do")),
        }
    })
    .await?;
    let writes = world.writes(mark)?;
    // A busy machine bunches them a little.
    let most = most_within(2 * SECOND, &writes);
    println!(
        "{} objects rewritten in {:?}, at most {most} in two seconds",
        left.len(),
        began.elapsed()
    );
    assert!(most <= 2 * MOST_WRITES, "{most} writes in two seconds");
    let written = per_object(&writes);
    assert_eq!(written.len(), left.len(), "{written:#?}");
    // Two controllers look after a namespace.
    let is_once = |(object, count): (&String, &usize)| {
        *count == 1 || (*count == 2 && object.starts_with("namespaces "))
    };
    assert!(written.iter().all(is_once), "{written:#?}");
    assert!(
        writes.iter().all(|write| write.verb == "patch"),
        "{writes:#?}"
    );
    let pods_after = pods(&world).await?;
    let restarted: Vec<_> = pods_before
        .iter()
        .filter(|(name, uid)| pods_after.get(*name) != Some(uid))
        .collect();
    assert!(restarted.is_empty(), "{restarted:?}");
    agent.stop().await
}

/// Nothing that restarts a pod.
fn change_one_of_each(world: &World, wanted: &mut Wanted) {
    let workload = &mut wanted.workloads[0];
    workload.replicas += 1;
    wanted.newest[0] = world.control.push(samples::apply(workload.clone()));
    let sentinel = &mut wanted.sentinels[0];
    sentinel.replicas += 1;
    wanted.newest[1] = world
        .control
        .push(samples::apply_sentinel(sentinel.clone()));
    let policy = &mut wanted.policies[0];
    let spec = json!({"spec": {"endpointSelector": {}, "ingress": []}});
    policy.policy = spec.to_string().into_bytes().into();
    wanted.newest[2] = world.control.push(samples::apply_policy(policy.clone()));
}
