//! The gRPC adapter of the control plane against servers and networks that misbehave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod calls;
mod connections;
mod foreign;
mod frames;
mod pings;
pub(crate) mod server;
mod streams;
pub(crate) mod tls;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use krane_control_plane::wire::Wire;
use krane_control_plane::{ControlPlaneAccess, GrpcControlPlane, Timing};
use krane_domain::desired::{State, StreamItem};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::Rules;
use krane_domain::report::{Instance, InstanceStatus, Report};
use krane_ports::{ControlPlane as _, Question, StreamEnd, StreamEvent};
use krane_proto::ctrl::v1::{DeleteDeployment, DeploymentState, deployment_state};
use prost::Message as _;
use secrecy::SecretString;

const TOKEN: &str = "hunter2-canary";

/// Fails the test when a state that must come does not.
async fn within<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(40);
    tokio::time::timeout(limit, future)
        .await
        .expect("nothing happened in 40 s")
}

fn access(url: impl Into<String>) -> ControlPlaneAccess {
    ControlPlaneAccess {
        url: url.into(),
        ca_file: None,
        token: Arc::new(|| SecretString::from(TOKEN)),
        timing: Timing::default(),
        observer: Arc::new(()),
    }
}

fn wire() -> Wire {
    Wire::new(
        "aws",
        "us-east-1",
        Controller::Deployments,
        Arc::new(Rules::default()),
    )
}

fn plane(access: &ControlPlaneAccess) -> GrpcControlPlane {
    GrpcControlPlane::new(access, wire()).unwrap()
}

fn question() -> Question {
    Question {
        key: ObjectKey::new("ns", "one"),
        id: Arc::from("d_1"),
    }
}

fn report() -> Report {
    Report::Instances {
        key: ObjectKey::new("ns", "one"),
        instances: vec![Instance {
            pod: Arc::from("one-x"),
            address: "10-0-0-1.ns.pod.cluster.local:8080".to_owned(),
            status: InstanceStatus::Running,
            cpu_millicores: 250,
            memory_mib: 512,
        }],
    }
}

/// A state that deletes `ns/<name>`.
fn delete(name: &str, version: u64) -> Vec<u8> {
    let delete = DeleteDeployment {
        k8s_namespace: "ns".to_owned(),
        k8s_name: name.to_owned(),
    };
    let state = Some(deployment_state::State::Delete(delete));
    DeploymentState { version, state }.encode_to_vec()
}

/// A stream of desired states, one expected event at a time.
struct Events(BoxStream<'static, StreamEvent>);

impl Events {
    async fn of(plane: &GrpcControlPlane, cursor: u64) -> Self {
        Self(plane.watch(cursor).await)
    }

    async fn next(&mut self) -> StreamEvent {
        within(self.0.next())
            .await
            .expect("the stream must not be over")
    }

    async fn opened(&mut self) {
        let event = self.next().await;
        assert!(
            matches!(event, StreamEvent::Opened),
            "{event:?} instead of opened"
        );
    }

    async fn item(&mut self) -> StreamItem {
        match self.next().await {
            StreamEvent::Item(item) => item,
            event @ (StreamEvent::Opened | StreamEvent::Ended(_)) => {
                panic!("{event:?} instead of an item")
            }
        }
    }

    async fn state(&mut self) -> State {
        match self.item().await {
            StreamItem::State(state) => state,
            item @ StreamItem::Unnamed { .. } => panic!("{item:?} instead of a state"),
        }
    }

    /// The end, which is the last thing that comes.
    async fn ended(&mut self) -> StreamEnd {
        match self.next().await {
            StreamEvent::Ended(end) => {
                assert!(
                    within(self.0.next()).await.is_none(),
                    "something follows the end"
                );
                end
            }
            event @ (StreamEvent::Opened | StreamEvent::Item(_)) => {
                panic!("{event:?} instead of the end")
            }
        }
    }
}
