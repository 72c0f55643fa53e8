//! `krane-testcluster`: builds and runs a test cluster from a shell.

use std::{
    error::Error as _,
    io::{self, Read as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    thread,
    time::Instant,
};

use clap::{Args, Parser, Subcommand};
use krane_testcluster::{Binaries, Cluster, Component, Error, Options, cache_folder};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

/// A real Kubernetes control plane on this machine.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build what is missing and say where it is.
    Build,
    /// Start a cluster and keep it until Ctrl-C or SIGTERM.
    ///
    /// Standard output is a shell script: `eval` it, or read the lines.
    Up(Up),
    /// Print the folder that built programs are kept in.
    Path,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command line")]
struct Up {
    /// Nodes in each of the two pools.
    #[arg(long, default_value_t = Options::default().nodes)]
    nodes: u16,
    /// Write no audit log.
    #[arg(long)]
    no_audit: bool,
    /// No controller manager and no scheduler.
    #[arg(long)]
    no_controllers: bool,
    /// No nodes.
    #[arg(long)]
    no_kwok: bool,
    /// No Cilium CRD.
    #[arg(long)]
    no_cilium: bool,
    /// Apply this file of RBAC manifests and print a kubeconfig of krane's ServiceAccount, too.
    #[arg(long, value_name = "FILE")]
    rbac: Option<PathBuf>,
    /// Also stop when standard input ends.
    #[arg(long)]
    until_stdin_closes: bool,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Build => build(),
        Command::Up(up) => match Runtime::new() {
            Ok(runtime) => {
                let result = runtime.block_on(run(up));
                // A build that was interrupted may still be running on a thread; its guard ends it with this process.
                runtime.shutdown_background();
                result
            }
            Err(error) => {
                say(&format!("cannot start the async runtime: {error}"));
                return ExitCode::FAILURE;
            }
        },
        Command::Path => cache_folder().map(|folder| print(&folder.display().to_string())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), Error> {
    let binaries = Binaries::ensure()?;
    for component in Component::ALL.into_iter().chain([Component::EtcdUtl]) {
        print(&binaries.program(component).display().to_string());
    }
    print(&binaries.cilium_crd().display().to_string());
    Ok(())
}

async fn run(up: Up) -> Result<(), Error> {
    let interrupted = signal_of(SignalKind::interrupt());
    let terminated = signal_of(SignalKind::terminate());
    let end = async {
        tokio::select! {
            () = interrupted => {}
            () = terminated => {}
            () = stdin_end(), if up.until_stdin_closes => {}
        }
    };
    tokio::select! {
        result = hold(&up) => result,
        () = end => {
            say("stopping");
            Ok(())
        }
    }
}

/// Starts a cluster and never returns, unless that fails. Dropping the future ends the cluster.
async fn hold(up: &Up) -> Result<(), Error> {
    let started = Instant::now();
    let cluster = Cluster::start(Options {
        nodes: up.nodes,
        audit: !up.no_audit,
        kwok: !up.no_kwok,
        controllers: !up.no_controllers,
        cilium: !up.no_cilium,
    })
    .await?;
    say(&format!(
        "ready after {:.1} s; folder {}",
        started.elapsed().as_secs_f64(),
        cluster.folder().display()
    ));
    print(&format!(
        "export KUBECONFIG={}",
        cluster.kubeconfig().display()
    ));
    if let Some(rbac) = &up.rbac {
        cluster.install(rbac).await?;
        let kubeconfig = cluster.service_account_kubeconfig().await?;
        print(&format!("export KRANE_KUBECONFIG={}", kubeconfig.display()));
    }
    if !up.no_audit {
        print(&format!(
            "export KRANE_AUDIT_LOG={}",
            cluster.audit_log_path()?.display()
        ));
    }
    std::future::pending().await
}

async fn signal_of(kind: SignalKind) {
    match signal(kind) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        // Without a handler the signal ends this process, and the guard ends the cluster.
        Err(_) => std::future::pending().await,
    }
}

/// On a thread of its own: a read of standard input cannot be cancelled.
async fn stdin_end() {
    let (ended, end) = oneshot::channel::<()>();
    thread::spawn(move || {
        let mut buffer = [0; 1024];
        while matches!(io::stdin().read(&mut buffer), Ok(1..)) {}
        drop(ended);
    });
    // An error is the sender gone.
    let _ = end.await;
}

fn print(text: &str) {
    let mut out = io::stdout();
    // Nobody may be listening any more.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "krane-testcluster: {text}");
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
