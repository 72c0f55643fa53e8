//! A story on a real cluster, told step by step to the person who started it.

#![allow(clippy::print_stdout, reason = "it talks to the person who started it")]

use std::env;
use std::future::Future;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::{Agent, Outcome, World};

/// Plays it with the binary that the command line names, until its end or Ctrl-C. The second thing
/// a story is given says whether it ends after its last step (`--once`, or nobody to read).
pub async fn play<S, F>(name: &str, story: S) -> ExitCode
where
    S: FnOnce(PathBuf, bool) -> F,
    F: Future<Output = Outcome>,
{
    let mut arguments = env::args().skip(1);
    let Some(binary) = arguments.next() else {
        println!("usage: {name} KRANE [--once]");
        return ExitCode::from(2);
    };
    let once = arguments.any(|argument| argument == "--once") || !std::io::stdout().is_terminal();
    let told = async {
        // The agent starts in a folder of its own.
        story(std::fs::canonicalize(&binary)?, once).await
    };
    let told = tokio::select! {
        told = told => told,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("\n  ✗ {failure}");
            ExitCode::FAILURE
        }
    }
}

/// A step that took until now.
pub fn done(what: &str, since: Instant) {
    println!("  ✔ {what:<76} {:>6.2} s", since.elapsed().as_secs_f64());
    let _ = std::io::stdout().flush();
}

/// Something about the step before.
pub fn note(what: &str) {
    println!("    {what}");
}

/// The last step: everything stays up for these commands until Ctrl-C, or ends.
pub async fn end(world: &World, agent: Agent, once: bool, commands: &[&str]) -> Outcome {
    if once {
        return agent.stop().await;
    }
    let commands = commands.join("\n    ");
    println!(
        "\n  All of it is still running. In another terminal:\n\n    export KUBECONFIG={}\n    {commands}\n    \
         curl http://127.0.0.1:{}/health/ready\n\n  Ctrl-C ends everything.",
        world.cluster().kubeconfig().display(),
        agent.rpc_port()
    );
    std::future::pending().await
}
