//! Policies of the control plane, against the real CRD.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Service;
use krane_proto::ctrl::v1::ApplyCiliumNetworkPolicy;
use krane_sim::control_plane::{Answer, Asked, Kind, Method, Request, Seen, samples};
use krane_testcluster::Options;
use krane_testharness::{Agent, Outcome, Quiet, World, eventually, limits};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tonic::Code;

use crate::sentinels::{NAMESPACE, policies};
use crate::{KRANE, world};

fn with_spec(world: &World, name: &str, spec: &Value) -> ApplyCiliumNetworkPolicy {
    let policy = json!({
        "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
        "metadata": { "name": name, "namespace": world.namespace(0) },
        "spec": spec,
    });
    ApplyCiliumNetworkPolicy {
        policy: policy.to_string().into_bytes().into(),
        ..samples::policy(&world.namespace(0), name)
    }
}

async fn is_there(world: &World, name: &str) -> Outcome<DynamicObject> {
    eventually(&format!("{name} is there"), limits::LONG, async || {
        let found = policies(world, &world.namespace(0)).get(name).await;
        found.map_err(|error| error.to_string())
    })
    .await
}

async fn quarantined(agent: &Agent, count: u32) -> Outcome {
    let series = "krane_quarantined{controller=\"cilium\"}";
    eventually(&format!("{series} is {count}"), limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        match metrics.get(series) {
            Some(found) if (found - f64::from(count)).abs() < 0.5 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// unkeyed/unkey 86688de608, PR #4922 (A50); cilium/cilium PR #13180, #26384, PR #47882 (B34): a bad
/// policy is set aside by name, and all others are in force.
#[tokio::test(flavor = "multi_thread")]
async fn bad_policies_are_set_aside_and_the_rest_go_on() -> Outcome {
    let world = world().await?;
    let good = json!({ "endpointSelector": {}, "ingress": [{ "fromEndpoints": [{}] }] });
    let misspelt = json!({ "endpointSelector": {}, "ingres": [] });
    let wrong_type = json!({ "endpointSelector": {}, "ingress": [{ "toPorts": "80" }] });
    let nodes = json!({ "nodeSelector": {}, "ingress": [] });
    let range = json!({ "endpointSelector": {}, "ingress": [{ "toPorts": [
        { "ports": [{ "port": "6581-6586", "protocol": "TCP" }] } ] }] });
    let push = |name: &str, spec: &Value| {
        world
            .control
            .push(samples::apply_policy(with_spec(&world, name, spec)))
    };
    push("misspelt", &misspelt);
    push("wrong-type", &wrong_type);
    push("nodes", &nodes);
    push("range", &range);
    for (name, policy) in [
        ("none", "null"),
        ("list", "[]"),
        ("empty", "{}"),
        (
            "clusterwide",
            r#"{"kind":"CiliumClusterwideNetworkPolicy","spec":{"endpointSelector":{}}}"#,
        ),
    ] {
        let policy = ApplyCiliumNetworkPolicy {
            policy: policy.as_bytes().to_vec().into(),
            ..samples::policy(&world.namespace(0), name)
        };
        world.control.push(samples::apply_policy(policy));
    }
    push("good", &good);
    let agent = world.agent().start().await?;
    let live = is_there(&world, "good").await?;
    assert_eq!(live.data["spec"], good);
    quarantined(&agent, 8).await?;
    let (_, text) = agent.admin("/api/v1/controllers/cilium").await?;
    assert!(text.contains("ingres"), "the API server's words: {text}");
    // A corrected one replaces it.
    push("misspelt", &good);
    is_there(&world, "misspelt").await?;
    quarantined(&agent, 7).await?;
    agent.stop().await
}

/// unkeyed/unkey 34b78c9fcd, PR #4922 (A51) and 664c27e965, PR #4942 (A52): passes saw none of them,
/// in one namespace or the other, or skipped them for want of their id.
#[tokio::test(flavor = "multi_thread")]
async fn edits_are_undone_and_what_is_unknown_goes() -> Outcome {
    let world = world().await?;
    let (kept, gone) = (
        samples::policy(&world.namespace(0), "kept"),
        samples::policy(&world.namespace(1), "gone"),
    );
    for policy in [&kept, &gone] {
        world.control.push(samples::apply_policy(policy.clone()));
    }
    let agent = world.agent().set("resync.interval", "5s").start().await?;
    is_there(&world, "kept").await?;
    let editor = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    let edit = json!({ "spec": { "ingress": [{ "fromEntities": ["all"] }] } });
    let all = policies(&world, &world.namespace(0));
    all.patch("kept", &editor, &Patch::Merge(edit)).await?;
    eventually("the edit is undone", limits::SHORT, async || {
        let live = all.get("kept").await.map_err(|error| error.to_string())?;
        let ingress = &live.data["spec"]["ingress"];
        if *ingress == json!([{ "fromEndpoints": [{}] }]) {
            Ok(())
        } else {
            Err(ingress.to_string())
        }
    })
    .await?;
    let id = &gone.cilium_network_policy_id;
    world
        .control
        .set_answer(Kind::Policies, id, Answer::Code(Code::NotFound));
    eventually("what is unknown is gone", limits::LONG, async || {
        let found = policies(&world, &world.namespace(1)).get_opt("gone").await;
        match found.map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(live) => Err(format!("{} is there", live.name_any())),
        }
    })
    .await?;
    is_there(&world, "kept").await?;
    let is_asked = |seen: &Seen| {
        let mut asked = seen.of(Method::Desired(Kind::Policies));
        let id = &kept.cilium_network_policy_id;
        let is_about = |request: &Request| matches!(&request.asked, Asked::Desired { id: about } if about == id);
        asked.any(is_about).then_some(())
    };
    world
        .control
        .wait_for("kept is asked about by its id", limits::LONG, is_asked)
        .await?;
    agent.stop().await
}

/// To the API server a rule is one value: what a newer state leaves out inside of it shows in no
/// ownership, and has to go all the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_newer_state_leaves_out_of_a_rule_goes() -> Outcome {
    let world = world().await?;
    let agent = world.agent().start().await?;
    let ports = |port: Value| json!([{ "toPorts": [{ "ports": [port] }] }]);
    let pods = |labels: Value| json!({ "matchLabels": labels });
    let stages = [
        json!({
            "endpointSelector": pods(json!({ "dep": "d", "env": "e" })),
            "ingress": ports(json!({ "port": "8000", "endPort": 9000, "protocol": "TCP" })),
        }),
        json!({
            "endpointSelector": pods(json!({ "dep": "d", "env": "e" })),
            "ingress": ports(json!({ "port": "8000", "protocol": "TCP" })),
        }),
        json!({
            "endpointSelector": pods(json!({ "env": "e" })),
            "ingress": ports(json!({ "port": "8000", "protocol": "TCP" })),
        }),
        json!({
            "endpointSelector": {},
            "ingress": [{
                "fromEndpoints": [],
                "toPorts": [{ "ports": [{ "port": "8000", "protocol": "TCP" }] }],
            }],
        }),
        json!({ "endpointSelector": {}, "ingress": [] }),
        json!({ "endpointSelector": {} , "ingressDeny": [{
            "fromEntities": ["world"],
            "toPorts": [{ "ports": [{ "port": "22", "protocol": "TCP" }] }],
        }] }),
        json!({ "endpointSelector": {}, "ingressDeny": [{ "fromEntities": ["world"] }] }),
    ];
    for spec in &stages {
        let policy = with_spec(&world, "changing", spec);
        world.control.push(samples::apply_policy(policy));
        eventually("the rules are those wanted", limits::LONG, async || {
            let all = policies(&world, &world.namespace(0));
            let live = all
                .get("changing")
                .await
                .map_err(|error| error.to_string())?;
            let live = &live.data["spec"];
            if live == spec {
                Ok(())
            } else {
                Err(format!("{live} instead of {spec}"))
            }
        })
        .await?;
    }
    let mark = world.mark()?;
    let agent_again = world.agent().set("resync.interval", "1s").start().await?;
    agent.stop().await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let writes = world.writes(mark)?;
    assert!(writes.is_empty(), "in place is in place: {writes:?}");
    agent_again.stop().await
}

/// D18: without Cilium's kinds what needs them waits, and nothing else does; once they are there it
/// is made within 65 s, without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn the_kinds_of_cilium_may_come_later() -> Outcome {
    let options = Options {
        cilium: false,
        ..Options::default()
    };
    let world = World::own(KRANE, options, Quiet::Beside).await?;
    let policy = samples::policy(&world.namespace(0), "policy");
    let front = samples::sentinel("front");
    let web = samples::deployment(&world.namespace(0), "web");
    world.control.push(samples::apply_policy(policy));
    world.control.push(samples::apply_sentinel(front.clone()));
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().start().await?;
    let deployments = world.api.within::<Deployment>(NAMESPACE);
    let services = world.api.within::<Service>(NAMESPACE);
    eventually(
        "the sentinel is made without it",
        limits::LONG,
        async || {
            let deployment = deployments.get(&front.k8s_name).await;
            deployment.map_err(|error| error.to_string())?;
            let gossip = services
                .get(&format!("{}-gossip-lan", front.k8s_name))
                .await;
            gossip.map(drop).map_err(|error| error.to_string())
        },
    )
    .await?;
    let sets = world.api.within::<ReplicaSet>(&web.k8s_namespace);
    assert!(
        sets.get_opt(&web.k8s_name).await?.is_none(),
        "never unisolated"
    );

    world.cluster().install_cilium().await?;
    let began = Instant::now();
    is_there(&world, "policy").await?;
    let gossip = format!("{}-gossip-lan", front.k8s_name);
    let policies = policies(&world, NAMESPACE);
    eventually("gossip may flow", limits::LONG, async || {
        policies
            .get(&gossip)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await?;
    world.settles("web runs", &[web], &[], limits::LONG).await?;
    let took = began.elapsed();
    println!("everything that waited was in place {took:?} after Cilium's kinds came");
    assert!(took < Duration::from_secs(75), "{took:?}");
    agent.stop().await
}
