//! `krane run --observe` and `krane check` on a real cluster, with krane's own rights.

use std::process::Output;

use krane_sim::control_plane::{PLATFORM, REGION};
use krane_testharness::{Failure, Outcome, World, limits};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::KRANE;

/// Runs the binary against this world to its end.
async fn krane(world: &World, arguments: &[&str]) -> Outcome<(Output, Value)> {
    let folder = TempDir::new()?;
    let config = folder.path().join("krane.toml");
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    std::fs::write(
        &config,
        format!(
            "region = {REGION:?}\nplatform = {PLATFORM:?}\nrpc_port = {port}\n\
             control.url = {:?}\ncontrol.token = {:?}\nadmin.listen = ''\n",
            world.control.url(),
            world.control.token(),
        ),
    )?;
    let output = Command::new(KRANE)
        .args(arguments)
        .args(["-o", "json", "--config"])
        .arg(&config)
        .arg("--kubeconfig")
        .arg(world.kubeconfig())
        .env_clear()
        .kill_on_drop(true)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parsed = serde_json::from_str(&text);
    let parsed = parsed.map_err(|error| {
        let log = String::from_utf8_lossy(&output.stderr);
        Failure::new(format!("{error}: {text}\n{log}"))
    })?;
    Ok((output, parsed))
}

fn told(summary: &Value) -> Vec<String> {
    let entries = summary["entries"].as_array().into_iter().flatten();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries
        .map(|entry| format!("{} {}", word(&entry["what"]), word(&entry["object"])))
        .collect()
}

/// Before krane everything would be made, and afterwards nothing; an edit in between is the only
/// difference. None of it is written.
#[tokio::test(flavor = "multi_thread")]
async fn what_krane_would_write_is_what_it_then_writes() -> Outcome {
    let world = World::shared(KRANE).await?;
    let wanted = world.deployments(3, 1);
    world.push_all(&wanted);
    let observe = ["run", "--observe", "--for", "40s"];

    let mark = world.mark()?;
    let (output, summary) = krane(&world, &observe).await?;
    assert_eq!(output.status.code(), Some(1), "{summary:#}");
    let before = told(&summary);
    for deployment in &wanted {
        let namespace = &deployment.k8s_namespace;
        for expected in [
            format!("create Namespace {namespace}"),
            format!("create ReplicaSet {namespace}/{}", deployment.k8s_name),
        ] {
            assert!(before.contains(&expected), "{expected}: {before:#?}");
        }
    }
    let written = world.writes(mark)?;
    assert!(written.is_empty(), "{written:#?}");
    let requests = world.requests(mark)?;
    let mut rehearsed = requests.iter().filter(|it| it.uri.contains("dryRun=All"));
    assert!(rehearsed.next().is_some(), "the server was asked");

    let agent = world.agent().start().await?;
    world
        .settles("all deployments run", &wanted, &[], limits::VERY_LONG)
        .await?;
    agent.stop().await?;
    let (output, summary) = krane(&world, &observe).await?;
    assert_eq!(told(&summary), Vec::<String>::new());
    assert_eq!(output.status.code(), Some(0), "{summary:#}");
    Ok(())
}

/// The preflight finds every right that the chart gives, and what this cluster has.
#[tokio::test(flavor = "multi_thread")]
async fn the_preflight_finds_all_well_with_the_rights_of_the_chart() -> Outcome {
    let world = World::shared(KRANE).await?;
    let (output, report) = krane(&world, &["check"]).await?;
    let findings = report["findings"].as_array().into_iter().flatten();
    let failed: Vec<&Value> = findings.filter(|it| it["state"] == "fail").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    Ok(())
}
