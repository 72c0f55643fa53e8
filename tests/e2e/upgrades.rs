//! What an earlier version of krane left is taken over as it runs, and rewritten last in line; its
//! sentinels roll one at a time, or not at all (D44).

mod older;

use std::collections::BTreeMap;
use std::time::Instant;

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
async fn what_an_earlier_version_left_is_rewritten_and_sentinels_run_on_until_their_turn() -> Outcome
{
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

    // Templates are left; everything else is written before anything counts as applied.
    let mark = world.mark()?;
    let agent = world.agent().set("safety.upgrades", "off").start().await?;
    wanted.are_in_place(&agent).await?;
    let left = older::left(&world).await?;
    assert!(left.is_empty(), "applied, and yet older: {left:#?}");
    let writes = world.writes(mark)?;
    let written = per_object(&writes);
    assert_eq!(written.len(), objects_before.len(), "{written:#?}");
    // Two controllers look after a namespace.
    let is_once = |(object, count): (&String, &usize)| {
        *count == 1 || (*count == 2 && object.starts_with("namespaces "))
    };
    assert!(written.iter().all(is_once), "{written:#?}");
    assert!(
        writes.iter().all(|write| write.verb == "patch"),
        "{writes:#?}"
    );
    change_one_of_each(&world, &mut wanted);
    wanted.are_in_place(&agent).await?;
    let waiting = agent.metrics().await?.sum("krane_objects_to_upgrade");
    assert_eq!(
        waiting.to_string(),
        EACH.to_string(),
        "sentinels are counted"
    );
    let pods_after = pods(&world).await?;
    let restarted: Vec<_> = pods_before
        .iter()
        .filter(|(name, uid)| pods_after.get(*name) != Some(uid))
        .collect();
    assert!(restarted.is_empty(), "{restarted:?}");
    agent.stop().await?;

    // One at a time, and none before all pods of the last are available.
    let agent = world.agent().start().await?;
    wanted.are_in_place(&agent).await?;
    let began = Instant::now();
    let mut known = Vec::new();
    for count in 1..=2 {
        let now = eventually("the next one rolls", limits::VERY_LONG, async || {
            let now = rolled(&world, &wanted).await;
            let now = now.map_err(|failure| failure.to_string())?;
            let is_next = now.len() >= count;
            is_next.then_some(now).ok_or_else(|| "none yet".to_owned())
        })
        .await?;
        assert_eq!(now.len(), count, "{known:?}, then {now:?}");
        assert!(unavailable(&world, &known).await?.is_empty(), "{known:?}");
        println!("{now:?} have the new template after {:?}", began.elapsed());
        known = now;
    }
    agent.stop().await
}

/// Sentinels whose template is the present one.
async fn rolled(world: &World, wanted: &Wanted) -> Outcome<Vec<String>> {
    let mut rolled = Vec::new();
    for one in &wanted.sentinels {
        let live = world
            .api
            .within::<Deployment>(NAMESPACE)
            .get(&one.k8s_name)
            .await?;
        let spec = serde_json::to_value(live.spec)?;
        if spec["template"]["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "krane" {
            rolled.push(one.k8s_name.clone());
        }
    }
    Ok(rolled)
}

/// Those of which a pod is missing, or runs something else.
async fn unavailable(world: &World, names: &[String]) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for name in names {
        let live = world.api.within::<Deployment>(NAMESPACE).get(name).await?;
        let replicas = live.spec.and_then(|spec| spec.replicas);
        let status = live.status.unwrap_or_default();
        if status.updated_replicas != replicas || status.available_replicas != replicas {
            found.push(name.clone());
        }
    }
    Ok(found)
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
