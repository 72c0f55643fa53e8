//! From an edit by somebody else to its repair.

use std::time::Duration;

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_testcluster::{ADMIN_USER, KRANE_USER};
use krane_testharness::{
    Failure, Outcome, World,
    edits::{Edit, NAMESPACE_EDITS, POLICY_EDITS, REPLICA_SET_EDITS, Victim},
    eventually, limits,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};

use crate::figures::{Figures, Target};

const TIMES: usize = 20;

pub(crate) async fn measure(
    world: &World,
    workloads: &[ApplyDeployment],
    figures: &mut Figures,
) -> Outcome {
    println!("edits to repairs, {TIMES} of each kind");
    let mut all = Vec::new();
    // Each edit meets another object: one that is changed again and again is given time.
    let mut next = workloads.iter().cycle();
    for edit in &REPLICA_SET_EDITS {
        let mut latencies = Vec::with_capacity(TIMES);
        for state in next.by_ref().take(TIMES) {
            let victim =
                Victim::replica_set(&world.api, &state.k8s_namespace, &state.k8s_name).await?;
            latencies.push(repair(world, &victim, edit).await?);
        }
        all.extend(latencies.iter().copied());
        report(figures, &format!("ReplicaSet: {}", edit.name), latencies);
    }
    let gvk = GroupVersionKind::gvk("cilium.io", "v2", "CiliumNetworkPolicy");
    let policies = Api::<DynamicObject>::all_with(world.api.client(), &ApiResource::from_gvk(&gvk));
    let policies = policies.list(&ListParams::default()).await?.items;
    let mut next = policies.iter().cycle();
    for edit in &POLICY_EDITS {
        let mut latencies = Vec::with_capacity(TIMES);
        for policy in next.by_ref().take(TIMES) {
            let namespace = policy.namespace().unwrap_or_default();
            let victim = Victim::policy(&world.api, &namespace, &policy.name_any()).await?;
            latencies.push(repair(world, &victim, edit).await?);
        }
        all.extend(latencies.iter().copied());
        report(figures, &format!("policy: {}", edit.name), latencies);
    }
    let mut next = policies.iter().filter_map(ResourceExt::namespace).cycle();
    for edit in &NAMESPACE_EDITS {
        let mut latencies = Vec::with_capacity(TIMES);
        for namespace in next.by_ref().take(TIMES) {
            let victim = Victim::namespace(&world.api, &namespace).await?;
            latencies.push(repair(world, &victim, edit).await?);
        }
        all.extend(latencies.iter().copied());
        report(figures, &format!("Namespace: {}", edit.name), latencies);
    }
    report(figures, "drift repaired, all kinds", all);
    Ok(())
}

fn report(figures: &mut Figures, name: &str, latencies: Vec<Duration>) {
    figures.durations(name, latencies, Target::Below(250.0), Target::Below(1000.0));
}

/// From the arrival of the edit at the API server to the answer of krane's last write about it.
async fn repair(world: &World, victim: &Victim, edit: &Edit) -> Outcome<Duration> {
    let mark = world.mark()?;
    victim.suffer(edit).await?;
    victim.recovers(edit).await?;
    let place = victim.place();
    // The lines may be a moment behind the effects.
    let found = eventually(
        "edit and repair are in the audit log",
        limits::SHORT,
        async || {
            let entries = world
                .cluster()
                .requests(mark)
                .map_err(|error| error.to_string())?;
            let of = |user: &str| {
                let mut of = entries.iter().filter(|entry| {
                    entry.user == user
                        && entry.is_write()
                        && (entry.namespace.as_str(), entry.name.as_str()) == place
                        && entry.code < 300
                });
                of.next_back().cloned()
            };
            match (of(ADMIN_USER), of(KRANE_USER)) {
                (Some(edited), Some(repaired)) => Ok((edited.received, repaired.answered)),
                _ => Err("not yet".to_owned()),
            }
        },
    );
    let (edited, repaired) = found.await?;
    Duration::try_from(repaired.duration_since(edited))
        .map_err(|_| Failure::new(format!("{}: repaired before it was edited", edit.name)))
}
