//! What others do to krane's objects is undone.

mod kinds;

use k8s_openapi::api::core::v1::Namespace;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::samples;
use krane_testharness::{
    Agent, Outcome, World,
    edits::{
        Edit, NAMESPACE_EDITS, POLICY_EDITS, POLICY_INTRUSIONS, REPLICA_SET_EDITS,
        REPLICA_SET_INTRUSIONS, SECRET_EDITS, SECRET_INTRUSIONS, Victim,
    },
    eventually, limits,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::json;

use crate::world;

/// A deployment with everything that can be edited.
fn deployment(world: &World) -> ApplyDeployment {
    let healthcheck = br#"{"method":"GET","path":"/healthz","intervalSeconds":10,"timeoutSeconds":5,"failureThreshold":3}"#;
    ApplyDeployment {
        healthcheck: Some(healthcheck.to_vec().into()),
        replicas: 2,
        ..samples::deployment(&world.namespace(0), "web")
    }
}

async fn running(world: &World) -> Outcome<(Agent, ApplyDeployment)> {
    let web = deployment(world);
    world.control.push(samples::apply(web.clone()));
    // Drift is corrected when the watch shows it, not by asking.
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    world
        .settles("web runs", std::slice::from_ref(&web), &[], limits::LONG)
        .await?;
    Ok((agent, web))
}

pub(crate) async fn all_are_undone(victim: &mut Victim, edits: &[Edit]) -> Outcome {
    println!("{} edits of {}", edits.len(), victim.what());
    let mut failures = Vec::new();
    for edit in edits {
        let done = match victim.suffer(edit).await {
            Ok(()) => victim.recovers(edit).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = done {
            failures.push(failure.to_string());
            victim.renew().await?;
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        edits.len(),
        failures.join("\n")
    );
    Ok(())
}

/// The isolation policy of the world's only namespace.
async fn policy(world: &World) -> Outcome<Victim> {
    let gvk = GroupVersionKind::gvk("cilium.io", "v2", "CiliumNetworkPolicy");
    let policies: Api<DynamicObject> = Api::namespaced_with(
        world.api.client(),
        &world.namespace(0),
        &ApiResource::from_gvk(&gvk),
    );
    let name = eventually("the isolation policy is there", limits::SHORT, async || {
        let list = policies
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        list.items
            .first()
            .map(kube::ResourceExt::name_any)
            .ok_or_else(|| "none".to_owned())
    })
    .await?;
    Victim::policy(&world.api, &world.namespace(0), &name).await
}

/// D11: edits that a plain apply undoes.
#[tokio::test(flavor = "multi_thread")]
async fn every_edit_of_a_replica_set_is_undone() -> Outcome {
    let world = world().await?;
    let (agent, web) = running(&world).await?;
    let mut victim = Victim::replica_set(&world.api, &web.k8s_namespace, &web.k8s_name).await?;
    all_are_undone(&mut victim, &REPLICA_SET_EDITS).await?;
    world
        .settles("two pods run in the end", &[web], &[], limits::LONG)
        .await?;
    agent.stop().await
}

/// D11a: nobody else may own anything in an exclusive subtree.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_added_to_a_replica_set_is_taken_away() -> Outcome {
    let world = world().await?;
    let (agent, web) = running(&world).await?;
    let mut victim = Victim::replica_set(&world.api, &web.k8s_namespace, &web.k8s_name).await?;
    all_are_undone(&mut victim, &REPLICA_SET_INTRUSIONS).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_edit_of_an_isolation_policy_is_undone() -> Outcome {
    let world = world().await?;
    let (agent, _) = running(&world).await?;
    let mut victim = policy(&world).await?;
    all_are_undone(&mut victim, &POLICY_EDITS).await?;
    agent.stop().await
}

/// D11a, for policies.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_added_to_an_isolation_policy_is_taken_away() -> Outcome {
    let world = world().await?;
    let (agent, _) = running(&world).await?;
    let mut victim = policy(&world).await?;
    all_are_undone(&mut victim, &POLICY_INTRUSIONS).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_edit_of_a_namespace_is_undone() -> Outcome {
    let world = world().await?;
    let (agent, web) = running(&world).await?;
    let mut victim = Victim::namespace(&world.api, &web.k8s_namespace).await?;
    all_are_undone(&mut victim, &NAMESPACE_EDITS).await?;
    agent.stop().await
}

/// Frozen or not: what cannot be changed is made anew.
#[tokio::test(flavor = "multi_thread")]
async fn every_edit_of_a_pull_secret_is_undone() -> Outcome {
    let world = world().await?;
    let web = deployment(&world);
    world.control.push(samples::apply(web.clone()));
    let agent = world
        .agent()
        .set("resync.interval", "24h")
        .set("registry.url", "registry.example")
        .set("registry.username", "puller")
        .variable("KRANE__REGISTRY__PASSWORD", "of-the-test")
        .start()
        .await?;
    world
        .settles("web runs", std::slice::from_ref(&web), &[], limits::LONG)
        .await?;
    let namespace = &web.k8s_namespace;
    let mut victim = Victim::secret(&world.api, namespace, "depot-pull-secret").await?;
    all_are_undone(&mut victim, &SECRET_EDITS).await?;
    all_are_undone(&mut victim, &SECRET_INTRUSIONS).await?;
    agent.stop().await
}

/// Why krane takes fields over before it applies: to take away exactly what others added does not
/// undo every edit. Of a union whose halves were swapped nothing would be left in between.
#[tokio::test(flavor = "multi_thread")]
async fn taking_away_only_what_others_added_is_refused_for_a_swapped_union() -> Outcome {
    let world = world().await?;
    let gvk = GroupVersionKind::gvk("cilium.io", "v2", "CiliumNetworkPolicy");
    let policies: Api<DynamicObject> = Api::namespaced_with(
        world.api.client(),
        &world.namespace(0),
        &ApiResource::from_gvk(&gvk),
    );
    let namespaces: Api<Namespace> = Api::all(world.api.client());
    let namespace = json!({"metadata": {"name": world.namespace(0)}});
    let namespace = serde_json::from_value(namespace)?;
    namespaces
        .create(&PostParams::default(), &namespace)
        .await?;
    let wanted = json!({
        "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": {"name": "p"},
        "spec": {"endpointSelector": {"matchLabels": {"a": "b"}}, "ingress": [{}]},
    });
    let ours = PatchParams::apply("krane").force();
    policies.patch("p", &ours, &Patch::Apply(&wanted)).await?;
    let swap = json!({"spec": {"endpointSelector": null, "nodeSelector": {}}});
    let theirs = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    policies.patch("p", &theirs, &Patch::Merge(&swap)).await?;
    let leaf = json!({"spec": {"nodeSelector": null}});
    let removed = policies.patch("p", &theirs, &Patch::Merge(&leaf)).await;
    let applied = policies.patch("p", &ours, &Patch::Apply(&wanted)).await;
    for refused in [removed, applied] {
        match refused {
            Err(kube::Error::Api(status)) => assert_eq!(status.code, 422, "{status:?}"),
            other => panic!("not refused: {other:?}"),
        }
    }
    Ok(())
}
