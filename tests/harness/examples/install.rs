//! The chart installed on a real Kubernetes control plane, and krane run as it says: `scripts/install-real [--once]`.
#![allow(
    clippy::print_stdout,
    reason = "a demo talks to the person who started it"
)]

use std::{
    env,
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
    time::Instant,
};

use krane_sim::control_plane::samples;
use krane_testcluster::Options;
use krane_testharness::{Chart, Failure, Outcome, World, limits::LONG};
use kube::ResourceExt as _;
use serde_json::json;
use tokio::signal;

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let Some(binary) = arguments.next() else {
        println!("usage: install KRANE [--once]");
        return ExitCode::from(2);
    };
    let once = arguments.any(|argument| argument == "--once") || !std::io::stdout().is_terminal();
    let installed = tokio::select! {
        installed = install(&binary, once) => installed,
        _ = signal::ctrl_c() => Ok(()),
    };
    match installed {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("\n  ✗ {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn install(binary: &str, once: bool) -> Outcome {
    println!(
        "\nThe chart on a real Kubernetes control plane, on this machine, without containers\n"
    );
    // The agent starts in a folder of its own.
    let binary = std::fs::canonicalize(binary)?;
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
    println!(
        "    {} requests to the API server, none refused",
        requests.len()
    );

    if once {
        return agent.stop().await;
    }
    println!(
        "\n  All of it is still running. In another terminal:\n\n    export KUBECONFIG={}\n    \
         kubectl -n krane get all\n    kubectl get validatingadmissionpolicy krane -o yaml\n    \
         curl http://127.0.0.1:{}/health/ready\n\n  Ctrl-C ends everything.",
        world.cluster().kubeconfig().display(),
        agent.rpc_port()
    );
    std::future::pending().await
}

fn done(what: &str, since: Instant) {
    println!("  ✔ {what:<76} {:>6.2} s", since.elapsed().as_secs_f64());
    let _ = std::io::stdout().flush();
}
