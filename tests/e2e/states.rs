//! Desired states of every sort, against a real API server.

use k8s_openapi::api::apps::v1::ReplicaSet;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::samples;
use krane_testharness::{Agent, Outcome, World, eventually, limits};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::world;

async fn quarantined(agent: &Agent, count: u32) -> Outcome {
    metric_is(agent, "krane_quarantined", count).await
}

pub(crate) async fn metric_is(agent: &Agent, name: &str, count: u32) -> Outcome {
    eventually(&format!("{name} is {count}"), limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let found = metrics.deployments(name);
        if (found - f64::from(count)).abs() < 0.5 {
            Ok(())
        } else {
            Err(found.to_string())
        }
    })
    .await
}

async fn replica_set(world: &World, deployment: &ApplyDeployment) -> Outcome<ReplicaSet> {
    let sets: Api<ReplicaSet> = world.api.within(&deployment.k8s_namespace);
    Ok(sets.get(&deployment.k8s_name).await?)
}

/// unkeyed/unkey 34e6be4844, PR #4030 (A11): deleting what is gone already was an error, which blocked the caller.
#[tokio::test(flavor = "multi_thread")]
async fn deleting_what_never_was_is_a_success_and_is_told() -> Outcome {
    let world = world().await?;
    let here = samples::deployment(&world.namespace(0), "never-here");
    let nowhere = samples::deployment(&world.namespace(1), "never-anywhere");
    let web = samples::deployment(&world.namespace(0), "web");
    world.control.push(samples::delete(&here));
    world.control.push(samples::delete(&nowhere));
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().start().await?;
    world
        .settles(
            "web runs, both are told",
            &[web],
            &[here, nowhere],
            limits::LONG,
        )
        .await?;
    metric_is(&agent, "krane_stream_cursor", 3).await?;
    agent.stop().await
}

/// fluxcd/flux2#2386 (B29), D11c: a selector cannot change. Within one tenant the object is replaced, otherwise the
/// state is set aside; others go on.
#[tokio::test(flavor = "multi_thread")]
async fn another_selector_replaces_within_a_tenant_and_is_refused_across() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(3, 1);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    let former = replica_set(&world, &wanted[0]).await?;

    wanted[0].deployment_id = "d_other".to_owned();
    world.control.push(samples::apply(wanted[0].clone()));
    world
        .settles("the first is replaced", &wanted, &[], limits::LONG)
        .await?;
    assert_ne!(replica_set(&world, &wanted[0]).await?.uid(), former.uid());

    let stolen = ApplyDeployment {
        deployment_id: "d_stolen".to_owned(),
        workspace_id: "ws_stranger".to_owned(),
        ..wanted[1].clone()
    };
    world.control.push(samples::apply(stolen));
    wanted[2].image = "registry.example/app:well2".to_owned();
    world.control.push(samples::apply(wanted[2].clone()));
    world
        .settles("only the third changes", &wanted, &[], limits::LONG)
        .await?;
    quarantined(&agent, 1).await?;
    agent.stop().await
}

/// mogenius/renovate-operator#616, aquasecurity/trivy-operator#757 (B32): an object over the size limit is tried for ever.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_over_the_size_limit_is_set_aside_and_the_next_applied() -> Outcome {
    let world = world().await?;
    let [mut large, web] = [0, 1].map(|index| world.deployments(2, 1).remove(index));
    large.encrypted_environment_variables = vec![7; 2 << 20].into();
    world.push_all(&[large, web.clone()]);
    let agent = world.agent().start().await?;
    world
        .settles("the normal one runs", &[web], &[], limits::LONG)
        .await?;
    quarantined(&agent, 1).await?;
    metric_is(&agent, "krane_stream_cursor", 0).await?;
    agent.stop().await
}

