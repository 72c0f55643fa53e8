//! Latencies, writes and throughput beside their targets, measured with the real binary on a real API server.
//!
//!   scripts/bench [--deployments N] [--json FILE]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench measures with the real clock and prints"
)]

mod cold_start;
mod drift;
mod figures;
mod reports;
mod restart;

use std::{path::PathBuf, process::ExitCode};

use krane_testcluster::Options;
use krane_testharness::{Failure, Outcome, Quiet, World};

use figures::Figures;

/// The binary that is measured.
const KRANE: &str = env!("CARGO_BIN_EXE_krane");
/// Namespace and environment are shared by so many deployments.
const PER_NAMESPACE: usize = 5;

struct Arguments {
    deployments: usize,
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(failure) => {
            println!("{failure}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Outcome<Arguments> {
    let mut arguments = Arguments {
        deployments: 200,
        json: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .ok_or_else(|| Failure::new(format!("{word} needs a value")))
        };
        match word.as_str() {
            "--deployments" => arguments.deployments = value()?.parse()?,
            "--json" => arguments.json = Some(value()?.into()),
            // Added by cargo.
            "--bench" => {}
            _ => return Err(Failure::new("usage: [--deployments N] [--json FILE]")),
        }
    }
    Ok(arguments)
}

async fn run(arguments: &Arguments) -> Outcome {
    let count = arguments.deployments;
    println!("{count} deployments, {PER_NAMESPACE} per namespace and environment\n");
    let world = World::own(KRANE, Options::default(), Quiet::Alone).await?;
    let mut figures = Figures::default();
    cold_start::measure(&world, count, &mut figures).await?;
    // The last round's workloads stay for the rest.
    let workloads = cold_start::settle(&world, count).await?;
    restart::measure(&world, &workloads, &mut figures).await?;
    let agent = world.agent().start().await?;
    reports::measure(&world, &workloads, &mut figures).await?;
    drift::measure(&world, &workloads, &mut figures).await?;
    agent.stop().await?;
    println!("\n{figures}");
    if let Some(path) = &arguments.json {
        std::fs::write(path, figures.json())?;
        println!("{}", path.display());
    }
    Ok(())
}
