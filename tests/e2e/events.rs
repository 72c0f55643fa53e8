//! What people see who ask the cluster and not krane.

use k8s_openapi::api::events::v1::Event;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::samples;
use krane_testharness::{Failure, Outcome, eventually, limits};

use crate::world;

/// A real API server takes the Event, and krane's ServiceAccount may write it.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_in_quarantine_is_an_event_on_its_object() -> Outcome {
    let world = world().await?;
    let namespace = world.namespace(0);
    let web = samples::deployment(&namespace, "web");
    world.control.push(samples::apply(web.clone()));
    let agent = world.agent().start().await?;
    world
        .settles("web runs", std::slice::from_ref(&web), &[], limits::LONG)
        .await?;
    let mark = world.mark()?;
    let invalid = ApplyDeployment {
        replicas: -1,
        ..web
    };
    world.control.push(samples::apply(invalid));
    let events = world.api.within::<Event>(&namespace);
    eventually("the Event", limits::LONG, async || {
        let listed = events.list(&kube::api::ListParams::default()).await;
        let listed = listed.map_err(|error| error.to_string())?;
        let ours = listed.items.into_iter().find(|event| {
            event.reporting_controller.as_deref() == Some("krane")
                && event.reason.as_deref() == Some("Quarantined")
        });
        let event = ours.ok_or("there is none")?;
        let regarding = event.regarding.unwrap_or_default();
        let is_about_it = regarding.kind.as_deref() == Some("ReplicaSet")
            && regarding.name.as_deref() == Some("web")
            && regarding.uid.is_some();
        let note = event.note.unwrap_or_default();
        if is_about_it && event.type_.as_deref() == Some("Warning") && note.contains("replicas") {
            Ok(())
        } else {
            Err(format!("{regarding:?}: {note}"))
        }
    })
    .await?;
    let written = world.requests(mark)?;
    let made = written.iter().filter(|entry| entry.resource == "events");
    if made.count() != 1 {
        return Err(Failure::new(format!("not one Event: {written:?}")));
    }
    agent.stop().await
}