/// kubernetes/kubernetes#131147 (B22): the port number is the key of its list; another manager owns the entry, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_port_replaces_the_old_one_whoever_touched_it() -> Outcome {
    let world = world().await?;
    let mut web = world.deployments(1, 1).remove(0);
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().start().await?;
    world
        .settles("it runs", std::slice::from_ref(&web), &[], limits::LONG)
        .await?;
    let set = replica_set(&world, &web).await?;
    let mut body = serde_json::to_value(&set)?;
    body["metadata"]["managedFields"] = json!(null);
    // The same values, put by somebody else, who owns them as well from now on.
    let params = kube::api::PatchParams::apply("kubectl-edit").force();
    let port = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": web.k8s_name},
        "spec": {
            "selector": body["spec"]["selector"],
            "template": {"spec": {"containers": [{
                "name": body["spec"]["template"]["spec"]["containers"][0]["name"],
                "image": web.image,
                "ports": body["spec"]["template"]["spec"]["containers"][0]["ports"],
            }]}},
        },
    });
    world
        .api
        .within::<ReplicaSet>(&web.k8s_namespace)
        .patch(&web.k8s_name, &params, &kube::api::Patch::Apply(port))
        .await?;

    web.port = 9090;
    world.control.push(samples::apply(web.clone()));
    eventually("there is exactly the new port", limits::SHORT, async || {
        let set = replica_set(&world, &web)
            .await
            .map_err(|failure| failure.to_string())?;
        let set = serde_json::to_value(set).map_err(|error| error.to_string())?;
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        let ports: Vec<_> = container["ports"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|p| &p["containerPort"])
            .collect();
        if ports == [&json!(9090)]
            && container["env"][0] == json!({"name": "PORT", "value": "9090"})
        {
            Ok(())
        } else {
            Err(container.to_string())
        }
    })
    .await?;
    agent.stop().await
}

/// fluxcd/kustomize-controller#486, #558, PR #527 (B25): what others touched stays after we no longer want it.
#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_is_no_longer_wanted_is_gone_although_others_edited_it() -> Outcome {
    let world = world().await?;
    let plain = world.deployments(1, 1).remove(0);
    let healthcheck = br#"{"method":"GET","path":"/healthz","intervalSeconds":10}"#;
    let probed = ApplyDeployment {
        healthcheck: Some(healthcheck.to_vec().into()),
        ..plain.clone()
    };
    world.control.push(samples::apply(probed.clone()));
    let agent = world.agent().start().await?;
    world
        .settles("it runs", std::slice::from_ref(&probed), &[], limits::LONG)
        .await?;
    let name = replica_set(&world, &probed).await?.spec.and_then(|spec| {
        spec.template?
            .spec?
            .containers
            .first()
            .map(|container| container.name.clone())
    });
    let edit = json!({"spec": {"template": {"spec": {"containers": [
        {"name": name, "image": probed.image, "readinessProbe": {"periodSeconds": 77}}
    ]}}}});
    world
        .api
        .within::<ReplicaSet>(&probed.k8s_namespace)
        .patch(
            &probed.k8s_name,
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Strategic(edit),
        )
        .await?;
    world.control.push(samples::apply(plain.clone()));
    eventually("no probe is left", limits::SHORT, async || {
        let set = replica_set(&world, &plain)
            .await
            .map_err(|failure| failure.to_string())?;
        let text = serde_json::to_string(&set.spec).map_err(|error| error.to_string())?;
        if text.contains("Probe") {
            Err(text)
        } else {
            Ok(())
        }
    })
    .await?;
    agent.stop().await
}

