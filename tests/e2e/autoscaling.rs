//! Who decides how many pods a workload has: krane without a policy, the autoscaler with one.

use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{PersistentVolumeClaim, Pod},
};
use krane_proto::ctrl::v1::{ApplyDeployment, AutoscalingPolicy, EphemeralStorage};
use krane_sim::control_plane::samples;
use krane_testharness::{
    Agent, Outcome, World,
    edits::{AUTOSCALER_EDITS, AUTOSCALER_INTRUSIONS, Victim},
    eventually, limits,
};
use kube::{
    ResourceExt as _,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use serde_json::json;

use crate::{drift::all_are_undone, states::metric_is, world};

fn fixed(world: &World, replicas: i32) -> ApplyDeployment {
    ApplyDeployment {
        replicas,
        ..samples::deployment(&world.namespace(0), "web")
    }
}

fn scaled(world: &World, replicas: i32, min: u32, max: u32) -> ApplyDeployment {
    ApplyDeployment {
        autoscaling: Some(AutoscalingPolicy {
            min_replicas: min,
            max_replicas: max,
            memory_threshold: Some(90),
            ..AutoscalingPolicy::default()
        }),
        ..fixed(world, replicas)
    }
}

/// What the cluster has to look like when somebody else decided on this many.
fn with(deployment: &ApplyDeployment, replicas: i32) -> [ApplyDeployment; 1] {
    let replicas = ApplyDeployment {
        replicas,
        ..deployment.clone()
    };
    [replicas]
}

async fn replica_set(world: &World, of: &ApplyDeployment) -> Outcome<ReplicaSet> {
    let sets = world.api.within::<ReplicaSet>(&of.k8s_namespace);
    Ok(sets.get(&of.k8s_name).await?)
}

async fn autoscaler(world: &World, of: &ApplyDeployment) -> Outcome<HorizontalPodAutoscaler> {
    let autoscalers = world
        .api
        .within::<HorizontalPodAutoscaler>(&of.k8s_namespace);
    eventually("the autoscaler is there", limits::SHORT, async || {
        let found = autoscalers.get(&of.k8s_name).await;
        found.map_err(|error| error.to_string())
    })
    .await
}

async fn has_no_autoscaler(world: &World, of: &ApplyDeployment) -> Outcome {
    let autoscalers = world
        .api
        .within::<HorizontalPodAutoscaler>(&of.k8s_namespace);
    eventually(
        "the autoscaler is gone",
        limits::SHORT,
        async || match autoscalers.get_opt(&of.k8s_name).await {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(format!("{found:?}")),
            Err(error) => Err(error.to_string()),
        },
    )
    .await
}

/// As the autoscaler does it: the one of the test cluster has no metrics to act on.
async fn scale(world: &World, of: &ApplyDeployment, replicas: i32) -> Outcome {
    let params = PatchParams {
        field_manager: Some("kube-controller-manager".to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let sets = world.api.within::<ReplicaSet>(&of.k8s_namespace);
    sets.patch_scale(&of.k8s_name, &params, &patch).await?;
    Ok(())
}

async fn passes(agent: &Agent, more: f64) -> Outcome {
    let name = "krane_resync_duration_seconds_count";
    let before = agent.metrics().await?.deployments(name);
    eventually("passes over all objects", limits::LONG, async || {
        let metrics = agent.metrics().await;
        let now = metrics
            .map_err(|failure| failure.to_string())?
            .deployments(name);
        if now >= before + more {
            Ok(())
        } else {
            Err(format!("{} passes", now - before))
        }
    })
    .await
}

/// D11c, D14.
#[tokio::test(flavor = "multi_thread")]
async fn a_workload_with_a_policy_starts_with_its_minimum_and_owns_its_autoscaler() -> Outcome {
    let world = world().await?;
    let web = scaled(&world, 1, 3, 6);
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().start().await?;
    world
        .settles("three run and are told", &with(&web, 3), &[], limits::LONG)
        .await?;
    let set = replica_set(&world, &web).await?;
    let found = autoscaler(&world, &web).await?;
    let owners: Vec<_> = found
        .owner_references()
        .iter()
        .map(|owner| &owner.uid)
        .collect();
    assert_eq!(owners, [set.metadata.uid.as_ref().expect("it is live")]);
    let spec = &found.spec;
    assert_eq!((spec.min_replicas, spec.max_replicas), (Some(3), 6));
    let targets = spec.metrics.iter().flatten().filter_map(|metric| {
        let resource = metric.resource.as_ref()?;
        Some((resource.name.as_str(), resource.target.average_utilization))
    });
    assert_eq!(
        targets.collect::<Vec<_>>(),
        [("memory", Some(90)), ("cpu", Some(80))]
    );

    world.control.push(samples::delete(&web));
    world
        .settles("it is gone", &[], std::slice::from_ref(&web), limits::LONG)
        .await?;
    has_no_autoscaler(&world, &web).await?;
    agent.stop().await
}

/// D11c: what the autoscaler decided is its own; nothing krane does takes it back.
#[tokio::test(flavor = "multi_thread")]
async fn a_scaled_number_survives_passes_changes_and_a_restart_without_a_write() -> Outcome {
    let world = world().await?;
    let mut web = scaled(&world, 1, 2, 9);
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().set("resync.interval", "1s").start().await?;
    world
        .settles("two run", &with(&web, 2), &[], limits::LONG)
        .await?;
    autoscaler(&world, &web).await?;

    let mark = world.mark()?;
    scale(&world, &web, 5).await?;
    world
        .settles("five run", &with(&web, 5), &[], limits::LONG)
        .await?;
    passes(&agent, 3.0).await?;
    assert_eq!(world.writes(mark)?, [], "scaling calls for no write");
    metric_is(&agent, "krane_drift_detected_total", 0).await?;

    web.image = "registry.example/app:well2".to_owned();
    world.control.push(samples::apply(web.clone()));
    let image = "registry.example/app:well2";
    eventually("the image is another", limits::SHORT, async || {
        let set = replica_set(&world, &web)
            .await
            .map_err(|failure| failure.to_string())?;
        let text = serde_json::to_string(&set.spec).map_err(|error| error.to_string())?;
        if text.contains(image) {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await?;
    assert_eq!(replicas(&replica_set(&world, &web).await?), Some(5));
    agent.stop().await?;

    let mark = world.mark()?;
    let agent = world.agent().set("resync.interval", "1s").start().await?;
    metric_is(&agent, "krane_stream_cursor", 2).await?;
    passes(&agent, 2.0).await?;
    assert_eq!(world.writes(mark)?, [], "a restart calls for no write");
    assert_eq!(replicas(&replica_set(&world, &web).await?), Some(5));

    // The autoscaler of the cluster itself, which needs no metrics for this.
    let web = ApplyDeployment {
        image: web.image,
        ..scaled(&world, 1, 7, 9)
    };
    world.control.push(samples::apply(web.clone()));
    eventually(
        "the autoscaler raises it",
        limits::LONG,
        async || match replica_set(&world, &web).await.map(|set| replicas(&set)) {
            Ok(Some(7)) => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await?;
    passes(&agent, 2.0).await?;
    assert_eq!(replicas(&replica_set(&world, &web).await?), Some(7));
    agent.stop().await
}

fn replicas(set: &ReplicaSet) -> Option<i32> {
    set.spec.as_ref()?.replicas
}

/// Every number of pods that a workload ever has, in order, each once.
async fn every_number(world: &World, of: &ApplyDeployment) -> Outcome<Arc<Mutex<Vec<i32>>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sets = world.api.within::<ReplicaSet>(&of.k8s_namespace);
    let version = replica_set(world, of)
        .await?
        .resource_version()
        .unwrap_or_default();
    let params = WatchParams::default().fields(&format!("metadata.name={}", of.k8s_name));
    let mut events = sets.watch(&params, &version).await?.boxed();
    let numbers = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Some(Ok(event)) = events.next().await {
            if let WatchEvent::Modified(set) = event
                && let (Some(count), Ok(mut seen)) = (replicas(&set), numbers.lock())
                && seen.last() != Some(&count)
            {
                seen.push(count);
            }
        }
    });
    Ok(seen)
}

/// D11c: left out while krane owns it, the number falls to 1.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_comes_and_goes_never_takes_pods_away_in_between() -> Outcome {
    let world = world().await?;
    let plain = fixed(&world, 4);
    world.control.push(samples::apply(plain.clone()));
    let agent = world.agent().start().await?;
    world
        .settles("four run", std::slice::from_ref(&plain), &[], limits::LONG)
        .await?;
    let numbers = every_number(&world, &plain).await?;

    let policy = scaled(&world, 1, 2, 9);
    world.control.push(samples::apply(policy.clone()));
    autoscaler(&world, &policy).await?;
    // krane still owns the number: the autoscaler has not changed it yet.
    let changed = ApplyDeployment {
        image: "registry.example/app:well2".to_owned(),
        ..policy
    };
    world.control.push(samples::apply(changed.clone()));
    metric_is(&agent, "krane_stream_cursor", 3).await?;
    assert_eq!(replicas(&replica_set(&world, &changed).await?), Some(4));
    scale(&world, &changed, 6).await?;
    eventually("six pods", limits::LONG, async || {
        let live = world.live().await.map_err(|failure| failure.to_string())?;
        let pods: usize = live.pods.values().map(Vec::len).sum();
        if pods == 6 {
            Ok(())
        } else {
            Err(pods.to_string())
        }
    })
    .await?;

    let plain = ApplyDeployment {
        image: changed.image.clone(),
        ..fixed(&world, 3)
    };
    world.control.push(samples::apply(plain.clone()));
    has_no_autoscaler(&world, &plain).await?;
    eventually(
        "the wanted number is enforced",
        limits::SHORT,
        async || match replica_set(&world, &plain).await.map(|set| replicas(&set)) {
            Ok(Some(3)) => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await?;
    scale(&world, &plain, 8).await?;
    let numbers = eventually("what others set is undone", limits::SHORT, async || {
        let seen = numbers.lock().map(|seen| seen.clone()).unwrap_or_default();
        if seen.ends_with(&[8, 3]) {
            Ok(seen)
        } else {
            Err(format!("{seen:?}"))
        }
    })
    .await?;
    assert_eq!(numbers, [4, 6, 3, 8, 3]);
    agent.stop().await
}

/// krane's view may be older than what an autoscaler just decided: then the write is refused and made anew.
#[tokio::test(flavor = "multi_thread")]
async fn changes_that_race_with_the_autoscaler_never_undo_it() -> Outcome {
    let world = world().await?;
    let mut web = scaled(&world, 1, 1, 9);
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().start().await?;
    world
        .settles("one runs", &with(&web, 1), &[], limits::LONG)
        .await?;
    for round in 0..20_i32 {
        // krane owns the number again, as after a time without a policy.
        let plain = fixed(&world, 1 + round % 4);
        world.control.push(samples::apply(plain.clone()));
        has_no_autoscaler(&world, &plain).await?;
        eventually("enforced", limits::SHORT, async || {
            match replica_set(&world, &plain).await.map(|set| replicas(&set)) {
                Ok(found) if found == Some(plain.replicas) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
        world.control.push(samples::apply(web.clone()));
        autoscaler(&world, &web).await?;
        web.image = format!("registry.example/app:well{}", round + 2);
        let version = world.control.push(samples::apply(web.clone()));
        scale(&world, &web, 7).await?;
        let version = u32::try_from(version)?;
        metric_is(&agent, "krane_stream_cursor", version).await?;
        let set = replica_set(&world, &web).await?;
        assert_eq!(replicas(&set), Some(7), "round {round}");
    }
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_edit_of_an_autoscaler_is_undone_and_so_is_its_deletion() -> Outcome {
    let world = world().await?;
    let web = scaled(&world, 2, 2, 6);
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    world
        .settles("two run", &with(&web, 2), &[], limits::LONG)
        .await?;
    autoscaler(&world, &web).await?;
    let mut victim = Victim::autoscaler(&world.api, &web.k8s_namespace, &web.k8s_name).await?;
    all_are_undone(&mut victim, &AUTOSCALER_EDITS).await?;
    all_are_undone(&mut victim, &AUTOSCALER_INTRUSIONS).await?;
    // Deletes it, and waits until there is another.
    victim.renew().await?;
    // What was deleted and recreated with its workload hangs on the new one.
    world
        .api
        .delete::<ReplicaSet>(&web.k8s_namespace, &web.k8s_name)
        .await?;
    eventually("both are there again", limits::LONG, async || {
        let set = replica_set(&world, &web)
            .await
            .map_err(|failure| failure.to_string())?;
        let found = autoscaler(&world, &web)
            .await
            .map_err(|failure| failure.to_string())?;
        let owners: Vec<_> = found
            .owner_references()
            .iter()
            .map(|o| o.uid.clone())
            .collect();
        if set.metadata.deletion_timestamp.is_none() && owners == [set.uid().unwrap_or_default()] {
            Ok(())
        } else {
            Err(format!("{owners:?}"))
        }
    })
    .await?;
    world
        .settles("two run again", &with(&web, 2), &[], limits::LONG)
        .await?;
    agent.stop().await
}

/// The volume is claimed for each pod, of the configured class.
#[tokio::test(flavor = "multi_thread")]
async fn an_ephemeral_volume_is_claimed_for_the_pod_and_a_restart_writes_nothing() -> Outcome {
    let world = world().await?;
    let web = ApplyDeployment {
        ephemeral_storage: Some(EphemeralStorage { size_mib: 2048 }),
        ..fixed(&world, 1)
    };
    world.control.push(samples::apply(web.clone()));
    let agent = world
        .agent()
        .set("storage_class_name", "fast")
        .start()
        .await?;
    let claims = world
        .api
        .within::<PersistentVolumeClaim>(&web.k8s_namespace);
    let claim = eventually("the claim is there", limits::LONG, async || {
        let found = claims.list(&ListParams::default()).await;
        let found = found.map_err(|error| error.to_string())?;
        found
            .items
            .first()
            .cloned()
            .ok_or_else(|| "none".to_owned())
    })
    .await?;
    let spec = claim.spec.as_ref().expect("it has one");
    assert_eq!(spec.storage_class_name.as_deref(), Some("fast"));
    let size = spec
        .resources
        .as_ref()
        .and_then(|r| r.requests.as_ref()?.get("storage"));
    assert_eq!(size.map(|size| size.0.as_str()), Some("2Gi"));
    let pods = world.api.within::<Pod>(&web.k8s_namespace);
    let pods = pods.list(&ListParams::default()).await?;
    let pod = pods
        .items
        .first()
        .and_then(|pod| pod.spec.as_ref())
        .expect("there is one");
    let container = serde_json::to_value(&pod.containers[0])?;
    let has = |list: &str, item: serde_json::Value| {
        container[list]
            .as_array()
            .is_some_and(|items| items.contains(&item))
    };
    assert!(
        has(
            "volumeMounts",
            json!({"name": "data", "mountPath": "/data"})
        ),
        "{container}"
    );
    let path = json!({"name": "UNKEY_EPHEMERAL_DISK_PATH", "value": "/data"});
    assert!(has("env", path), "{container}");
    metric_is(&agent, "krane_stream_cursor", 1).await?;
    agent.stop().await?;

    let mark = world.mark()?;
    let agent = world
        .agent()
        .set("storage_class_name", "fast")
        .set("resync.interval", "1s")
        .start()
        .await?;
    metric_is(&agent, "krane_stream_cursor", 1).await?;
    passes(&agent, 2.0).await?;
    assert_eq!(world.writes(mark)?, []);
    agent.stop().await
}
