//! The chart installed on a real Kubernetes control plane, and krane run as it says: `scripts/install-real [--once]`.
#![allow(
    clippy::print_stdout,
    reason = "a demo talks to the person who started it"
)]

use std::{path::PathBuf, process::ExitCode, time::Instant};

use krane_sim::control_plane::samples;
use krane_testcluster::Options;
use krane_testharness::{
    Chart, Failure, Outcome, World,
    limits::LONG,
    story::{self, done, note},
};
use kube::ResourceExt as _;
use serde_json::json;

#[tokio::main]
async fn main() -> ExitCode {
    story::play("install", install).await
}

async fn install(binary: PathBuf, once: bool) -> Outcome {
    println!(
        "\nThe chart on a real Kubernetes control plane, on this machine, without containers\n"
    );
    let started = Instant::now();
    let world = World::bare(&binary, Options::default()).await?;
    done(
        "etcd, kube-apiserver, controllers, scheduler and six nodes run",
        started,
    );

    let started = Instant::now();
    let chart = Chart::new(&world, &json!({"leaderElection": {"enabled": true}}))?;
    chart.install().await?;
    done(
        "rendered by helm, applied; its rights are in force",
        started,
    );

    let started = Instant::now();
    let pod = chart.pod().await?;
    let what = format!(
        "{} is admitted as a restricted pod, and available",
        pod.name_any()
    );
    done(&what, started);

    let mark = world.mark()?;
    let web = samples::deployment(&world.namespace(0), "web");
    world.control.push(samples::apply(web.clone()));
    let started = Instant::now();
    let agent = chart.start(&pod).await?;
    done(
        "krane runs with the container's arguments, files and token",
        started,
    );
    world
        .settles("web runs and is reported", &[web], &[], LONG)
        .await?;
    done("a deployment is wanted: it runs, and is reported", started);

    let requests = world.requests(mark)?;
    if let Some(refused) = requests
        .iter()
        .find(|request| matches!(request.code, 401 | 403))
    {
        return Err(Failure::new(format!("refused: {refused:?}")));
    }
    note(&format!(
        "{} requests to the API server, none refused",
        requests.len()
    ));

    let commands = [
        "kubectl -n krane get all",
        "kubectl get validatingadmissionpolicy krane -o yaml",
    ];
    story::end(&world, agent, once, &commands).await
}