/// Altinity/clickhouse-operator#1904 (B27): `2048Mi` and `2Gi` were compared as text.
#[tokio::test(flavor = "multi_thread")]
async fn ten_passes_over_objects_that_are_spelled_otherwise_write_nothing() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(3, 1);
    for (deployment, (cpu, memory)) in
        wanted
            .iter_mut()
            .zip([(1000, 2048), (2000, 1024), (500, 1536)])
    {
        deployment.cpu_millicores = cpu;
        deployment.memory_mib = memory;
    }
    world.push_all(&wanted);
    let agent = world.agent().set("resync.interval", "1s").start().await?;
    world
        .settles("all run", &wanted[..2], &[], limits::LONG)
        .await
        .or(eventually("all are there", limits::LONG, async || {
            let live = world.live().await.map_err(|failure| failure.to_string())?;
            if live.replica_sets.len() == 3 {
                Ok(())
            } else {
                Err("not yet".to_owned())
            }
        })
        .await)?;
    let mark = world.mark()?;
    let passes = agent
        .metrics()
        .await?
        .deployments("krane_resync_duration_seconds_count");
    eventually("ten passes", limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let now = metrics.deployments("krane_resync_duration_seconds_count");
        if now >= passes + 10.0 {
            Ok(())
        } else {
            Err(format!("{} passes", now - passes))
        }
    })
    .await?;
    let writes = world.writes(mark)?;
    assert!(writes.is_empty(), "{writes:#?}");
    metric_is(&agent, "krane_drift_detected_total", 0).await?;
    agent.stop().await
}

/// xlab-uiuc/acto, bugs.md (C10): a changed field does nothing, or changing it back does not restore the object.
#[tokio::test(flavor = "multi_thread")]
async fn every_field_has_its_effect_and_gives_it_back() -> Outcome {
    type Change = (&'static str, fn(&mut ApplyDeployment));
    let changes: [Change; 13] = [
        ("image", |state| {
            state.image = "registry.example/app:well2".to_owned();
        }),
        ("replicas", |state| state.replicas = 0),
        ("cpu", |state| state.cpu_millicores = 777),
        ("memory", |state| state.memory_mib = 333),
        ("port", |state| state.port = 9191),
        ("build id", |state| {
            state.build_id = Some("build_x".to_owned());
        }),
        ("variables", |state| {
            state.encrypted_environment_variables = b"{}".to_vec().into();
        }),
        ("command", |state| {
            state.command = vec!["run".to_owned(), "$(PORT)".to_owned()];
        }),
        ("signal", |state| {
            state.shutdown_signal = "SIGINT".to_owned();
        }),
        ("health check", |state| {
            state.healthcheck = Some(br#"{"path":"/x"}"#.to_vec().into());
        }),
        ("app", |state| state.app_id = "app_x".to_owned()),
        ("slug", |state| {
            state.environment_slug = Some("staging".to_owned());
        }),
        ("commit", |state| {
            state.git_commit_message = Some("costs $(PORT)".to_owned());
        }),
    ];
    let world = world().await?;
    let base = world.deployments(1, 1).remove(0);
    world.control.push(samples::apply(base.clone()));
    let agent = world.agent().start().await?;
    world
        .settles("it runs", std::slice::from_ref(&base), &[], limits::LONG)
        .await?;
    let before = replica_set(&world, &base).await?;
    // Spec and labels; the hash of the template follows both.
    let shape = |set: &ReplicaSet| (set.spec.clone(), set.labels().clone());
    for (what, change) in changes {
        let mut state = base.clone();
        change(&mut state);
        world.control.push(samples::apply(state));
        eventually(
            &format!("{what} has an effect"),
            limits::SHORT,
            async || {
                let set = replica_set(&world, &base)
                    .await
                    .map_err(|failure| failure.to_string())?;
                if shape(&set) == shape(&before) {
                    Err("no change".to_owned())
                } else {
                    Ok(())
                }
            },
        )
        .await?;
        world.control.push(samples::apply(base.clone()));
        eventually(
            &format!("{what} gives it back"),
            limits::SHORT,
            async || {
                let set = replica_set(&world, &base)
                    .await
                    .map_err(|failure| failure.to_string())?;
                if shape(&set) == shape(&before) {
                    Ok(())
                } else {
                    Err(format!("{:?}", set.spec))
                }
            },
        )
        .await?;
    }
    let generation = replica_set(&world, &base).await?.metadata.generation;
    println!(
        "generation {generation:?} after {} changes, each back and forth",
        changes.len()
    );
    agent.stop().await
}
