//! A small cluster and a small control plane for tests of actors, over the real ports.
//!
//! The cluster applies as the domain's model of the API server does; both can be told to fail.

mod alone;
pub(crate) mod cluster;
mod control_plane;
mod lease;

pub(crate) use alone::alone;
pub(crate) use cluster::{FakeCluster, Op};
pub(crate) use control_plane::FakeControlPlane;
pub(crate) use lease::{FakeLease, LeaseFault, Office};

use std::time::Duration;

use krane_domain::desired::{Change, State};
use krane_domain::ids::ObjectKey;
use krane_domain::kinds::cilium_network_policy::{self, PolicyInput};
use krane_domain::kinds::deployment::{self, DeploymentInput};
use krane_domain::kinds::sentinel::{self, SentinelInput};
use krane_domain::kinds::{Desired, Rules};

use krane_ports::Clock;

/// Lets virtual time pass.
#[expect(
    clippy::disallowed_methods,
    reason = "a test on a paused clock, no handler"
)]
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// A wall clock that stands still.
#[derive(Debug)]
pub(crate) struct StoppedClock;

impl Clock for StoppedClock {
    fn unix_seconds(&self) -> u64 {
        1_800_000_000
    }
}

/// A valid workload of this name in this namespace.
pub(crate) fn input(namespace: &str, name: &str) -> DeploymentInput {
    DeploymentInput {
        k8s_namespace: namespace.into(),
        k8s_name: name.into(),
        workspace_id: "ws_1".into(),
        project_id: "proj_1".into(),
        environment_id: "env_1".into(),
        deployment_id: format!("d_{name}"),
        image: "registry.example/app:1".into(),
        replicas: 1,
        cpu_millicores: 100,
        memory_mib: 64,
        ..DeploymentInput::default()
    }
}

/// The state that wants this workload.
pub(crate) fn wants(version: u64, input: DeploymentInput) -> State {
    let key = ObjectKey::new(&*input.k8s_namespace, &*input.k8s_name);
    let change = deployment::validate(input, &Rules::default())
        .map(|desired| Change::Apply(Desired::Deployment(Box::new(desired))));
    State {
        key,
        version,
        change,
        size: 100,
    }
}

/// A sentinel of this name.
pub(crate) fn sentinel_input(name: &str) -> SentinelInput {
    SentinelInput {
        k8s_name: name.into(),
        workspace_id: "ws_1".into(),
        project_id: "proj_1".into(),
        app_id: String::new(),
        environment_id: "env_1".into(),
        sentinel_id: format!("s_{name}"),
        image: "registry.example/sentinel:1".into(),
        replicas: 1,
        cpu_millicores: 100,
        memory_mib: 64,
    }
}

/// The state that wants a sentinel of this name.
pub(crate) fn wants_sentinel(version: u64, name: &str) -> State {
    let change = sentinel::validate(sentinel_input(name), &Rules::default())
        .map(|desired| Change::Apply(Desired::Sentinel(Box::new(desired))));
    State {
        key: ObjectKey::new("sentinel", name),
        version,
        change,
        size: 100,
    }
}

/// The state that wants a policy of this name in this namespace.
pub(crate) fn wants_policy(version: u64, namespace: &str, name: &str) -> State {
    let input = PolicyInput {
        k8s_namespace: namespace.into(),
        k8s_name: name.into(),
        cilium_network_policy_id: format!("net_{name}"),
        policy: br#"{"spec":{"endpointSelector":{},"ingress":[{"fromEndpoints":[{}]}]}}"#.to_vec(),
    };
    let change = cilium_network_policy::validate(input, &Rules::default())
        .map(|desired| Change::Apply(Desired::CiliumNetworkPolicy(Box::new(desired))));
    State {
        key: ObjectKey::new(namespace, name),
        version,
        change,
        size: 100,
    }
}

/// The state that wants this workload gone.
pub(crate) fn unwants(version: u64, namespace: &str, name: &str) -> State {
    let key = ObjectKey::new(namespace, name);
    State {
        key,
        version,
        change: Ok(Change::Delete),
        size: 10,
    }
}
