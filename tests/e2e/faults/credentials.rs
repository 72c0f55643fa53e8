//! krane's own token changes while it runs.

use std::{fs, sync::Arc};

use krane_sim::control_plane::samples;
use krane_testharness::{Action, Call, Outcome, Proxy, limits};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;

use crate::world;

/// kubernetes-client/python#1768, kubernetes/kubernetes#77651 (B43): the token on disk is replaced, the old one
/// is refused from then on.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_token_is_used_and_nothing_restarts() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(3, 1);
    world.push_all(&wanted);
    let proxy = Proxy::start(&world).await?;
    let valid = Arc::new(Mutex::new("first-token".to_owned()));
    proxy.script({
        let valid = Arc::clone(&valid);
        move |call: &Call| {
            let given = call
                .headers
                .get("authorization")
                .and_then(|value| value.to_str().ok());
            if given == Some(&format!("Bearer {}", valid.lock())) {
                Action::Pass
            } else {
                Action::status(401, "Unauthorized", "Unauthorized")
            }
        }
    });
    let folder = TempDir::new()?;
    let token = folder.path().join("token");
    fs::write(&token, "first-token")?;
    let kubeconfig = folder.path().join("kubeconfig");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", proxy.address())}}],
        "users": [{"name": "u", "user": {"tokenFile": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    fs::write(&kubeconfig, text.to_string())?;
    let mut agent = world
        .agent()
        .kubeconfig(&kubeconfig)
        .secret("first-token")
        .secret("second-token")
        .start()
        .await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;

    // As the kubelet does it: the new file takes the place of the old one.
    let next = folder.path().join("next");
    fs::write(&next, "second-token")?;
    fs::rename(&next, &token)?;
    "second-token".clone_into(&mut valid.lock());
    proxy.cut();
    wanted[0].memory_mib = 512;
    world.control.push(samples::apply(wanted[0].clone()));
    world
        .settles("the change is applied", &wanted, &[], limits::LONG)
        .await?;
    let watches = |records: &[krane_testharness::Recorded]| {
        let open = records.iter().rev().filter(|record| {
            record.call.is_watch()
                && record.call.headers["authorization"] == "Bearer second-token"
                && record.code() == Some(200)
        });
        (open.count() >= 4).then_some(())
    };
    proxy
        .wait_for("all watches are open again", limits::LONG, watches)
        .await?;
    assert!(agent.is_running());
    agent.stop().await
}
