//! Objects, policies and rights of other people.

use std::time::Duration;

use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    apps::v1::ReplicaSet,
    core::v1::{ConfigMap, Namespace, ResourceQuota},
    rbac::v1::ClusterRole,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::samples;
use krane_testharness::{Agent, LogLine, Outcome, World, eventually, limits};
use kube::{
    Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{gauge, logged, no_panic};
use crate::world;

/// Something of ours that somebody holds on to.
const FINALIZER: &str = "example.com/never";

fn object<K: serde::de::DeserializeOwned>(value: Value) -> Outcome<K> {
    Ok(serde_json::from_value(value)?)
}

async fn make_namespace(world: &World, name: &str) -> Outcome {
    let namespace = object::<Namespace>(json!({"metadata": {"name": name}}))?;
    world
        .api
        .all::<Namespace>()
        .create(&PostParams::default(), &namespace)
        .await?;
    Ok(())
}

/// Says what is in the way of this key.
async fn complains(agent: &Agent, state: &ApplyDeployment, word: &str) -> Outcome<LogLine> {
    let key = format!("{}/{}", state.k8s_namespace, state.k8s_name);
    logged(
        agent,
        &format!("{key} is said to be in trouble: {word}"),
        |line| {
            let text = line.json().to_string();
            text.contains(&state.k8s_namespace) && text.contains(word)
        },
    )
    .await
}

/// D11b, D15: a foreign object, a finalizer, a namespace that never ends, a quota and a refusing admission
/// policy each hold up their own namespace; the others go on, and all is caught up with when the obstacle goes.
#[tokio::test(flavor = "multi_thread")]
async fn every_obstacle_holds_up_only_its_own_namespace_until_it_goes() -> Outcome {
    let world = world().await?;
    let at = |index: usize, name: &str| samples::deployment(&world.namespace(index), name);
    let (foreign, held, stuck) = (at(1, "foreign"), at(2, "held"), at(3, "stuck"));
    let (limited, denied, free) = (at(4, "limited"), at(5, "denied"), at(6, "free"));

    // 1: somebody else's object of the same name.
    make_namespace(&world, &foreign.k8s_namespace).await?;
    let others = object::<ReplicaSet>(json!({
        "metadata": {"name": foreign.k8s_name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }))?;
    let sets = world.api.within::<ReplicaSet>(&foreign.k8s_namespace);
    let others = sets.create(&PostParams::default(), &others).await?;
    // 3: a namespace that is being deleted and does not end.
    make_namespace(&world, &stuck.k8s_namespace).await?;
    let anchor =
        object::<ConfigMap>(json!({"metadata": {"name": "anchor", "finalizers": [FINALIZER]}}))?;
    let anchors = world.api.within::<ConfigMap>(&stuck.k8s_namespace);
    anchors.create(&PostParams::default(), &anchor).await?;
    world
        .api
        .all::<Namespace>()
        .delete(&stuck.k8s_namespace, &DeleteParams::background())
        .await?;
    // 4: a quota without room for a ReplicaSet.
    make_namespace(&world, &limited.k8s_namespace).await?;
    let quota = object::<ResourceQuota>(json!({
        "metadata": {"name": "none"}, "spec": {"hard": {"count/replicasets.apps": "0"}}}))?;
    let quotas = world.api.within::<ResourceQuota>(&limited.k8s_namespace);
    quotas.create(&PostParams::default(), &quota).await?;
    eventually("the quota is in force", limits::SHORT, async || {
        let quota = quotas
            .get("none")
            .await
            .map_err(|error| error.to_string())?;
        quota
            .status
            .and_then(|status| status.hard)
            .map(drop)
            .ok_or_else(|| "no status".to_owned())
    })
    .await?;
    // 5: an admission policy that refuses ReplicaSets.
    let policy = format!("deny-{}", denied.k8s_namespace);
    deny(&world, &policy, &denied.k8s_namespace).await?;

    world.push_all(&[
        foreign.clone(),
        held.clone(),
        stuck.clone(),
        limited.clone(),
        denied.clone(),
    ]);
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    world.control.push(samples::apply(free.clone()));
    world
        .control
        .wait_for("the free ones run", limits::LONG, |seen| {
            (seen.running("free") && seen.running("held")).then_some(())
        })
        .await?;
    // 2: a ReplicaSet that cannot be deleted, and is wanted again.
    let patch = json!({"metadata": {"finalizers": [FINALIZER]}});
    world
        .api
        .edit::<ReplicaSet>(&held.k8s_namespace, &held.k8s_name, patch)
        .await?;
    world.control.push(samples::delete(&held));
    let held_sets = world.api.within::<ReplicaSet>(&held.k8s_namespace);
    eventually("it is being deleted", limits::SHORT, async || {
        let set = held_sets
            .get(&held.k8s_name)
            .await
            .map_err(|error| error.to_string())?;
        set.metadata
            .deletion_timestamp
            .map(drop)
            .ok_or_else(|| "it is not".to_owned())
    })
    .await?;
    world.control.push(samples::apply(held.clone()));

    complains(&agent, &foreign, "managed-by").await?;
    complains(&agent, &stuck, "being deleted").await?;
    complains(&agent, &limited, "quota").await?;
    complains(&agent, &denied, "denied request").await?;
    complains(&agent, &held, "being deleted").await?;
    let other_free = at(7, "beside");
    world.control.push(samples::apply(other_free.clone()));
    world
        .control
        .wait_for("others go on", Duration::from_secs(10), |seen| {
            seen.running("beside").then_some(())
        })
        .await?;
    let kept = sets.get(&foreign.k8s_name).await?;
    let is_krane = |entry: &ManagedFieldsEntry| entry.manager.as_deref() == Some("krane");
    assert_eq!(kept.metadata.uid, others.metadata.uid);
    assert!(kept.metadata.deletion_timestamp.is_none());
    assert!(!kept.managed_fields().iter().any(is_krane), "{kept:?}");

    // All obstacles go.
    sets.delete(&foreign.k8s_name, &DeleteParams::background())
        .await?;
    let none = json!({"metadata": {"finalizers": null}});
    world
        .api
        .edit::<ReplicaSet>(&held.k8s_namespace, &held.k8s_name, none.clone())
        .await?;
    world
        .api
        .edit::<ConfigMap>(&stuck.k8s_namespace, "anchor", none)
        .await?;
    quotas.delete("none", &DeleteParams::background()).await?;
    allow(&world, &policy).await?;
    let all = [foreign, held, stuck, limited, denied, free, other_free];
    world.settles("all run", &all, &[], limits::LONG).await?;
    gauge(&agent, "krane_quarantined", 0.0).await?;
    no_panic(&agent)?;
    agent.stop().await
}

async fn deny(world: &World, name: &str, namespace: &str) -> Outcome {
    let policy = object::<ValidatingAdmissionPolicy>(json!({
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["replicasets"]}]},
            "validations": [{"expression": "false", "message": "not on a Friday"}]},
    }))?;
    let binding = object::<ValidatingAdmissionPolicyBinding>(json!({
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}},
    }))?;
    let params = PostParams::default();
    world
        .api
        .all::<ValidatingAdmissionPolicy>()
        .create(&params, &policy)
        .await?;
    world
        .api
        .all::<ValidatingAdmissionPolicyBinding>()
        .create(&params, &binding)
        .await?;
    make_namespace(world, namespace).await?;
    let probe = object::<ReplicaSet>(json!({
        "metadata": {"name": "probe"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }))?;
    eventually("the policy is in force", limits::LONG, async || {
        let sets = world.api.within::<ReplicaSet>(namespace);
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        match sets.create(&dry, &probe).await {
            Ok(_) => Err("it is not".to_owned()),
            Err(error) if error.to_string().contains("not on a Friday") => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await
}

async fn allow(world: &World, name: &str) -> Outcome {
    let params = DeleteParams::default();
    world
        .api
        .all::<ValidatingAdmissionPolicyBinding>()
        .delete(name, &params)
        .await?;
    world
        .api
        .all::<ValidatingAdmissionPolicy>()
        .delete(name, &params)
        .await?;
    Ok(())
}

/// D11b: a right that is taken away stops what needs it, with the right named; given back, all is caught up with.
#[tokio::test(flavor = "multi_thread")]
async fn a_right_taken_away_is_named_and_given_back_is_used() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(3, 2);
    world.control.push(samples::apply(wanted[0].clone()));
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    world
        .settles("the first runs", &wanted[..1], &[], limits::LONG)
        .await?;
    let roles = world.api.all::<ClusterRole>();
    let role = roles.get("krane").await?;
    let outcome = without_patches(&world, &agent, &role, &wanted).await;
    // The cluster is shared: whatever happened, the right comes back.
    let whole = json!({"rules": role.rules});
    roles
        .patch("krane", &PatchParams::default(), &Patch::Merge(whole))
        .await?;
    outcome?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    no_panic(&agent)?;
    agent.stop().await
}

async fn without_patches(
    world: &World,
    agent: &Agent,
    role: &ClusterRole,
    wanted: &[ApplyDeployment],
) -> Outcome {
    let mut rules = role.rules.clone().unwrap_or_default();
    for rule in &mut rules {
        if rule
            .resources
            .as_ref()
            .is_some_and(|names| names.iter().any(|name| name == "replicasets"))
        {
            rule.verbs
                .retain(|verb| verb != "patch" && verb != "create");
        }
    }
    let cluster_roles = world.api.all::<ClusterRole>();
    cluster_roles
        .patch(
            "krane",
            &PatchParams::default(),
            &Patch::Merge(json!({"rules": rules})),
        )
        .await?;
    for state in &wanted[1..] {
        world.control.push(samples::apply(state.clone()));
    }
    for state in &wanted[1..] {
        let line = complains(agent, state, "forbidden").await?;
        let text = line.json().to_string();
        assert!(
            text.contains("replicasets") && text.contains("ClusterRole"),
            "{text}"
        );
    }
    let (code, body) = agent.health("live").await?;
    assert_eq!(code, 200, "{body}");
    Ok(())
}

/// 36b5384c3a, D13, D15: objects that carry our label and little else are left alone, and disturb nobody.
#[tokio::test(flavor = "multi_thread")]
async fn impostors_with_our_label_are_left_alone() -> Outcome {
    let world = world().await?;
    let wanted = samples::deployment(&world.namespace(0), "web");
    let namespace = world.namespace(1);
    make_namespace(&world, &namespace).await?;
    let impostor = |name: &str, labels: Value, annotations: Value| {
        object::<ReplicaSet>(json!({
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
        }))
    };
    let ours = "app.kubernetes.io/managed-by";
    let component = "app.kubernetes.io/component";
    let all = [
        impostor("bare", json!({ours: "krane"}), json!({}))?,
        impostor(
            "empty-id",
            json!({ours: "krane", component: "deployment", "unkey.com/deployment.id": ""}),
            json!({}),
        )?,
        impostor(
            "large.dotted.name",
            json!({ours: "krane", component: "deployment", "unkey.com/environment.id": "A__b..c"}),
            json!({"big": "x".repeat(200 << 10), "krane.unkey.com/hold": "never", "krane.unkey.com/renderer": "-1"}),
        )?,
    ];
    let sets = world.api.within::<ReplicaSet>(&namespace);
    let mut versions = Vec::new();
    for set in &all {
        let made = sets.create(&PostParams::default(), set).await?;
        versions.push((
            made.meta().name.clone().unwrap_or_default(),
            made.meta().uid.clone(),
        ));
    }
    world.control.push(samples::apply(wanted.clone()));
    let agent = world.agent().set("resync.interval", "1s").start().await?;
    world
        .control
        .wait_for("web runs", limits::LONG, |seen| {
            seen.running("web").then_some(())
        })
        .await?;
    eventually("a pass is over", limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let passes = metrics.deployments("krane_resync_duration_seconds_count");
        if passes >= 2.0 {
            Ok(())
        } else {
            Err(format!("{passes}"))
        }
    })
    .await?;
    for (name, uid) in versions {
        assert_eq!(sets.get(&name).await?.metadata.uid, uid, "{name}");
    }
    let empty = world.control.look(|seen| {
        seen.requests.iter().any(|request| {
            matches!(&request.asked, krane_sim::control_plane::Asked::Desired { id } if id.is_empty())
        })
    });
    assert!(!empty, "an empty id was sent");
    no_panic(&agent)?;
    agent.stop().await
}
