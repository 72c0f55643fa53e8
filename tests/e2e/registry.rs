//! The password of the registry, as its file gives it (D33, D42).

use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use krane_testharness::{Agent, CANARY, Failure, Outcome, World, eventually, limits};
use serde_json::Value;

use crate::world;

/// Both pull secrets hold this password at this moment.
async fn check_hold(world: &World, password: &str) -> Outcome {
    hold(world, password).await.map_err(Failure::new)
}

/// Whether the pull secrets of both namespaces hold this password.
async fn hold(world: &World, password: &str) -> Result<(), String> {
    for index in [0, 1] {
        let namespace = world.namespace(index);
        let secrets = world.api.within::<Secret>(&namespace);
        let secret = secrets.get("depot-pull-secret").await;
        let secret = secret.map_err(|error| error.to_string())?;
        let data = secret.data.unwrap_or_default();
        let config = data
            .get(".dockerconfigjson")
            .map(|bytes| bytes.0.as_slice());
        let config: Value = serde_json::from_slice(config.unwrap_or_default())
            .map_err(|error| error.to_string())?;
        let found = &config["auths"]["registry.example"]["password"];
        if found != password {
            return Err(format!("{namespace} has another one"));
        }
    }
    Ok(())
}

/// The problems that krane shows.
async fn problems(agent: &Agent) -> Result<Vec<Value>, String> {
    let (_, body) = agent
        .admin("/api/v1/health")
        .await
        .map_err(|failure| failure.to_string())?;
    let health: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    let problems = health["problems"].as_array().cloned();
    problems.ok_or_else(|| format!("no problems: {body}"))
}

async fn starts(world: &World, file: &Path) -> Outcome<Agent> {
    world
        .agent()
        .set("registry.url", "registry.example")
        .set("registry.username", "puller")
        .set("registry.password_file", &file.display())
        .start()
        .await
}

/// (F2) Two namespaces in which nothing happens, and a file that is rewritten, emptied and
/// rewritten: no state is pushed and nothing is started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_password_reaches_every_quiet_namespace_with_one_write_each() -> Outcome {
    let world = world().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("password");
    let [old, new] = ["old", "new"].map(|it| format!("{CANARY}-{it}"));
    std::fs::write(&file, &old)?;
    let wanted = world.deployments(2, 2);
    world.push_all(&wanted);
    let agent = starts(&world, &file).await?;
    world
        .settles("both run", &wanted, &[], limits::LONG)
        .await?;
    check_hold(&world, &old).await?;

    let mark = world.mark()?;
    let began = std::time::Instant::now();
    std::fs::write(&file, format!("{new}\n"))?;
    eventually("both follow", limits::LONG, async || {
        hold(&world, &new).await
    })
    .await?;
    let took = began.elapsed();
    println!("both pull secrets follow after {took:?}");
    assert!(took.as_secs() < 60, "{took:?}");

    std::fs::write(&file, "")?;
    eventually("the empty file is a problem", limits::SHORT, async || {
        let problems = problems(&agent).await?;
        let found = problems.iter().find(|it| it["kind"] == "file_unusable");
        let name = found.map(|it| it["name"].clone());
        let is_named = name == Some("registry.password_file".into());
        is_named
            .then_some(())
            .ok_or_else(|| format!("{problems:?}"))
    })
    .await?;
    check_hold(&world, &new).await?;
    std::fs::write(&file, &new)?;
    eventually("the problem is over", limits::SHORT, async || {
        let problems = problems(&agent).await?;
        let is_over = problems.iter().all(|it| it["kind"] != "file_unusable");
        is_over.then_some(()).ok_or_else(|| format!("{problems:?}"))
    })
    .await?;
    let writes = world.writes(mark)?;
    let secrets: Vec<_> = writes.iter().map(|it| (&*it.resource, it.code)).collect();
    assert_eq!(secrets, [("secrets", 200); 2], "{writes:?}");
    let log = agent.log().text()?;
    let warnings = log.matches("secret file cannot be used").count();
    assert_eq!(warnings, 1, "one warning");
    agent.stop().await
}
