//! Answers to questions.

use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::apps::v1::ReplicaSet;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Answer, Code, Kind, Method, samples};
use krane_testharness::{Agent, Outcome, World, eventually, limits};
use serde_json::json;

use super::{gauge, logged, no_panic};
use crate::world;

const OBJECTS: usize = 10;

async fn passes(agent: &Agent, more: f64) -> Outcome {
    let name = "krane_resync_duration_seconds_count";
    let before = agent.metrics().await?.deployments(name);
    eventually("passes over all objects", limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let passes = metrics.deployments(name) - before;
        if passes >= more {
            Ok(())
        } else {
            Err(format!("{passes}"))
        }
    })
    .await
}

async fn scaled_by_hand_is_undone(world: &World, wanted: &[ApplyDeployment]) -> Outcome {
    for state in wanted {
        let patch = json!({"spec": {"replicas": 3}});
        world
            .api
            .edit::<ReplicaSet>(&state.k8s_namespace, &state.k8s_name, patch)
            .await?;
    }
    world
        .settles("edits are undone", wanted, &[], limits::SHORT)
        .await
}

/// D6, D7: no answer but a true one changes anything, and what was wanted before is kept up all the while.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_change_nothing_and_repairs_go_on() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(OBJECTS, 2);
    world.push_all(&wanted);
    let agent = world.agent().set("resync.interval", "1s").start().await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;

    let about = |state: &ApplyDeployment| {
        let state = samples::apply(state.clone());
        Bytes::from(prost::Message::encode_to_vec(&state))
    };
    let answers = [
        Answer::Message(Bytes::new()),
        Answer::Empty,
        Answer::Message(samples::garbage()),
        // Another object, none with a name, and this one in bytes that do not decode.
        Answer::Message(about(&wanted[0])),
        Answer::Message(about(&samples::deployment("..", "../x"))),
        Answer::Message(samples::truncated(&about(&wanted[5]))),
        Answer::Code(Code::Internal),
        Answer::Code(Code::Unimplemented),
        Answer::Code(Code::PermissionDenied),
    ];
    for (state, answer) in wanted.iter().skip(1).zip(answers) {
        world
            .control
            .set_answer(Kind::Deployments, &state.deployment_id, answer);
    }
    // wanted[6] is the one that is answered about with broken bytes of wanted[5]; make it its own.
    world.control.set_answer(
        Kind::Deployments,
        &wanted[6].deployment_id,
        Answer::Message(samples::truncated(&about(&wanted[6]))),
    );
    passes(&agent, 2.0).await?;
    logged(&agent, "the answer about another object is named", |line| {
        line.text("message").contains("another object")
    })
    .await?;
    scaled_by_hand_is_undone(&world, &wanted).await?;
    gauge(&agent, "krane_quarantined", 0.0).await?;
    no_panic(&agent)?;
    agent.stop().await
}

/// D7: a control plane that suddenly knows nothing deletes nothing, and the region lives on.
#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_that_knows_nothing_any_more_deletes_nothing() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(OBJECTS, 2);
    world.push_all(&wanted);
    let agent = world.agent().set("resync.interval", "1s").start().await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    for state in &wanted {
        let answer = Answer::Code(Code::NotFound);
        world
            .control
            .set_answer(Kind::Deployments, &state.deployment_id, answer);
    }
    #[expect(clippy::cast_precision_loss, reason = "ten")]
    gauge(&agent, "krane_deletes_held", OBJECTS as f64).await?;
    scaled_by_hand_is_undone(&world, &wanted).await?;
    for state in &wanted {
        world
            .control
            .set_answer(Kind::Deployments, &state.deployment_id, None);
    }
    gauge(&agent, "krane_deletes_held", 0.0).await?;
    world
        .settles("all run on", &wanted, &[], limits::SHORT)
        .await?;
    no_panic(&agent)?;
    agent.stop().await
}

/// level-triggered rule, 8b161adf66, D26: reports refused with every code there is arrive in the end, and hold up neither applies nor each other.
#[tokio::test(flavor = "multi_thread")]
async fn reports_refused_with_every_code_arrive_in_the_end() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(OBJECTS, 2);
    let codes = [
        Code::Internal,
        Code::InvalidArgument,
        Code::NotFound,
        Code::ResourceExhausted,
        Code::DataLoss,
    ];
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    for (pair, code) in wanted.chunks(2).zip(codes) {
        world.control.fail(Method::ReportDeployment, code, 4);
        world.push_all(pair);
        world
            .control
            .wait_for("reports are refused", limits::SHORT, |seen| {
                let refused = seen
                    .of(Method::ReportDeployment)
                    .filter(|r| r.code() == Some(code));
                (refused.count() >= 1).then_some(())
            })
            .await?;
    }
    world.control.heal();
    world
        .settles("all is reported", &wanted, &[], Duration::from_mins(1))
        .await?;
    no_panic(&agent)?;
    agent.stop().await
}
