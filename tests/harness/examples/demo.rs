//! krane on a real Kubernetes control plane, told step by step: `scripts/demo-real [--once]`.
#![allow(
    clippy::print_stdout,
    reason = "a demo talks to the person who started it"
)]

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use k8s_openapi::api::apps::v1::ReplicaSet;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Code, Kind, Method, samples};
use krane_testcluster::Options;
use krane_testharness::{
    Agent, Failure, Outcome, Quiet, World, eventually,
    limits::LONG,
    story::{self, done, note},
};
use serde_json::json;
use tokio::time::sleep;

const DEPLOYMENTS: usize = 20;
const NAMESPACES: usize = 4;

#[tokio::main]
async fn main() -> ExitCode {
    story::play("demo", tell).await
}

async fn tell(binary: PathBuf, once: bool) -> Outcome {
    println!("\nkrane on a real Kubernetes control plane, on this machine, without containers\n");
    let started = Instant::now();
    let world = World::own(&binary, Options::default(), Quiet::Beside).await?;
    done(
        "etcd, kube-apiserver, controllers, scheduler and six nodes run",
        started,
    );

    let mut wanted = world.deployments(DEPLOYMENTS, NAMESPACES);
    let mut agent = roll_out(&world, &wanted).await?;
    undo_an_edit(&world, &wanted[0]).await?;
    step_over_a_bad_state(&world, &agent, &mut wanted).await?;
    lose_the_control_plane(&world, &mut wanted).await?;
    agent.kill().await?;
    let agent = come_back(&world, &wanted).await?;

    let commands = ["kubectl get replicasets,pods -A -l app.kubernetes.io/managed-by=krane"];
    story::end(&world, agent, once, &commands).await
}

async fn roll_out(world: &World, wanted: &[ApplyDeployment]) -> Outcome<Agent> {
    let mark = world.mark()?;
    let started = Instant::now();
    world.push_all(wanted);
    world
        .control
        .push(samples::apply_sentinel(samples::sentinel("front")));
    let agent = world.agent().start().await?;
    world
        .settles("everything runs and is reported", wanted, &[], LONG)
        .await?;
    done(
        &format!("{DEPLOYMENTS} deployments wanted: all run, all reported back"),
        started,
    );
    note(&format!(
        "{} writes to the API server",
        world.writes(mark)?.len()
    ));
    Ok(agent)
}

async fn undo_an_edit(world: &World, of: &ApplyDeployment) -> Outcome {
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "deployment", "image": "registry.example/someone-elses:image"}
    ]}}}});
    let edited: ReplicaSet = world
        .api
        .edit(&of.k8s_namespace, &of.k8s_name, image)
        .await?;
    let started = Instant::now();
    eventually("the image is back", LONG, async || {
        let sets = world.api.within::<ReplicaSet>(&of.k8s_namespace);
        let set = sets
            .get(&of.k8s_name)
            .await
            .map_err(|error| error.to_string())?;
        let text = serde_json::to_string(&set.spec).map_err(|error| error.to_string())?;
        if text.contains("someone-elses") || set.metadata.uid != edited.metadata.uid {
            return Err("not yet".to_owned());
        }
        Ok(())
    })
    .await?;
    done("somebody edits an image by hand: undone", started);
    Ok(())
}

async fn step_over_a_bad_state(
    world: &World,
    agent: &Agent,
    wanted: &mut [ApplyDeployment],
) -> Outcome {
    let bad = ApplyDeployment {
        image: "no image at all".to_owned(),
        ..wanted[1].clone()
    };
    world.control.push(samples::apply(bad));
    let started = Instant::now();
    "registry.example/app:well2".clone_into(&mut wanted[2].image);
    world.control.push(samples::apply(wanted[2].clone()));
    eventually("the bad state is in quarantine", LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        match metrics.deployments("krane_quarantined") {
            1.0 => Ok(()),
            other => Err(format!("{other} in quarantine")),
        }
    })
    .await?;
    world
        .settles("the state behind it is applied", wanted, &[], LONG)
        .await?;
    done(
        "a state that cannot work: set aside, the one behind it applied",
        started,
    );
    world.control.push(samples::apply(wanted[1].clone()));
    eventually("nothing is in quarantine", LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        if metrics.deployments("krane_quarantined") > 0.0 {
            return Err("still there".to_owned());
        }
        Ok(())
    })
    .await?;
    note("a newer state of the same object ended its quarantine");
    Ok(())
}

async fn lose_the_control_plane(world: &World, wanted: &mut [ApplyDeployment]) -> Outcome {
    world.control.stop().await;
    sleep(Duration::from_secs(3)).await;
    wanted[3].replicas = 3;
    world.control.push(samples::apply(wanted[3].clone()));
    world.control.start_again().await?;
    let started = Instant::now();
    world
        .settles("the change is applied", wanted, &[], LONG)
        .await?;
    done("the control plane was away for 3 s: caught up", started);
    world.control.cut_streams(Code::Unavailable);
    Ok(())
}

async fn come_back(world: &World, wanted: &[ApplyDeployment]) -> Outcome<Agent> {
    let mark = world.mark()?;
    let started = Instant::now();
    let agent = world.agent().start().await?;
    let newest = world.control.newest(Kind::Deployments);
    eventually("the cursor is at the newest version", LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let cursor = metrics.deployments("krane_stream_cursor");
        #[expect(clippy::cast_precision_loss, reason = "a few dozen versions")]
        if cursor >= newest as f64 {
            return Ok(());
        }
        Err(format!("at {cursor} of {newest}"))
    })
    .await?;
    let writes = world.writes(mark)?;
    if !writes.is_empty() {
        return Err(Failure::new(format!(
            "{} writes after the restart",
            writes.len()
        )));
    }
    done(
        "kill -9, started again: everything compared, nothing written",
        started,
    );
    world
        .check_settled(wanted, &[])
        .await
        .map_err(Failure::new)?;
    let asked = world
        .control
        .look(|seen| seen.of(Method::Heartbeat).count());
    note(&format!("{asked} heartbeats so far"));
    Ok(agent)
}
