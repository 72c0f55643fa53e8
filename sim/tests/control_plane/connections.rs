//! What happens to connections, and what is left after it.

use std::time::Duration;

use krane_proto::ctrl::v1::HeartbeatRequest;
use krane_sim::control_plane::{Kind, samples};
use tokio::time::timeout;

use crate::support::{LIMIT, client, control, region, versions, watch, with_token};

/// Long enough that an answer would have come.
const SILENCE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_stopped_server_refuses_and_comes_back_on_its_port_with_what_it_knew() {
    let control = control().await;
    control.push(samples::apply(samples::deployment("ws", "web")));
    let mut stream = watch(&mut client(&control).await, 0).await.unwrap();
    versions(&mut stream, 1).await;

    control.stop().await;
    assert!(
        timeout(LIMIT, stream.message()).await.unwrap().is_err(),
        "the connection breaks"
    );
    tokio::net::TcpStream::connect(control.address())
        .await
        .unwrap_err();

    control.start_again().await.unwrap();
    let mut stream = watch(&mut client(&control).await, 0).await.unwrap();
    assert_eq!(versions(&mut stream, 1).await, [1]);
}

#[tokio::test]
async fn lost_memory_begins_at_version_one() {
    let control = control().await;
    control.push(samples::apply(samples::deployment("ws", "a")));
    control.push(samples::apply(samples::deployment("ws", "b")));
    control.lose_memory();
    assert_eq!(control.newest(Kind::Deployments), 0);
    assert_eq!(
        control.push(samples::apply(samples::deployment("ws", "c"))),
        1
    );
}

#[tokio::test]
async fn a_frozen_server_is_silent_and_answers_after_it_thawed() {
    let control = control().await;
    let mut client = client(&control).await;
    let heartbeat = || with_token(HeartbeatRequest { region: region() });
    client.heartbeat(heartbeat()).await.unwrap();

    control.freeze();
    let mut waiting = Box::pin(client.heartbeat(heartbeat()));
    timeout(SILENCE, &mut waiting).await.unwrap_err();
    let second = tokio::net::TcpStream::connect(control.address()).await;
    assert!(
        second.is_ok(),
        "the system takes connections for a stopped process"
    );
    control.thaw();
    timeout(LIMIT, waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_black_hole_swallows_the_present_connections_only() {
    let control = control().await;
    let mut old = client(&control).await;
    let heartbeat = || with_token(HeartbeatRequest { region: region() });
    old.heartbeat(heartbeat()).await.unwrap();
    control.blackhole();
    timeout(SILENCE, old.heartbeat(heartbeat()))
        .await
        .unwrap_err();
    client(&control).await.heartbeat(heartbeat()).await.unwrap();
    control.thaw();
    timeout(SILENCE, old.heartbeat(heartbeat()))
        .await
        .unwrap_err();
}
