//! What the control plane is told, and what it no longer knows.

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Namespace};
use krane_sim::control_plane::{Asked, Kind, Method, Report, samples};
use krane_testharness::{Outcome, eventually, limits};
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::states::metric_is;
use crate::world;

/// unkeyed/unkey ce0572d7b7, PR #4991 (A38): NOT_FOUND for an existing workload was only logged. D6, D7: three may
/// go, more at once are held.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_control_plane_no_longer_knows_goes_but_never_much_at_once() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(20, 4);
    world.push_all(&wanted);
    let agent = world.agent().set("resync.interval", "2s").start().await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    let gone = wanted.split_off(17);
    for state in &gone {
        world
            .control
            .forget(Kind::Deployments, &state.deployment_id);
    }
    world
        .settles("three are removed", &wanted, &gone, limits::LONG)
        .await?;

    for state in &wanted[..10] {
        world
            .control
            .forget(Kind::Deployments, &state.deployment_id);
    }
    metric_is(&agent, "krane_deletes_held", 10).await?;
    world
        .check_settled(&wanted, &gone)
        .await
        .map_err(krane_testharness::Failure::new)?;
    let admin = format!("127.0.0.1:{}", agent.admin_port());
    let allow = async |more: &[&str]| -> Outcome<(Option<i32>, String)> {
        let output = tokio::process::Command::new(crate::KRANE)
            .args(["allow-deletes", "deployments", "--admin", &admin])
            .args(more)
            .output()
            .await?;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.code(), shown))
    };
    let (code, shown) = allow(&[]).await?;
    assert_eq!((code, shown.lines().count()), (Some(1), 10), "{shown}");
    metric_is(&agent, "krane_deletes_held", 10).await?;
    // Named again, they are wanted again; one is not, and a person lets it go.
    let unknown = wanted.remove(0);
    world.push_all(&wanted[..9]);
    metric_is(&agent, "krane_deletes_held", 1).await?;
    assert_eq!(allow(&["--yes"]).await?.0, Some(0));
    let mut gone = gone;
    gone.push(unknown);
    metric_is(&agent, "krane_deletes_held", 0).await?;
    world
        .settles("all are still there", &wanted, &gone, limits::LONG)
        .await?;
    agent.stop().await
}

/// unkeyed/unkey 36b5384c3a (A30): an empty id in a report or question could wipe or claim others.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_without_an_id_is_left_alone_and_named_to_nobody() -> Outcome {
    let world = world().await?;
    let web = world.deployments(1, 1).remove(0);
    let namespace = Namespace {
        metadata: kube::api::ObjectMeta {
            name: Some(web.k8s_namespace.clone()),
            ..Default::default()
        },
        ..Default::default()
    };
    world
        .api
        .all::<Namespace>()
        .create(&PostParams::default(), &namespace)
        .await?;
    let sets: Api<ReplicaSet> = world.api.within(&web.k8s_namespace);
    for (name, id) in [("no-id", None), ("empty-id", Some(""))] {
        let mut labels = json!({
            "app.kubernetes.io/managed-by": "krane", "app.kubernetes.io/component": "deployment", "x": name,
        });
        if let Some(id) = id {
            labels["unkey.com/deployment.id"] = json!(id);
        }
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "labels": labels},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"x": name}}, "template": {
                "metadata": {"labels": {"x": name}},
                "spec": {"containers": [{"name": "c", "image": "registry.example/app:well"}]},
            }},
        });
        sets.create(&PostParams::default(), &serde_json::from_value(set)?)
            .await?;
    }
    world.control.push(samples::apply(web.clone()));
    let mark = world.mark()?;
    let agent = world.agent().set("resync.interval", "1s").start().await?;
    world
        .control
        .wait_for("web runs", limits::LONG, |seen| {
            seen.running(&web.k8s_name).then_some(())
        })
        .await?;
    eventually("three passes", limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let passes = metrics.deployments("krane_resync_duration_seconds_count");
        if passes >= 3.0 {
            Ok(())
        } else {
            Err(format!("{passes} passes"))
        }
    })
    .await?;
    let touched = world.writes(mark)?;
    assert!(
        touched.iter().all(|write| !write.name.ends_with("-id")),
        "{touched:#?}"
    );
    world.control.look(|seen| {
        for request in &seen.requests {
            match &request.asked {
                Asked::Desired { id } => assert_eq!(id, &web.deployment_id),
                Asked::Report(report) => assert_eq!(report.name(), web.k8s_name),
                Asked::Watch { .. } | Asked::Heartbeat => {}
                Asked::Unreadable => panic!("an unreadable request"),
            }
        }
    });
    for name in ["no-id", "empty-id"] {
        let lines = agent.log().lines()?;
        let told = lines
            .iter()
            .filter(|line| line.json().to_string().contains(name))
            .count();
        assert_eq!(told, 1, "{name} is named {told} times");
    }
    agent.stop().await
}

/// unkeyed/unkey 8b161adf66, PR #5328 (A37): what was last told survived the delete.
#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_comes_back_is_told_again() -> Outcome {
    let world = world().await?;
    let web = world.deployments(1, 1);
    world.push_all(&web);
    let agent = world.agent().start().await?;
    world.settles("it runs", &web, &[], limits::LONG).await?;
    world.control.push(samples::delete(&web[0]));
    world.settles("it is gone", &[], &web, limits::LONG).await?;
    world.push_all(&web);
    world
        .settles("it runs again", &web, &[], limits::LONG)
        .await?;
    let told: Vec<bool> = world.control.look(|seen| {
        let of = seen.reports_of(&web[0].k8s_name);
        of.map(|(_, report)| matches!(report, Report::Deleted { .. }))
            .collect()
    });
    let delete = told.iter().position(|is_delete| *is_delete);
    assert!(
        delete.is_some_and(|at| at > 0 && !told[at + 1..].is_empty()),
        "{told:?}"
    );
    agent.stop().await
}

/// hashicorp/nomad#16381 (B18): after each restart everything was told at once, which became a stampede.
#[tokio::test(flavor = "multi_thread")]
async fn restarts_tell_everything_without_a_stampede() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(150, 10);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    world
        .settles("all run", &wanted, &[], limits::VERY_LONG)
        .await?;
    agent.stop().await?;
    world.control.delay(
        Method::ReportDeployment,
        std::time::Duration::from_millis(100),
    );
    for round in 1..=3 {
        let agent = world.agent().start().await?;
        let started = std::time::Instant::now();
        wanted[0].replicas = round + 1;
        world.control.push(samples::apply(wanted[0].clone()));
        let name = wanted[0].k8s_name.clone();
        let live = |seen: &krane_sim::control_plane::Seen| {
            let report = seen.report(&name)?;
            let all = usize::try_from(round + 1) == Ok(report.instances().len());
            (all && report.is_running()).then_some(())
        };
        world
            .control
            .wait_for("the live change is told", limits::SHORT, live)
            .await?;
        println!(
            "restart {round}: a live change is told after {:?}",
            started.elapsed()
        );
        agent.stop().await?;
    }
    let most = world.control.look(|seen| {
        let mut edges: Vec<_> = seen
            .of(Method::ReportDeployment)
            .filter_map(|request| Some([(request.at, 1), (request.ended?.1, -1)]))
            .flatten()
            .collect();
        edges.sort();
        edges
            .iter()
            .scan(0, |now, (_, step)| {
                *now += step;
                Some(*now)
            })
            .max()
    });
    println!("at most {most:?} reports in flight");
    assert!(most <= Some(32), "{most:?}");
    Ok(())
}
