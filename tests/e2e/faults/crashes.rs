//! A crash between two steps of one state.

use krane_sim::control_plane::{Code, Method, samples};
use krane_testharness::{Action, Call, Outcome, Proxy, limits};

use crate::world;

/// Sieve, intermediate state of the deployment path (C07): killed at each write of one new deployment, before it was
/// sent and after it took effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_each_write_of_a_state_is_finished_by_the_next_start() -> Outcome {
    let world = world().await?;
    let mut wanted = Vec::new();
    for (index, last) in ["namespaces", "ciliumnetworkpolicies", "replicasets"]
        .into_iter()
        .flat_map(|resource| [(resource, Action::Hang), (resource, Action::Swallow)])
        .enumerate()
    {
        let state = samples::deployment(&world.namespace(index), &format!("c{index}"));
        world.control.push(samples::apply(state.clone()));
        wanted.push(state.clone());
        let proxy = Proxy::start(&world).await?;
        let (resource, action) = last;
        proxy.script(move |call: &Call| {
            if call.writes(resource) {
                action.clone()
            } else {
                Action::Pass
            }
        });
        let mut agent = world.agent().kubeconfig(proxy.kubeconfig()).spawn()?;
        proxy
            .wait_for(
                &format!("the write of {resource}"),
                limits::LONG,
                |records| {
                    // A swallowed one must have taken effect.
                    let is_swallowed = index % 2 == 1;
                    let mut writes = records.iter().filter(|record| record.call.writes(resource));
                    writes
                        .any(|record| !is_swallowed || record.answered.is_some())
                        .then_some(())
                },
            )
            .await?;
        agent.kill().await?;
        let agent = world.agent().start().await?;
        world
            .settles("finished and told", &wanted, &[], limits::LONG)
            .await?;
        agent.stop().await?;
    }
    Ok(())
}

/// Sieve, the last step of the same path (C07): killed between the write and the report.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_the_report_is_made_good_by_the_next_start() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(1, 1);
    world.push_all(&wanted);
    world.control.delay(
        Method::ReportDeployment,
        std::time::Duration::from_secs(3600),
    );
    let mut agent = world.agent().spawn()?;
    let reporting =
        |seen: &krane_sim::control_plane::Seen| seen.of(Method::ReportDeployment).next().map(drop);
    world
        .control
        .wait_for("a report", limits::LONG, reporting)
        .await?;
    agent.kill().await?;
    world.control.heal();
    let agent = world.agent().start().await?;
    world
        .settles("it is told", &wanted, &[], limits::LONG)
        .await?;
    agent.stop().await
}

/// Sieve, intermediate state of the delete path (C08): the object is deleted, and nobody was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_delete_and_report_is_made_good_by_the_next_start() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(1, 1);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    world.settles("it runs", &wanted, &[], limits::LONG).await?;
    agent.stop().await?;

    let proxy = Proxy::start(&world).await?;
    proxy.script(|call: &Call| {
        if call.method == http::Method::DELETE {
            Action::Swallow
        } else {
            Action::Pass
        }
    });
    // The watch tells that it is gone without an answer to the delete, as it should: nobody may hear that, either.
    world
        .control
        .fail(Method::ReportDeployment, Code::Unavailable, u32::MAX);
    world.control.push(samples::delete(&wanted[0]));
    let mut agent = world.agent().kubeconfig(proxy.kubeconfig()).spawn()?;
    proxy
        .wait_for("the delete has its effect", limits::LONG, |records| {
            let mut deletes = records
                .iter()
                .filter(|r| r.call.method == http::Method::DELETE);
            deletes
                .any(|record| record.answered.is_some())
                .then_some(())
        })
        .await?;
    agent.kill().await?;
    assert!(
        !world.control.look(|seen| seen.deleted(&wanted[0].k8s_name)),
        "somebody was told: this is not the crash that was meant"
    );
    world.control.heal();
    let agent = world.agent().start().await?;
    world
        .settles("the delete is told", &[], &wanted, limits::LONG)
        .await?;
    agent.stop().await
}
